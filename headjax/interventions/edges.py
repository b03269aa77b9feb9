"""How much does each head-to-head edge matter? Patched one at a time."""

import time
from collections.abc import Sequence

import jax
import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks, edge_rows
from headjax.interventions.batches import Batches
from headjax.interventions.edge_lists import COLUMNS, all_edges, check_edges
from headjax.interventions.nodes import check_sum
from headjax.interventions.questions import check_pairs
from headjax.interventions.sweep import PRECISION
from headjax.models.load import LoadedModel
from headjax.models.spaces import inputs

MEASURED = 2048  # rows from which on an unembedding is at its full rate


def patch_edges(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  edges: np.ndarray | None = None,
  layers: Sequence[int] | None = None,
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Patches edges, each alone, and measures how far the prediction moves.

  The single input of the reader sees the stream plus what the source's write
  changes between the clean and the reference prompt, at all positions; all
  else stays clean, until the reader's output differs.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    edges: `[edge, 5]` int, from `edge_lists.all_edges` or `sample_edges`;
      default all.
    layers: in place of `edges`: all those with both ends in these layers.
    budget_bytes: memory for the sweep, per device, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `kl[example, edge]` in nats, KL(clean || patched) of the
    whole next-token distribution at the answer, exactly 0 where the reader's
    input does not change; with the columns as coordinates of the edges, and
    the provenance in its attributes.

  Raises:
    ValueError: edges that the model does not have, ids outside the
      vocabulary, prompts longer than the context, too small a budget, or
      norms of the stream after every half.

  Source: paper A, appendix B.1.
  """
  check(
    edges is None or layers is None,
    "layers",
    "both edges and layers",
    "one of them",
    "select the edges, or leave the choice to the layers",
  )
  check_pairs(model.config, pairs)
  check_sum(model.config)
  if edges is None:
    edges = all_edges(model.config, layers)
  edges = check_edges(model.config, edges)
  began = time.perf_counter()
  with jax.default_matmul_precision(PRECISION):
    batches = _batches(model, pairs, budget_bytes)
    calls = _calls(edges, batches.plan.heads)
    kl = _sweep(batches, edges, calls, progress)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=batches.plan.examples * len(calls[0][0]),
      method="edges",
      ablation="reference",
      metric="kl",
    )
  about = {"long_name": "KL(clean || patched)", "units": "nats"}
  letters = np.array(list(inputs(model.config)))
  columns = {name: edges[:, i] for i, name in enumerate(COLUMNS)}
  columns["input"] = letters[edges[:, 4]]
  return xr.Dataset(
    {"kl": (("example", "edge"), kl, about)},
    {name: ("edge", column) for name, column in columns.items()},
    attrs=provenance,
  )


def _batches(model, pairs, budget_bytes) -> Batches:
  config = model.config
  n_heads, heads = config.n_heads, config.n_heads * config.d_head

  def extra(width):
    written = config.n_layers * n_heads * width * config.d_model
    return 2 * config.d_vocab + 4 * width * heads, written

  return Batches(
      model, pairs, budget_bytes, start=pairs.first_difference,
      many_sites=True, extra=extra,
  )  # fmt: skip


def _calls(edges: np.ndarray, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
  """Edges into one layer a call, all calls of one size: one compile.

  Returns:
    For each call the indices of its edges, the last repeated to fill it up,
    and the same without the repeats.
  """
  groups = [
    np.flatnonzero(edges[:, 2] == layer) for layer in np.unique(edges[:, 2])
  ]
  size = _even_size([len(group) for group in groups], most)
  return [
    (group[rows], group[place])
    for group in groups
    for rows, place in chunks.slices(len(group), size)
  ]


def _sweep(batches: Batches, edges, calls, show: bool) -> np.ndarray:
  """`[example, edge]` divergences, one batch after the other."""
  model, params = batches.model.model, batches.params
  kl = np.zeros((len(batches.pairs), len(edges)))
  rows = len(calls[0][0]) * batches.plan.examples
  together = min(len(calls), -(-MEASURED // rows))
  with batches.bar(len(edges), "edge", "patching edges", show) as bar:
    for part in batches:
      shared = edge_rows.prepared(model, params, part.batch, part.window)
      for index, place in chunks.slices(len(calls), together):
        ends = [_run(batches, shared, edges[calls[i][0]]) for i in index]
        found = edge_rows.measured(model, params, shared.metric, ends)
        for values, (_, own) in zip(
          np.asarray(found), calls[place], strict=False
        ):
          kl[part.place, own] = values[: len(own), : part.n].T
          bar.update(len(own))
  return kl


def _run(batches: Batches, shared, edges) -> edge_rows.Ends:
  """One call: edges into one layer."""
  model = batches.model.model
  layer, head, to, reader, letter = edges.astype(np.int32).T
  chosen = edge_rows.Edges(layer * model.config.n_heads + head, reader, letter)
  return edge_rows.compiled(model, batches.params, shared, to[0], chosen)


def _even_size(groups: list[int], most: int) -> int:
  """Rows a call, at most so many, that leave the groups' last calls full.

  All calls have one size, so that there is one compile.
  """
  sizes = range(-(-most // 2), most + 1)
  return min(sizes, key=lambda size: (sum(-g % size for g in groups), -size))
