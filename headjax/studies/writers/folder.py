"""Where do the results of a cell go? One folder, whose files make it again."""

import os
import pathlib
from collections.abc import Mapping, Sequence

import xarray as xr

from headjax import results
from headjax.interventions.answer_edits import last_tokens
from headjax.models.load import LoadedModel
from headjax.studies.writers import explained, explaining, steering, transfer
from headjax.studies.writers.cell import Cell
from headjax.studies.writers.prompts import TASKS, Prompts

Rows = list[dict[str, object]]
_WRITTEN = 8  # prompts that are gone on with


def save_all(
  data: Mapping[str, xr.Dataset], folder: str | os.PathLike, prefix: str = ""
) -> None:
  """Writes each dataset as FOLDER/PREFIXNAME.nc."""
  for name, dataset in data.items():
    results.save(dataset, pathlib.Path(folder) / f"{prefix}{name}.nc")


def study_groups(
  model: LoadedModel,
  prompts: Prompts,
  found: Cell,
  folder: str | os.PathLike,
  *,
  parts: Sequence[str] | None = None,
  draws: int = 10_000,
  seed: int = 0,
) -> tuple[dict[str, Rows], dict[str, str]]:
  """Everything beyond the verdict: how groups work, and what they are good for.

  Args:
    model: from `load_model`.
    prompts: of the cell.
    found: the cell.
    folder: where the datasets go.
    parts: of the mechanism; None means all.
    draws: of all resamples.
    seed: of these.

  Returns:
    Name -> rows of every table, and name -> why there is none.
  """
  options = {"draws": draws, "seed": seed}
  data, reasons = explaining.explain(model, prompts, found, parts=parts)
  save_all(data, folder)
  made = explained.tables(data, found, **options)
  if not any(explaining.roles(found)):
    return made, reasons | {"actions": "no writers and no cancellers"}
  if "writes" in data:
    made |= _actions(model, prompts, found, data["writes"], folder, options)
  made |= _elsewhere(model, prompts, found, folder, options, reasons)
  return made, reasons


def _actions(model, prompts, found, writes, folder, options):
  """Lesions, transplants, steering, and what is written under it."""
  acted = steering.act_on_groups(model, prompts, found, writes)
  save_all(acted, folder, "acted-")
  made = {"actions": steering.acted(acted, **options)}
  if model.tokenizer is not None and model.config.causal:
    vectors = steering.steering_vectors(
      writes["mean"].values, *explaining.roles(found)
    )
    pairs = prompts.shuffled[0]
    pairs = pairs.select(slice(min(_WRITTEN, len(pairs))))
    room = model.config.n_ctx - last_tokens(pairs).shape[1]
    if room > 0:
      made["written"] = steering.write_on(
        model, pairs, vectors, max_new=min(4, room)
      )
  return made


def _elsewhere(model, prompts, found, folder, options, reasons):
  """The groups and the leading canceller on other templates."""
  own = prompts.discovery.pairs.name
  head = transfer.leading_canceller(found)
  heads = [] if head is None else [head]
  made = {}
  if prompts.discovery.examples:
    data, refused = transfer.on_templates(model, found, TASKS, heads=heads)
    reasons |= {f"transfer to {task}": why for task, why in refused.items()}
    save_all(data, folder, "transfer-")
    rows = transfer.transfer_rows(transfer.transferred(data, **options))
    made["transfer"] = [row | {"own": row["task"] == own} for row in rows]
  before = [x for x in found.of_role("writer") if head and x[0] < head[0]]
  if before:
    made["composition"] = transfer.value_composition(model, head, before)
  return made
