r"""What does a model train on? Makes a corpus: token files and their manifest.

Documents come from packages of the package index (about 5 M tokens, for a
first run), from a folder of texts, or from TensorFlow Datasets. One document
in fifty, chosen by the hash of its text, is for validation. A killed command
goes on where it stopped when it is repeated.

  python experiments/prepare_corpus.py --source packaged --tokenizer gpt2 \
    --out corpora/packaged

The corpora of the geometry study are two of one source, which takes `pip
install datasets` and room for the whole dataset; its name may end in
@REVISION. S shares the validation file of R, and trains on no document of it.

  python experiments/prepare_corpus.py --tokenizer gpt2 --source \
    tfds:huggingface:HuggingFaceFW/fineweb-edu/sample-10BT \
    --train-tokens 200000000 --validation-tokens 2000000 --out corpora/R
  python experiments/prepare_corpus.py --tokenizer gpt2 --source \
    tfds:huggingface:HuggingFaceFW/fineweb-edu/sample-10BT \
    --train-tokens 1073741825 --validation corpora/R --out corpora/S
"""

import time

from headjax import command_line
from headjax.data.corpora import prepare
from headjax.data.encoding import SEPARATOR, open_encoder
from headjax.data.sources import SOURCES, open_source


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--source", required=True, help=", ".join(SOURCES))
  parser.add_argument(
    "--tokenizer", default="gpt2", help="gpt2, or a tokenizer.json"
  )
  parser.add_argument("--out", required=True, help="folder of the corpus")
  parser.add_argument(
    "--train-tokens", type=int, help="exactly so many; default all"
  )
  parser.add_argument(
    "--validation-tokens",
    type=int,
    help="exactly so many; default what a fiftieth gives, up to 2,000,000",
  )
  parser.add_argument(
    "--validation", help="a corpus whose validation file is shared"
  )
  parser.add_argument(
    "--seed", type=int, default=1729, help="of the choice (default 1729)"
  )
  parser.add_argument(
    "--workers", type=int, default=2, help="threads (default 2)"
  )
  parser.add_argument(
    "--separator", default=SEPARATOR, help=f"default {SEPARATOR}"
  )
  parser.add_argument(
    "--field", default="text", help="of a record (default text)"
  )
  parser.add_argument(
    "--split", default="train", help="of a dataset (default train)"
  )
  return parser.parse_args(argv)


def main(argv):
  """Makes the corpus and says what is in it."""
  args = parse(argv)
  out = command_line.writable_folder(args.out)
  encoder = open_encoder(args.tokenizer, args.separator)
  source = open_source(args.source, field=args.field, split=args.split)
  began = time.perf_counter()
  manifest = prepare(
    source,
    encoder,
    out,
    train_tokens=args.train_tokens,
    validation_tokens=args.validation_tokens,
    validation=args.validation,
    seed=args.seed,
    workers=args.workers,
    progress=True,
  )
  seconds = time.perf_counter() - began
  print_summary(manifest, seconds)
  print(f"written to {out}")


def print_summary(manifest, seconds):
  """Prints counts, speed and licences."""
  tokens = {
    "train": manifest.train_tokens,
    "validation": manifest.validation["tokens"],
  }
  for split, n in tokens.items():
    documents = manifest.documents[split]
    of = "shared" if documents is None else f"{documents:,} documents"
    print(f"{split}: {n:,} tokens, {of}")
  print(f"{sum(tokens.values()) / seconds:,.0f} tokens/s, {seconds:.1f} s")
  for licence in manifest.licences:
    print(f"  {licence}")


if __name__ == "__main__":
  command_line.run(main)
