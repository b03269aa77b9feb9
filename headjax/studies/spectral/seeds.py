"""Is a circuit that of its own seed? Every circuit gone in every model."""

import os
from collections.abc import Iterable, Mapping, Sequence

import xarray as xr

from headjax.checks import check
from headjax.data.probes import Probe
from headjax.models.load import LoadedModel
from headjax.studies.spectral.controls import Head
from headjax.studies.spectral.verify import verdict, verify


def exchange(
  models: Iterable[tuple[str, LoadedModel]],
  circuits: Mapping[str, Sequence[Head]],
  probe: Probe,
  *,
  folders: Mapping[str, str | os.PathLike] | None = None,
  **options,
) -> dict[str, xr.Dataset]:
  """Ablates the circuit of every seed in every other one, with controls.

  Seeds without a circuit are left out as sources of one.

  Args:
    models: name of the seed, and its model; one is in memory at a time.
    circuits: name of the seed -> heads (layer, head).
    probe: rows with a right answer each.
    folders: name of the model -> where its ablated groups are kept.
    **options: of `verify`.

  Returns:
    Name of the model -> the sweep over all circuits.
  """
  some = {name: heads for name, heads in circuits.items() if heads}
  check(
    bool(some), "circuits", "none with a head", "at least one",
    "train for longer, or lower the threshold",
  )  # fmt: skip
  return {
    name: verify(
      model, probe, some, folder=(folders or {}).get(name), **options
    )
    for name, model in models
  }


def alike(found: Mapping[str, xr.Dataset]) -> list[list[str]]:
  """The names of the models of each architecture, in their order.

  Args:
    found: name of the model -> its measurement.
  """
  groups = {}
  for name, one in found.items():
    groups.setdefault(one.attrs["model_config"], []).append(name)
  return list(groups.values())


def matrix(found: Mapping[str, xr.Dataset]) -> list[dict]:
  """A row for each circuit and each model that it was ablated in.

  Args:
    found: from `exchange`.

  Returns:
    Rows with the drop of top-1, those of matched random heads, and the
    verdict; `own` where circuit and model are of one seed.
  """
  table = []
  for model, sweep in found.items():
    for circuit in dict.fromkeys(sweep.circuit.values.tolist()):
      judged = verdict(sweep, circuit)
      table.append(
        {
          "circuit": circuit,
          "model": model,
          "own": circuit == model,
          "base": judged.base,
          "drop": judged.drop,
          "random_mean": judged.random_mean,
          "random_largest": judged.random_largest,
          "logit_drop": judged.logit_drop,
          "verdict": judged.name,
          "why": judged.why,
        }
      )
  return table


def by_circuits(rows: Sequence[dict]) -> list[list[dict]]:
  """The rows of `matrix`, a list for each set of exchanged circuits."""
  groups = {}
  for model in dict.fromkeys(row["model"] for row in rows):
    mine = [row for row in rows if row["model"] == model]
    groups.setdefault(tuple(row["circuit"] for row in mine), []).extend(mine)
  return list(groups.values())


def wide(rows: Sequence[dict]) -> list[dict]:
  """To read: a row a circuit, a column a model.

  Args:
    rows: of one set of circuits.

  Returns:
    Rows with the drop of top-1 and, in brackets, the mean drop without matched
    random heads.
  """
  table = {}
  for row in rows:
    line = table.setdefault(row["circuit"], {"circuit": row["circuit"]})
    line[row["model"]] = f"{row['drop']:z.3f} ({row['random_mean']:z.3f})"
  return list(table.values())
