"""Is a circuit that of its own seed? Every circuit gone in every model."""

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
  **options,
) -> dict[str, xr.Dataset]:
  """Ablates the circuit of every seed in every other one, with controls.

  Seeds without a circuit are left out as sources of one.

  Args:
    models: name of the seed, and its model; one is in memory at a time.
    circuits: name of the seed -> heads (layer, head).
    probe: rows with a right answer each.
    **options: of `verify`.

  Returns:
    Name of the model -> the sweep over all circuits.
  """
  some = {name: heads for name, heads in circuits.items() if heads}
  check(
    bool(some), "circuits", "none with a head", "at least one",
    "train for longer, or lower the threshold",
  )  # fmt: skip
  return {name: verify(model, probe, some, **options) for name, model in models}


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
