"""What does the study of circuits write? Tables and figures of its folder.

All of it is made from saved measurements alone.
"""

import pathlib
from collections.abc import Iterator, Mapping

import xarray as xr

from headjax.reports import spectral_bars, spectral_figures, spectral_seeds
from headjax.reports.figures import save_figure
from headjax.reports.rows import save_rows
from headjax.studies.spectral import (
  development,
  foretelling,
  screen,
  seeds,
  tables,
  trajectory,
  verify,
)

Tables = dict[str, list[dict]]


def save_model(
  found: xr.Dataset,
  swept: xr.Dataset | None,
  shift: int | None,
  folder: pathlib.Path,
) -> Tables:
  """Writes tables and figures of one model.

  Args:
    found: its heads, of a checkpoint or a series.
    swept: its ablations, if there are any.
    shift: of a series, the last step before other data; None: there were none.
    folder: of the model, whose name is that of the model.

  Returns:
    The tables, by name.
  """
  made = tables.of_measurement(found)
  if shift is not None:
    made |= tables.shift(found, shift)
  if swept is not None:
    made["verdicts"] = tables.verdicts(swept)
    made["ablations"] = verify.rows(swept)
  for name, rows in made.items():
    save_rows(rows, folder / "tables" / f"{name}.csv")
  for name, figure in _figures(folder.name, found, swept, made):
    save_figure(figure, folder / "figures" / name)
  return made


def _figures(name: str, found, swept, made: Tables) -> Iterator:
  """File name and figure."""
  final = trajectory.last(found)
  values, kinds = screen.selectivity(final), screen.classes(final).values
  yield "selectivity", spectral_figures.selectivity_maps(
    values.values, values.kind.values.tolist(),
    title=f"{name}: selectivity of all heads", threshold=screen.MEMBER,
  )  # fmt: skip
  if swept is not None:
    yield (
      "ablations",
      spectral_bars.ablation_bars(
        verify.shares(swept),
        {row["circuit"]: row["verdict"] for row in made["verdicts"]},
        title=f"{name}: without its circuits",
      ),
    )
  if "step" not in found.dims:
    return
  ordered = trajectory.ordered(found)
  yield "trajectories", spectral_figures.ratio_trajectories(
    ordered.step.values, ordered.ratio.sel(measure="entropy").values, kinds,
    title=f"{name}: participation ratios",
  )  # fmt: skip
  if "integral" in made:
    yield (
      "integral",
      spectral_figures.integral_ranking(
        made["integral"], title=f"{name}: heads by their integral"
      ),
    )
  yield (
    "recall",
    spectral_bars.recall_curves(
      {kind: made[f"recall_{kind}"] for kind in tables.KINDS},
      made["classes_by_step"],
      title=f"{name}: recall along training",
    ),
  )


def save_all(
  measured: Mapping[str, xr.Dataset],
  exchanged: Mapping[str, xr.Dataset],
  folder: pathlib.Path,
) -> Tables:
  """Writes what is told of several models.

  Args:
    measured: name of the model -> its heads.
    exchanged: name of the model -> its sweep over the circuits of all seeds.
    folder: of all results.

  Returns:
    The tables, by name.
  """
  made = {"models": tables.overview(measured), "sizes": tables.sizes(measured)}
  if exchanged:
    made["seeds"] = seeds.matrix(exchanged)
  for name, rows in made.items():
    save_rows(rows, folder / f"{name}.csv")
  for i, rows in enumerate(seeds.by_circuits(made.get("seeds", []))):
    figure = spectral_seeds.seed_matrix(rows, title="Circuits of other seeds")
    save_figure(figure, folder / "figures" / f"seeds{i or ''}")
  return made


def about_model(name: str, found: xr.Dataset, made: Tables) -> Iterator[str]:
  """Some lines on the heads of a model, and on when they were found.

  Args:
    name: of the model.
    found: its heads.
    made: its tables.
  """
  final = trajectory.last(found)
  yield f"\n{name}: {found.sizes['layer']} x {found.sizes['head']} heads"
  for kind in final.kind.values.tolist():
    heads = screen.members(final, kind)
    best = tables.spelt(screen.top(final, kind, 3))
    yield (
      f"  {kind:12} {len(heads):3} of at least {screen.MEMBER:g} times;"
      f" strongest {best}"
    )
  for kind in tables.KINDS:
    if f"recall_{kind}" in made:
      when = "never"
      if first := development.first_detection(made[f"recall_{kind}"]):
        when = f"step {first['step']} ({first['share']:.1%})"
      yield f"  two thirds of the final {kind} circuit: {when}"
    if made.get(f"foretold_{kind}"):
      yield f"  {kind} heads stand out, by {_foretold(made, kind)}"
  for row in made.get("shift", []):
    yield (
      f"  {row['kind']} after other data: Jaccard {row['jaccard']:.2f}"
      f" ({row['before'] or 'none'} -> {row['after'] or 'none'})"
    )


def _foretold(made: Tables, kind: str) -> str:
  """From which step each signal tells the final circuit."""
  rows = made[f"foretold_{kind}"]
  first = {s: foretelling.first_clear(rows, s) for s in foretelling.SIGNALS}
  return ", ".join(
    f"{signal}: {'never' if step is None else f'from step {step}'}"
    for signal, step in first.items()
  )
