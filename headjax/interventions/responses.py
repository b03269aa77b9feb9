"""How do all later heads answer a head's patch? One watched sweep.

What a later head reads of the stream through one of its inputs X is W_X LN(x):
before the bias, which cancels in every difference, and before a norm of q and
k, which mixes the heads; with a value adapter where there is one. A patch of
head i changes it

  directly   by W_X LN(x + delta) - W_X LN(x), as delta, what the patch itself
             adds to the stream, arrives there and nothing else has answered;
  in total   by the same with the stream of the patched run.

In models that norm the attention output, delta is by how much that norm's
output changes: exact, but no longer in the head's write space.

The attention of a later head at the answer changes by the total variation
between its patterns, half the sum of |a - a'|, if only its query, only its
keys, or both read x + delta, or if both read the patched run's stream. Here its
q and k are whole, with bias and norm. A screening head's weights need not sum
to 1.

Source: paper A, section 5.1 and appendix C.
"""

import time

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks
from headjax.interventions.observing import Layer, Patched
from headjax.interventions.prepared import Prepared, labels
from headjax.interventions.sweep import PRECISION, sweep_layers
from headjax.models.layers import wide
from headjax.models.load import LoadedModel
from headjax.models.spaces import inputs
from headjax.outline import of_fields, table_of_fields

PATHS = ("query", "keys", "direct", "total")
SUMS = ("dot", "direct_square", "total_square")


@flax.struct.dataclass
class Responses:
  """Watches one later layer, for one patched head.

  Attributes:
    real: `[batch]` bool, the examples that count.
  """

  real: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __call__(self, layer: Layer, patched: Patched, clean: jax.Array):
    """Sums `[head, input, 3]` of products, `[head, 4]` of variations."""
    counts = patched.changed & self.real
    streams = (patched.direct, patched.total)
    own, direct, total = map(layer.inputs, (clean, *streams))
    where = (counts[:, None] & layer.seen)[:, :, None, None]

    def products(letter):
      d, t = (
        jnp.where(where, x[letter] - own[letter], 0).astype(wide(clean.dtype))
        for x in (direct, total)
      )
      sums = [(a * b).sum((0, 1, 3)) for a, b in ((d, t), (d, d), (t, t))]
      return jnp.stack(sums, -1)

    return {
      "products": jnp.stack([products(letter) for letter in own], 1),
      "variation": self._variation(layer, patched, clean, counts),
    }

  def _variation(self, layer, patched, clean, counts):
    at_rest = layer.pattern(clean, clean)
    pairs = (
      (patched.direct, clean),
      (clean, patched.direct),
      (patched.direct, patched.direct),
      (patched.total, patched.total),
    )
    moved = jnp.stack([layer.pattern(*pair) for pair in pairs], -1)
    change = jnp.abs(moved - at_rest[..., None]).astype(wide(clean.dtype))
    # [batch, head, key, path]
    return jnp.where(counts[:, None, None, None], change, 0).sum((0, 2)) / 2


def head_responses(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Patches every head and watches all later ones.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts; all positions take their reference
      value.
    budget_bytes: memory for the sweep, per device, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset over `[source_layer, source_head, layer, head]`, NaN unless the
    second head is in a later layer, with sums over examples and positions (up
    to the answer) `dot` of the direct and the total response, `direct_square`
    and `total_square` of their squared norms, each `[..., input]`;
    `attention_change[..., path]`, the mean over examples of the total
    variation at the answer; and of the patches `effect[example, source_layer,
    source_head]` and `base[example]`, in logits (nats).

  Raises:
    ValueError: prompts that the model cannot run, or a budget that not one
      example fits.
  """
  began = time.perf_counter()
  config, n = model.config, len(pairs)
  letters = inputs(config)
  # Two streams and what all heads' maps make of them.
  maps = sum(config.d_key if x in "QK" else config.d_head for x in letters)
  watched = 3 * (config.d_model + config.n_heads * maps)
  prepared = Prepared(model, pairs, "z", budget_bytes, watched=watched)
  rows = prepared.plan.heads
  sites = (config.n_layers, config.n_heads)
  effect, base = np.zeros((n, *sites)), np.zeros(n)
  sums: dict[str, np.ndarray] = {}
  bar = tqdm(
    total=len(prepared) * sites[0] * sites[1],
    unit="head",
    desc=f"{pairs.name}: watching responses",
    disable=not progress,
  )
  with bar, jax.default_matmul_precision(PRECISION):
    for chunk in prepared:
      sweep = sweep_layers(
          model.model, chunk.params, chunk.shared, chunk.metric, chunk.base,
          observe=Responses(chunk.real), heads=rows, progress=bar.update,
      )  # fmt: skip
      real = chunk.place.stop - chunk.place.start
      effect[chunk.place] = np.moveaxis(sweep.effect, -1, 0)[:real]
      base[chunk.place] = sweep.base[:real]
      for name, found in sweep.observed.items():
        sums[name] = sums.get(name, 0) + found.astype(np.float64)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=prepared.plan.examples * rows,
      method="watched suffix sweep",
      site="z",
      position="all",
      ablation="reference",
    )
  return _labelled(sums, effect, base, letters, pairs, provenance)


def _labelled(sums, effect, base, letters, pairs, provenance) -> xr.Dataset:
  both = ("source_layer", "source_head", "layer", "head")
  line = np.arange(effect.shape[1])
  later = (line > line[:, None])[:, None, :, None, None]
  products, change = (
    np.where(later if x.ndim == 5 else later[..., None], x, np.nan)
    for x in (sums["products"], sums["variation"] / len(pairs))
  )
  about = {"long_name": "logit difference", "units": results.LOGITS}
  drop = about | {"long_name": "logit difference, clean minus patched"}
  units = {"units": "squared input", "long_name": "sum over all positions"}
  found = {
    name: ((*both, "input"), products[..., i], units)
    for i, name in enumerate(SUMS)
  }
  found["attention_change"] = (
    (*both, "path"),
    change,
    {"long_name": "total variation at the answer, mean", "units": "1"},
  )
  found["effect"] = (("example", *both[:2]), effect, drop)
  found["base"] = ("example", base, about)
  sizes = dict(zip(both, change.shape, strict=False))
  coords = {name: np.arange(size) for name, size in sizes.items()}
  coords |= {"input": list(letters), "path": list(PATHS)}
  return xr.Dataset(found, coords | labels(pairs), attrs=provenance)
