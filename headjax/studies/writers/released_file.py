"""How does a released cell get off the disk? Field by field, or refused."""

import os
import re

import numpy as np

from headjax.checks import check, fail
from headjax.studies.writers.json_fields import Field, read_json
from headjax.studies.writers.paths import PATHS
from headjax.studies.writers.released import (
  HEAD_NUMBERS,
  PAIR_NUMBERS,
  Head,
  Path,
  Released,
)

_FIX = "take the file as it was released"
_MOST_HEADS = 10**4


def read_released(path: str | os.PathLike) -> Released:
  """Reads a released cell.

  Args:
    path: of the JSON file.

  Raises:
    ValueError: a file that cannot be read, or a field in it that is missing,
      of another type or size, out of its range or not finite.
  """
  root = read_json(path)
  n_shuffles = root["n_shuffle_seeds"].integer(least=2)
  discovery = root["discovery"].items(least=1)
  heads = [_head_at(entry) for entry in discovery]
  _check_distinct(root["discovery"].place, heads)
  n_seeds = len(discovery[0]["per_seed_real_dla"].items(least=1))
  seeds = [_seeds(entry["per_seed_real_dla"], n_seeds) for entry in discovery]
  screened, expected = root["screened"], root["expected"]
  sets = ("writers_refined", "cancellers_refined", "top_by_dla")
  return Released(
    task=root["task"].text(),
    model=root["model"].text(),
    n_prompts=root["n_prompts"].integer(least=2),
    n_shuffles=n_shuffles,
    q=_share(root["fdr_q"]),
    threshold=_positive(root["swing_threshold"]),
    n_bootstrap=root["n_bootstrap"].integer(least=1),
    heads=heads,
    numbers={
      name: np.array([entry[name].number() for entry in discovery])
      for name in HEAD_NUMBERS
    },
    shuffled=np.stack(
      [entry["shuf_dlas"].numbers(n_shuffles) for entry in discovery], axis=1
    ),
    by_seed=np.stack([means for means, _ in seeds], axis=1),
    seed_counts=np.stack([counts for _, counts in seeds], axis=1),
    passes_bh=np.array([e["passes_bh_fdr_q"].flag() for e in discovery]),
    passes_z=np.array([e["passes_z"].flag() for e in discovery]),
    classes=[entry["classification"].text() for entry in discovery],
    paths=_paths(root["path_patching"], set(heads)),
    screen_k=screened["pp_screen_k"].integer(least=0),
    sets={name: _pairs_of(screened[name]) for name in sets},
    writers=_names(expected["writers"]),
    cancellers=_names(expected["cancellers"]),
  )


def _head_at(entry: Field) -> Head:
  layer = entry["layer"].integer(least=0, most=_MOST_HEADS)
  return layer, entry["head"].integer(least=0, most=_MOST_HEADS)


def _seeds(field: Field, n: int) -> tuple[np.ndarray, np.ndarray]:
  """Means and counts of the prompts of every seed."""
  items = field.items()
  check(
    len(items) == n,
    field.place,
    f"{len(items)} seeds",
    f"{n} as in the first head",
    _FIX,
  )
  means = np.array([item["real_dla"].number() for item in items])
  return means, np.array([item["n"].integer(least=1) for item in items])


def _paths(field: Field, heads: set[Head]) -> dict[Head, Path]:
  """The candidates by head."""
  found = {}
  for name, entry in field.members().items():
    head = _named(name, entry.place)
    check(
      head in heads,
      entry.place,
      "a head that is not in discovery",
      "a head of this model",
      _FIX,
    )
    found[head] = _path(entry)
  check(
    bool(found),
    field.place,
    "no heads",
    "the candidates",
    _FIX,
  )
  return found


def _path(entry: Field) -> Path:
  pairs = entry["per_pair"].items(least=1)
  second = None
  if "seed2_direct_pct" in entry:
    second = (
      entry["seed2_direct_pct"].number(),
      entry["seed_robustness_abs_diff"].number(),
    )
  return Path(
    n_pairs=entry["n_pairs"].integer(least=1),
    n_valid=entry["n_valid"].integer(least=0),
    threshold=_positive(entry["valid_filter_threshold"]),
    n_bootstrap=entry["n_bootstrap"].integer(least=1),
    alpha=_share(entry["alpha"]),
    pairs={
      name: np.array([pair[name].number() for pair in pairs])
      for name in PAIR_NUMBERS
    },
    mean={path: entry[f"mean_{path}_pct"].number() for path in PATHS},
    interval={path: entry[f"ci_{path}"].numbers(2) for path in PATHS},
    p={path: entry[f"p_{path}_two_sided"].number() for path in PATHS},
    mean_swing=entry["mean_full_swing"].number(),
    samples=entry["bootstrap_direct_samples"].numbers(),
    second=second,
    passes=entry["pp_passes_bh_fdr_q"].flag(),
    label=entry["discovery_label"].text(),
  )


def _share(field: Field) -> float:
  value = field.number()
  if not 0 < value < 1:
    fail(field.place, value, "between 0 and 1", _FIX)
  return value


def _positive(field: Field) -> float:
  value = field.number()
  if value <= 0:
    fail(field.place, value, "above 0", _FIX)
  return value


def _pairs_of(field: Field) -> set[Head]:
  """A set of heads that is written as a list of [layer, head]."""
  found = []
  for item in field.items():
    numbers = item.items()
    check(
      len(numbers) == 2,
      item.place,
      f"{len(numbers)} numbers",
      "[layer, head]",
      _FIX,
    )
    found.append(tuple(n.integer(least=0, most=_MOST_HEADS) for n in numbers))
  _check_distinct(field.place, found)
  return set(found)


def _names(field: Field) -> set[Head]:
  """A set of heads that is written as a list of names."""
  found = [_named(item.text(), item.place) for item in field.items()]
  _check_distinct(field.place, found)
  return set(found)


def _named(name: str, place: str) -> Head:
  match = re.fullmatch(r"L(\d{1,4})\.H(\d{1,4})", name, re.ASCII)
  if not match:
    fail(place, f"{name!a:.40}", "a head such as L11.H4", "name a head")
  layer, head = match.groups()
  return int(layer), int(head)


def _check_distinct(place: str, heads: list[Head]) -> None:
  check(
    len(set(heads)) == len(heads),
    place,
    f"{len(heads)} heads, {len(set(heads))} of them different",
    "each head once",
    _FIX,
  )
