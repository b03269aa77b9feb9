r"""Which kinds of heads does a model have? Scores by attention, and copying.

Every head is scored on random tokens said twice: by its attention to the
previous token, to earlier copies of the same token, to what followed those
(induction), to the first token, to itself and to its neighbourhood; and, from
its weights alone, by how far it copies. OUT gets `scores.nc`. With --text, the
strongest head of each kind shows where it looks in that text.

  python experiments/head_scores.py --model smollm2-135m --out results/scores \
    --text "The keys are on the table, and the keys are old."
"""

import numpy as np

from headjax import command_line, load_model, results
from headjax.checks import check
from headjax.data.repeats import repeated
from headjax.interventions.kinds import KINDS
from headjax.interventions.patterns import head_scores, patterns
from headjax.models.copying import copying_scores


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--model", required=True, help="name, folder or file")
  parser.add_argument("--out", required=True, help="folder for the results")
  parser.add_argument("--examples", type=int, default=4, help="default 4")
  parser.add_argument(
    "--length", type=int, default=50, help="tokens before the copy (50)"
  )
  parser.add_argument("--seed", type=int, default=0, help="of the tokens (0)")
  parser.add_argument("--top", type=int, default=5, help="heads to name (5)")
  parser.add_argument("--text", help="shows where the strongest heads look")
  return parser.parse_args(argv)


def main(argv):
  """Scores all heads and writes what was found."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  model = load_model(args.model)
  bos = None if model.tokenizer is None else model.tokenizer.bos
  tokens = repeated(
    model.config.d_vocab, args.examples, args.length, seed=args.seed, bos=bos
  )
  ids = text_ids(model, args.text) if args.text is not None else None
  scores = head_scores(model, tokens, name=f"random twice, seed {args.seed}")
  copying = copying_scores(model)
  scores["copying"] = (("layer", "head"), copying)
  results.save(scores, out / "scores.nc")
  mean = scores.score.mean("example")
  print(
    f"\n{model.name} on {args.examples} x {args.length} random tokens, twice"
  )
  for kind in KINDS:
    print(f"  {kind:9}  {named(mean.sel(kind=kind).values, args.top)}")
  print(f"  {'copying':9}  {named(copying, args.top)}")
  if ids is not None:
    show_links(model, ids, mean)
  print(f"\nwritten to {out}")


def text_ids(model, text):
  """The tokens of the text."""
  check(
    model.tokenizer is not None,
    "--text",
    "a model without a tokenizer",
    "one with a tokenizer",
    "leave --text out",
  )
  ids = model.tokenizer.encode(text)
  bos = model.tokenizer.bos
  return np.array([ids if bos is None else [bos, *ids]])


def named(values, count):
  """The heads of largest value, as text."""
  order = np.argsort(-np.nan_to_num(values, nan=-np.inf), axis=None)[:count]
  heads = [np.unravel_index(i, values.shape) for i in order]
  return ", ".join(f"L{la}H{h} {values[la, h]:.2f}" for la, h in heads)


def show_links(model, ids, mean):
  """For the strongest head of each kind, the key that each query looks at."""
  found = patterns(model, ids).isel(example=0)
  pairs = zip(found.token.values.tolist(), found.id.values, strict=True)
  words = [f"{text!r} ({i})" for text, i in pairs]
  for kind in KINDS:
    values = mean.sel(kind=kind).values
    layer, head = np.unravel_index(np.nanargmax(values), values.shape)
    print(f"\n{kind}: L{layer}H{head}")
    pattern = found[layer, head].values
    for query, key in enumerate(pattern.argmax(-1)):
      share = pattern[query, key]
      print(f"  {query:3} {words[query]} -> {key} {words[key]} {share:.2f}")


if __name__ == "__main__":
  command_line.run(main)
