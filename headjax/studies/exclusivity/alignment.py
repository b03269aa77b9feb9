"""Do heads read with their values what they write? Section 5.4, by weights.

Measured at each checkpoint: how far a head's value read space is its own write
space, whether it reads its own best of all write spaces of its layer, how
nearly its OV map repeats itself, and, with text, whether the gradient prefers
its own writes before the weights do.

Source: paper A, section 5.4 and appendix C (self-alignment statistics).
"""

import time

import numpy as np
import xarray as xr

from headjax import results
from headjax.geometry.circuits import ov_circuit, scaled_idempotence
from headjax.geometry.energy import gram_basis
from headjax.geometry.kernels import pairwise_projection_kernel
from headjax.geometry.survey import alignment_within
from headjax.interventions.pooling import as_pairs
from headjax.interventions.value_gradients import value_gradient_traces
from headjax.models import spaces, weights
from headjax.models.load import LoadedModel

SITES = ("layer", "head")
WITHIN = (*SITES, "writer")


def measure(
  model: LoadedModel,
  sequences: np.ndarray | None = None,
  *,
  progress: bool = False,
) -> xr.Dataset:
  """How far each head reads what it writes.

  Args:
    model: from `load_model`; of a training run, one checkpoint (RUN@STEP).
    sequences: `[sequence, pos]` ids of text, for the gradients; None leaves
      them out.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `pk[layer, head, writer]` of value read spaces, by their
    weights alone, with the write spaces of the same layer; `rho_self`,
    `own_best` (0 or 1) and `idempotence`, `[layer, head]`; and with text
    `trace[layer, head, writer]`, the traces tr(G_h O_j) summed over tokens.

  Raises:
    ValueError: sequences for a model whose values read a block by design.
  """
  began = time.perf_counter()
  config, params = model.config, model.params
  read = spaces.read_spaces(params, config, "V", folded=False, basis=gram_basis)
  W_V, W_O = (
    weights.per_query_head(params, config, name) for name in ("W_V", "W_O")
  )
  write = gram_basis(W_O.mT)
  pk = np.asarray(pairwise_projection_kernel(read, write))
  own = alignment_within(pk, np.asarray(read.rank), np.asarray(write.rank))
  idempotence = np.asarray(scaled_idempotence(ov_circuit(W_V, W_O)))
  arrays = {
    "pk": (WITHIN, pk, {"units": "dimensions"}),
    "rho_self": (SITES, own.own, {"units": "1"}),
    "own_best": (SITES, own.best.astype(np.int8), {"units": "1"}),
    "idempotence": (SITES, idempotence, {"units": "1"}),
  }
  if sequences is not None:
    trace = value_gradient_traces(model, sequences, progress=progress)
    arrays["trace"] = (WITHIN, trace, {"units": "nats"})
  coordinates = {d: np.arange(n) for d, n in zip(WITHIN, pk.shape, strict=True)}
  # The provenance names the text; weights alone need none.
  text = np.zeros((1, 1), int) if sequences is None else sequences
  return xr.Dataset(
    arrays,
    coordinates,
    attrs=results.provenance(
      model=model,
      pairs=as_pairs(text),
      wall_s=time.perf_counter() - began,
      chunk=1,
    ),
  )


def summarise(found: xr.Dataset) -> dict[str, float]:
  """One checkpoint in numbers; layer 0, which reads no heads, apart.

  Args:
    found: from `measure`.

  Returns:
    `own_best` and `rho_self` of layers from 1 on (share of heads, and mean),
    the same of layer 0; `chance`, that of reading one's own best; the median
    `idempotence` over all heads; with text, `own_gradient`, the share of heads
    in all layers whose own trace is the largest in absolute value.
  """
  best, rho = found.own_best.values, found.rho_self.values
  row = {
    "own_best": _mean(best[1:]),
    "rho_self": _mean(rho[1:]),
    "own_best_layer_0": _mean(best[0]),
    "rho_self_layer_0": _mean(rho[0]),
    "chance": 1 / found.sizes["head"],
    "idempotence": float(np.nanmedian(found.idempotence.values)),
  }
  if "trace" in found:
    size = np.abs(found.trace.values)
    own = np.diagonal(size, axis1=1, axis2=2)
    row["own_gradient"] = _mean(own >= size.max(axis=-1))
  return row


def _mean(values: np.ndarray) -> float:
  return float(values.mean()) if values.size else float("nan")
