"""What did the paper print for its 21 models? Its tables 3 to 6, as numbers.

Names are those of the paper's repository (its table 4); three numbers in a row
are for the tasks sva, quote and plural.
"""

from collections.abc import Mapping
from typing import NamedTuple

TASKS = ("sva", "quote", "plural")


class Model(NamedTuple):
  """A row of table 4.

  Attributes:
    design: the row of configs/geometry.py.
    corpus: "R" or "S".
    seed: of the run.
    million_parameters: printed with two decimals.
    validation_loss: in nats a token; None where none is printed.
  """

  design: str
  corpus: str
  seed: int
  million_parameters: float
  validation_loss: float | None


# Table 4.
MODELS: Mapping[str, Model] = {
  "plain-learned42": Model("learned", "R", 42, 124.05, 3.604),
  "plain-learned43": Model("learned", "R", 43, 124.05, 3.595),
  "dense": Model("learned", "S", 42, 124.05, 3.508),
  "plain-identity42": Model("write-common-axis", "R", 42, 116.97, 3.643),
  "plain-identity43": Model("write-common-axis", "R", 43, 116.97, 3.643),
  "common42": Model("write-common", "R", 42, 116.97, 3.648),
  "layered42": Model("write-rotated", "R", 42, 116.97, 3.654),
  "rotated-m1-42": Model("write-rotated", "S", 42, 116.97, 3.563),
  "headblock-learned42": Model("read-common", "S", 42, 104.58, 3.610),
  "headblock-identity42": Model("all-common-axis", "S", 42, 97.50, 3.698),
  "rotated-m2-42": Model("all-rotated", "S", 42, 97.50, 3.751),
  "rotated-m3-42": Model("all-rotated-self", "S", 42, 97.50, 3.753),
  "fixed-sum-hub42": Model("write-routed-sum-hub", "S", 42, 124.05, 3.542),
  "fixed-split-cycle42": Model(
    "write-routed-split-cycle", "S", 42, 124.05, 3.543
  ),
  "fixed-angle-split42": Model(
    "write-routed-angle-split", "S", 42, 124.05, 3.553
  ),
  "fixeddiag42": Model("fixeddiag", "R", 42, 116.97, None),
  "value384": Model("value384", "S", 42, 124.05, None),
  "mlp3456": Model("mlp3456", "S", 42, 124.05, None),
  "identity-original42": Model("identity-original", "R", 42, 116.97, None),
  "multiscreen-identity42": Model(
    "multiscreen-identity", "R", 42, 106.51, None
  ),
  "multiscreen-learned42": Model("multiscreen-learned", "R", 42, 128.53, None),
}

# Table 5: accuracy in percent and logit margin, evaluation split.
PERFORMANCE = {
  "plain-learned42": ((99.2, 4.32), (97.5, 4.75), (94.2, 3.04)),
  "plain-learned43": ((99.6, 4.07), (94.6, 4.44), (93.8, 2.92)),
  "dense": ((99.6, 3.49), (100.0, 5.50), (97.1, 3.10)),
  "plain-identity42": ((100.0, 3.84), (93.3, 4.46), (93.8, 2.89)),
  "plain-identity43": ((100.0, 3.93), (90.4, 4.76), (90.0, 2.87)),
  "common42": ((98.8, 4.00), (92.1, 5.03), (92.9, 2.96)),
  "layered42": ((100.0, 3.63), (96.7, 4.70), (90.8, 2.73)),
  "rotated-m1-42": ((99.2, 3.64), (99.6, 4.53), (93.3, 2.91)),
  "headblock-learned42": ((98.3, 3.62), (99.6, 5.49), (94.6, 3.14)),
  "headblock-identity42": ((100.0, 3.81), (99.2, 4.99), (92.1, 2.30)),
  "rotated-m2-42": ((100.0, 3.88), (91.3, 3.92), (95.4, 2.44)),
  "rotated-m3-42": ((98.8, 3.66), (93.7, 4.22), (93.7, 2.54)),
  "fixed-sum-hub42": ((99.6, 3.45), (97.1, 4.20), (95.4, 3.06)),
  "fixed-split-cycle42": ((100.0, 3.63), (99.2, 4.93), (94.2, 3.04)),
  "fixed-angle-split42": ((100.0, 3.78), (94.2, 4.10), (96.3, 2.81)),
  "fixeddiag42": ((99.6, 3.90), (90.8, 4.83), (92.5, 3.13)),
  "value384": ((99.2, 3.81), (95.0, 3.96), (94.6, 2.99)),
  "mlp3456": ((100.0, 3.68), (88.3, 4.78), (93.8, 2.79)),
  "identity-original42": ((99.2, 3.08), (97.9, 4.38), (92.5, 2.96)),
  "multiscreen-identity42": ((97.9, 3.82), (93.8, 4.07), (85.8, 2.92)),
  "multiscreen-learned42": ((95.8, 3.47), (87.5, 4.22), (92.5, 3.54)),
}

# Table 6: Neff and E, evaluation split.
SPREAD = {
  "plain-learned42": ((10.0, 12.7), (12.8, 11.4), (13.3, 5.1)),
  "plain-learned43": ((12.7, 9.4), (16.9, 10.6), (6.0, 6.3)),
  "plain-identity42": ((17.7, 9.0), (27.0, 10.5), (9.4, 6.2)),
  "plain-identity43": ((11.2, 9.9), (26.6, 11.1), (17.1, 5.4)),
  "dense": ((10.4, 7.9), (12.0, 12.5), (9.2, 4.9)),
  "rotated-m1-42": ((16.2, 9.2), (22.2, 10.6), (22.2, 6.0)),
  "fixed-sum-hub42": ((18.9, 8.7), (31.6, 10.2), (20.3, 5.7)),
  "fixed-split-cycle42": ((29.1, 8.8), (29.0, 11.3), (21.6, 4.8)),
  "fixed-angle-split42": ((31.1, 8.8), (39.7, 8.9), (15.8, 5.1)),
  "headblock-learned42": ((8.1, 9.3), (11.0, 12.4), (10.0, 6.2)),
  "headblock-identity42": ((8.1, 9.0), (12.7, 9.1), (3.9, 5.1)),
  "rotated-m2-42": ((9.1, 8.2), (11.4, 8.1), (3.6, 5.3)),
  "rotated-m3-42": ((8.8, 8.8), (7.9, 9.9), (3.9, 5.3)),
}

# Table 3: N_index, N_layer given the index, and the example-wise Neff.
FACTORS = {
  "dense": ((5.6, 1.9, 20.1), (6.4, 1.9, 18.8), (4.9, 1.9, 24.0)),
  "rotated-m1-42": ((6.2, 2.6, 25.3), (6.7, 3.3, 34.8), (7.6, 2.9, 40.1)),
  "headblock-learned42": (
    (3.6, 2.3, 14.8), (5.3, 2.1, 16.1), (4.4, 2.3, 21.0)
  ),
  "headblock-identity42": ((2.0, 4.0, 11.9), (3.8, 3.3, 18.7), (2.3, 1.7, 9.1)),
  "rotated-m2-42": ((5.3, 1.7, 13.8), (5.7, 2.0, 17.4), (2.6, 1.4, 8.3)),
  "rotated-m3-42": ((4.4, 2.0, 13.0), (3.8, 2.1, 12.7), (2.7, 1.5, 9.0)),
  "mlp3456": ((3.3, 3.6, 19.0), (4.9, 4.3, 34.4), (6.0, 2.3, 28.7)),
}  # fmt: skip

# Section 5.3: Lambda and its p before the correction, discovery split; None
# where no value is printed.
LANES = {
  "common42": ((0.342, 0.007), (0.162, 0.033), (0.246, 0.030)),
  "plain-identity42": ((0.185, 0.07), (0.165, 0.03), (0.070, 0.34)),
  "mlp3456": ((0.457, 0.003), (0.360, 0.001), (None, None)),
  "value384": ((0.691, 0.001), (None, None), (None, None)),
  "headblock-identity42": ((0.720, 0.0002), (0.299, 0.001), (0.035, None)),
}

_COLUMNS = {
  "performance": (PERFORMANCE, ("paper_accuracy", "paper_margin")),
  "spread": (SPREAD, ("paper_neff", "paper_E")),
  "factors": (
    FACTORS, ("paper_n_index", "paper_n_layer", "paper_neff_example")
  ),
  "lanes": (LANES, ("paper_Lambda", "paper_p")),
}  # fmt: skip


def name_of(design: str, corpus: str, seed: int) -> str | None:
  """The paper's name of a run at full size; None if it is none of its models.

  Args:
    design: the row of the config, a repository name, or a row with its corpus
      (`learned-S`).
    corpus: that the run was trained on.
    seed: of the run.
  """
  row = design[:-2] if design[-2:] in ("-R", "-S") else design
  for name, model in MODELS.items():
    if row in (name, model.design) and (corpus, seed) == model[1:3]:
      return name
  return None


def columns(table: str, labels: Mapping) -> dict[str, float | None]:
  """The paper's values for one row of a table, to stand beside ours.

  Args:
    table: "performance", "spread", "factors" or "lanes".
    labels: `design`, `corpus`, `seed` and `task` of the row.

  Returns:
    Names of columns -> values; None where the paper has none.
  """
  values, names = _COLUMNS[table]
  name = name_of(labels["design"], labels["corpus"], labels["seed"])
  found = (None,) * len(names)
  if name in values and labels["task"] in TASKS:
    found = values[name][TASKS.index(labels["task"])]
  return dict(zip(names, found, strict=True))


def model_columns(labels: Mapping) -> dict[str, float | None]:
  """The paper's size and loss of the model of a row (table 4)."""
  name = name_of(labels["design"], labels["corpus"], labels["seed"])
  found = MODELS[name][3:] if name else (None, None)
  names = ("paper_million_parameters", "paper_validation_loss")
  return dict(zip(names, found, strict=True))


# Table 7: smallest and largest rank correlation of kernel and edge effect over
# the models of a row of the table: pooled, and the median within readers.
EDGES = {
  "learned": {
    "all": (0.30, 0.32), "Q": (0.46, 0.47), "K": (0.36, 0.40), "V": (0.12, 0.25)
  },
  "read-common": {
    "all": (0.04, 0.04), "Q": (0.12, 0.12), "K": (0.15, 0.15), "V": (0.22, 0.22)
  },
  "frozen": {
    "all": (-0.04, 0.07), "Q": (0.03, 0.10), "K": (0.05, 0.14),
    "V": (-0.08, 0.09),
  },
  "all-common-axis": {
    "all": (0.76, 0.76), "Q": (0.72, 0.72), "K": (0.73, 0.73), "V": (0.74, 0.74)
  },
}  # fmt: skip
_FROZEN = (
  "write-common-axis", "write-rotated", "write-routed-sum-hub", "fixeddiag",
  "value384", "mlp3456", "identity-original",
)  # fmt: skip


def edge_columns(row: Mapping) -> dict[str, float | None]:
  """The paper's range of a correlation for the model and input of a row.

  It is that of all edges pooled where the input is "all", and of the median
  within readers otherwise.
  """
  name = name_of(row["design"], row["corpus"], row["seed"])
  design = MODELS[name].design if name else None
  kind = "frozen" if design in _FROZEN else design
  low, high = EDGES.get(kind, {}).get(row["input"], (None, None))
  return {"paper_low": low, "paper_high": high}


def by_task(**values: str) -> dict[str, str]:
  """Task -> the paper's verdict on it; "-" where it has none."""
  return {task: values.get(task, "-") for task in TASKS}
