"""What does the study say about one model on one task? A cell, from its data.

`measure_cell` runs the model; `judge` makes every number and label of the cell
from the saved datasets alone.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import xarray as xr

from headjax.interventions.group_lesions import lesion_groups
from headjax.models.load import LoadedModel
from headjax.statistics.partitions import partitions
from headjax.statistics.resampling import Interval
from headjax.studies.writers import measuring
from headjax.studies.writers.discovery import Discovery, discover
from headjax.studies.writers.lesions import (
  SignShuffle,
  Verdict,
  change,
  sign_shuffle,
  split_groups,
  verdict,
)
from headjax.studies.writers.paths import Shares, shares
from headjax.studies.writers.prompts import Prompts

ABLATIONS = ("zero", "mean")
GROUPS = ("writers", "cancellers", "both")


@dataclasses.dataclass(frozen=True)
class Cell:
  """Everything that a cell says.

  Attributes:
    discovery: tests of all heads.
    shares: of the candidates, in the order of `candidates`.
    candidates: (layer, head) each.
    accuracy: share of evaluation prompts whose answer beats its foil.
    changes: ablation -> group -> change of the logit difference without it.
    verdicts: ablation -> what follows.
  """

  discovery: Discovery
  shares: Shares
  candidates: list[tuple[int, int]]
  accuracy: float
  changes: dict[str, dict[str, Interval]]
  verdicts: dict[str, Verdict]

  def of_role(self, role: str) -> list[tuple[int, int]]:
    """The candidates with a role."""
    found = zip(self.candidates, self.shares.roles, strict=True)
    return [head for head, own in found if own == role]

  def rows(self) -> list[dict[str, object]]:
    """One row for each candidate, the largest direct shares first."""
    control, direct = self.discovery.control, self.shares.direct
    rows = [
      {
        "head": f"L{layer}.H{head}",
        "role": str(self.shares.roles[i]),
        "attribution": float(control.mean[layer, head]),
        "z": float(control.z[layer, head]),
        "significant": bool(self.discovery.significant[layer, head]),
        "direct": float(direct.mean[i]),
        "direct_low": float(direct.low[i]),
        "direct_high": float(direct.high[i]),
        "p_adjusted": float(self.shares.adjusted[i]),
        "total": float(self.shares.total.mean[i]),
      }
      for i, (layer, head) in enumerate(self.candidates)
    ]
    return sorted(rows, key=lambda row: -abs(np.nan_to_num(row["direct"])))


def measure_cell(
  model: LoadedModel, prompts: Prompts, *, progress: bool = False, **settings
) -> dict[str, xr.Dataset]:
  """Runs the model: attributions, then paths of the candidates, then lesions.

  Args:
    model: from `load_model`.
    prompts: of the cell.
    progress: whether to show a progress bar.
    **settings: as `judge` takes them.

  Returns:
    Name -> dataset: `attributions`, `paths`, `lesions-zero`, `lesions-mean`.
  """
  data = {
    "attributions": measuring.attributions(
      model, prompts.discovery.pairs, prompts.shuffled
    )
  }
  found = _discover(data, settings)
  heads = [tuple(map(int, at)) for at in np.argwhere(found.candidates)]
  data["paths"] = measuring.path_effects(
    model, prompts.paths.pairs, heads, progress=progress
  )
  _, own = _shares(data, settings)
  groups = _groups(heads, own.roles, found.candidates.shape)
  for ablation in ABLATIONS:
    means = prompts.discovery if ablation == "mean" else None
    data[f"lesions-{ablation}"] = measuring.lesions(
      model, prompts.evaluation, groups, means_from=means
    )
  return data


def judge(data: Mapping[str, xr.Dataset], **settings) -> Cell:
  """Everything that a cell says, from what was measured.

  Args:
    data: of `measure_cell`.
    **settings: `rule` and `q` of the discovery; `draws` and `seed` of all
      resamples; `least_pairs` of the shares.

  Returns:
    The cell. Where there are no roles its groups are empty, their lesions
    change nothing and the verdict is "none".
  """
  candidates, own = _shares(data, settings)
  changes = {
    ablation: _changes(data[f"lesions-{ablation}"], settings)
    for ablation in ABLATIONS
  }
  base = data["lesions-zero"].base.values
  return Cell(
    _discover(data, settings),
    own,
    candidates,
    float((base > 0).mean()),
    changes,
    {
      name: verdict(*(found[group] for group in GROUPS))
      for name, found in changes.items()
    },
  )


def shuffle_roles(
  model: LoadedModel,
  prompts: Prompts,
  found: Cell,
  *,
  limit: int = 10_000,
  examples: int = 32,
  seed: int = 0,
) -> SignShuffle | None:
  """Whether other splits of the writers and cancellers oppose as much.

  Every split costs two lesions of all layers.

  Args:
    model: from `load_model`.
    prompts: of the cell; the first evaluation prompts are run.
    found: the cell.
    limit: all splits are run if there are no more, otherwise as many random
      ones.
    examples: prompts.
    seed: of random splits.

  Returns:
    The outcome, of zero ablation; None where a group is empty.

  Source: paper C, the sign-shuffle null.
  """
  groups = [found.of_role(role) for role in ("writer", "canceller")]
  if not all(groups):
    return None
  heads = [head for group in groups for head in group]
  first = np.arange(len(heads)) < len(groups[0])
  splits = partitions(first, limit=limit, seed=seed)
  shape = found.discovery.p.shape
  both = np.concatenate(split_groups(heads, splits, shape))
  pairs = prompts.evaluation.pairs
  pairs = pairs.select(slice(min(examples, len(pairs))))
  data = lesion_groups(model, pairs, both)
  lesioned = np.split(data.lesioned.values, 2, axis=1)
  return sign_shuffle(data.base.values, *lesioned, splits)


def _discover(data, settings) -> Discovery:
  chosen = _only(settings, "rule", "q", "draws", "seed")
  table = data["attributions"]
  return discover(table.attribution.values, table.shuffled.values, **chosen)


def _shares(data, settings) -> tuple[list[tuple[int, int]], Shares]:
  """The candidates and their shares."""
  paths = data["paths"]
  layers, heads = paths.source_layer.values, paths.source_head.values
  found = shares(
    paths.direct.values,
    paths.total.values,
    paths.clean.values - paths.flipped.values,
    **_only(settings, "q", "draws", "seed", "least_pairs"),
  )
  return list(zip(layers.tolist(), heads.tolist(), strict=True)), found


def _changes(data: xr.Dataset, settings) -> dict[str, Interval]:
  """Changes without each group."""
  chosen = _only(settings, "draws", "seed")
  return {
    group: change(data.base.values, data.lesioned.values[:, i], **chosen)
    for i, group in enumerate(GROUPS)
  }


def _groups(heads, roles, shape) -> np.ndarray:
  """`[group, layer, head]` in the order of GROUPS."""
  found = np.zeros((3, *shape), bool)
  for (layer, head), role in zip(heads, roles, strict=True):
    found[0, layer, head] = role == "writer"
    found[1, layer, head] = role == "canceller"
  found[2] = found[0] | found[1]
  return found


def _only(settings: Mapping, *names: str) -> dict:
  return {name: settings[name] for name in names if name in settings}
