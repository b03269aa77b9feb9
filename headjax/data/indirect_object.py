"""To whom was it given? Prompts whose answer is the name that comes once.

"When Mary and John went to the store, John gave a drink to" is followed by
Mary, the indirect object; John, the subject, stands there twice. In half of
the prompts the indirect object is the first name (ABBA), in the others the
second (BABA). The wording, names and things are ours: the paper gives none.
"""

import numpy as np

from headjax.checks import check
from headjax.data.pairs import pad_right
from headjax.data.probes import Probe, plain_targets
from headjax.models.tokenizers import Tokenizer

EXAMPLES = 500
_LEAST = 10  # names of one token
NAMES = tuple(
  """
  Adam Alan Alex Alice Amy Andrew Anna Anne Anthony Arthur Ben Bob Brian Carl
  Carol Charles Chris Daniel David Diana Edward Ellen Emily Emma Eric Frank
  George Grace Hannah Harry Helen Henry Jack James Jane Jason Jennifer Jessica
  Jim Joe John Jonathan Joseph Julia Karen Kate Kelly Kevin Laura Lisa Louis
  Lucy Maria Mark Martin Mary Matthew Michael Mike Nick Oliver Patrick Paul
  Peter Rachel Richard Robert Rose Ryan Sam Sarah Scott Simon Sophie Stephen
  Steve Susan Thomas Tim Tom Tony Victoria Will William
  """.split()
)
PLACES = tuple(
  "beach garden hospital house library market office park restaurant school "
  "shop station store".split()
)
OBJECTS = tuple(
  "basket book bottle cake camera card drink gift key letter map necklace "
  "ring".split()
)


def indirect_objects(
  tokenizer: Tokenizer, n_examples: int = EXAMPLES, *, seed: int = 0
) -> Probe:
  """Prompts with names that are one token of this tokenizer.

  Args:
    tokenizer: of the model.
    n_examples: prompts, every other one ABBA.
    seed: of the draws.

  Returns:
    A probe whose foil is the subject, with the keys `name_mover` and
    `s_inhibition` beside the plain ones.

  Raises:
    ValueError: the tokenizer has too few such names.
  """
  check(n_examples >= 1, "n_examples", n_examples, "at least 1", "ask for some")
  ids = {name: tokenizer.single(f" {name}") for name in NAMES}
  ids = {name: i for name, i in ids.items() if i is not None}
  check(
    len(ids) >= _LEAST,
    "tokenizer",
    f"{len(ids)} names that are one token",
    f"at least {_LEAST}",
    "take a model with an English vocabulary",
  )
  random = np.random.default_rng(seed)
  rows, names = [], []
  for i in range(n_examples):
    other, subject = random.choice(list(ids), 2, replace=False)
    both = (subject, other) if i % 2 else (other, subject)
    place, thing = random.choice(PLACES), random.choice(OBJECTS)
    text = (
      f"When {both[0]} and {both[1]} went to the {place}, {subject} gave a"
      f" {thing} to"
    )
    rows.append(tokenizer.encode(text))
    names.append((ids[other], ids[subject]))
  tokens, lengths = pad_right(rows)
  answer, foil = np.array(names, np.int64).T
  return Probe(
    tokens, lengths.astype(np.int64) - 1, answer,
    _marked(tokens, lengths, answer, foil), 1 / len(ids), "indirect object",
    foil=foil,
  )  # fmt: skip


def _marked(tokens, lengths, answer, foil) -> dict[str, np.ndarray]:
  """The keys of all kinds."""
  query = lengths.astype(np.int64) - 1
  row = np.arange(len(tokens))
  line = np.arange(tokens.shape[1])
  same = (tokens == tokens[row, query][:, None]) & (line < query[:, None])
  last = tokens.shape[1] - 1 - same[:, ::-1].argmax(1)
  found = plain_targets(query, np.where(same.any(1), last, -1))
  is_subject = (tokens == foil[:, None]) & (line <= query[:, None])
  first = is_subject.argmax(1)
  again = tokens.shape[1] - 1 - is_subject[:, ::-1].argmax(1)
  found["name_mover"] = (tokens == answer[:, None]).argmax(1)[:, None]
  found["s_inhibition"] = np.stack([first, again], axis=1)
  return found
