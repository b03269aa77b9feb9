"""What is the relation of these words? Prompts that show it, four times.

The reference of a prompt has the same words, and its labels belong to other
inputs: the relation is gone.

Source: paper C, antonym and country-capital; the lists are ours. It has no
references for these tasks.
"""

import types
from collections.abc import Mapping, Sequence

from headjax.checks import check, check_choice, fail
from headjax.data.in_context import Example, Format
from headjax.data.stream import draw
from headjax.data.templates import next_token
from headjax.models.tokenizers import Tokenizer


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
  return tuple(tuple(pair.split("/")) for pair in text.split())


LISTS: Mapping[str, Sequence[tuple[str, str]]] = types.MappingProxyType(
  {
    "antonym": _pairs(
      """
      above/below absent/present accept/reject add/remove alive/dead
      always/never ancient/modern answer/question arrive/leave asleep/awake
      attack/defend backward/forward bad/good before/after begin/end
      best/worst big/small bitter/sweet black/white bottom/top bright/dark
      broad/narrow buy/sell calm/angry cheap/expensive clean/dirty close/open
      cold/hot come/go cool/warm correct/wrong create/destroy dead/alive
      deep/shallow down/up dry/wet early/late east/west easy/hard
      empty/full enemy/friend even/odd export/import fail/pass false/true
      far/near fast/slow fat/thin female/male few/many find/lose first/last
      float/sink forget/remember freeze/melt give/take happy/sad heavy/light
      hide/show high/low hit/miss huge/tiny in/out inside/outside
      large/little left/right less/more long/short loose/tight loud/quiet
      love/hate major/minor maximum/minimum move/stay new/old night/day
      noisy/silent north/south off/on over/under peace/war poor/rich
      positive/negative private/public push/pull rise/fall rough/smooth
      safe/dangerous save/spend send/receive simple/complex single/double
      soft/hard start/stop strong/weak success/failure tall/short thick/thin
      ugly/beautiful winter/summer with/without yes/no young/old
      """
    ),
    "country-capital": _pairs(
      """
      Afghanistan/Kabul Algeria/Algiers Argentina/Buenos Armenia/Yerevan
      Australia/Canberra Austria/Vienna Azerbaijan/Baku Bangladesh/Dhaka
      Belarus/Minsk Belgium/Brussels Bulgaria/Sofia Canada/Ottawa
      Chile/Santiago China/Beijing Colombia/Bogota Croatia/Zagreb Cuba/Havana
      Denmark/Copenhagen Ecuador/Quito Egypt/Cairo England/London
      Estonia/Tallinn Ethiopia/Addis Finland/Helsinki France/Paris
      Georgia/Tbilisi Germany/Berlin Ghana/Accra Greece/Athens
      Hungary/Budapest Iceland/Reykjavik India/Delhi Indonesia/Jakarta
      Iran/Tehran Iraq/Baghdad Ireland/Dublin Israel/Jerusalem Italy/Rome
      Jamaica/Kingston Japan/Tokyo Jordan/Amman Kenya/Nairobi Latvia/Riga
      Lebanon/Beirut Libya/Tripoli Lithuania/Vilnius Malta/Valletta
      Morocco/Rabat Nepal/Kathmandu Netherlands/Amsterdam Norway/Oslo
      Pakistan/Islamabad Panama/Panama Peru/Lima Philippines/Manila
      Poland/Warsaw Portugal/Lisbon Qatar/Doha Romania/Bucharest
      Russia/Moscow Scotland/Edinburgh Serbia/Belgrade Slovakia/Bratislava
      Slovenia/Ljubljana Spain/Madrid Sweden/Stockholm Syria/Damascus
      Taiwan/Taipei Thailand/Bangkok Tunisia/Tunis Turkey/Ankara
      Ukraine/Kiev Uruguay/Montevideo Venezuela/Caracas Vietnam/Hanoi
      Wales/Cardiff Yemen/Sanaa Zimbabwe/Harare
      """
    ),
  }
)


def choose_format(
  task: str,
  tokenizer: Tokenizer,
  formats: Sequence[Format],
  *,
  least: int = 12,
) -> tuple[Format, list[tuple[str, str]]]:
  """The first format in which enough labels are one token, and these pairs.

  Args:
    task: one of LISTS.
    tokenizer: of the model.
    formats: in the order of preference.
    least: pairs that a format has to leave.

  Raises:
    ValueError: no such task, or no format that leaves enough pairs.
  """
  check_choice("task", task, LISTS)
  counts = []
  for form in formats:
    pairs = [pair for pair in LISTS[task] if _is_usable(pair, form, tokenizer)]
    if len(pairs) >= least:
      return form, pairs
    counts.append(len(pairs))
  fail(
    f"task {task}",
    f"at most {max(counts, default=0)} of {len(LISTS[task])} labels that "
    f"tokenizer {tokenizer.name} writes as one token",
    f"at least {least}",
    "use another tokenizer, or a JSONL file of your own pairs",
  )


def lexical_examples(
  task: str,
  pairs: Sequence[tuple[str, str]],
  count: int,
  *labels: str | int,
  shots: int = 4,
) -> tuple[list[Example], list[Example]]:
  """Examples and their references, the same on every machine.

  Args:
    task: what they are called.
    pairs: inputs and labels to draw from.
    count: how many.
    labels: what they are for, such as a split; others give other examples.
    shots: demonstrations of each, two or more.

  Raises:
    ValueError: more demonstrations than pairs.
  """
  check(
    2 <= shots < len(pairs),
    "shots",
    shots,
    f"2 to {len(pairs) - 1}, less than there are pairs",
    "show fewer",
  )
  found = [
    _example(pairs, shots, (task, shots, *labels, i)) for i in range(count)
  ]
  clean, reference = zip(*found, strict=True)
  return list(clean), list(reference)


def _example(pairs, shots, which):
  """One example, and the one whose labels have moved on by some places."""
  chosen, step = [], 0
  while len(chosen) <= shots:
    pair = pairs[draw(len(pairs), *which, step)]
    step += 1
    # A word that two pairs share would give the answer away, or two answers.
    if not {*pair} & {word for other in chosen for word in other}:
      chosen.append(pair)
    if step > 100 * shots:
      fail(
        f"task {which[0]}",
        f"no {shots + 1} pairs without a common word",
        "more pairs",
        "show fewer demonstrations",
      )
  *shown, (query, answer) = chosen
  inputs, names = zip(*shown, strict=True)
  shift = 1 + draw(shots - 1, *which, "shift")
  moved = names[shift:] + names[:shift]
  return tuple(
    Example(
      tuple(zip(inputs, own, strict=True)), query, answer, names[0], query
    )
    for own in (names, moved)
  )


def _is_usable(pair, form: Format, tokenizer: Tokenizer) -> bool:
  context = f"{form.before}{pair[0]}{form.inside}"
  return next_token(tokenizer, context, form.lead + pair[1]) is not None
