"""How much does each head-to-head edge matter? Patched one at a time."""

import time
from collections.abc import Sequence

import jax
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check
from headjax.data.pairs import PromptPairs
from headjax.interventions import chunks, edge_rows, suffix
from headjax.interventions.edge_lists import COLUMNS, all_edges, check_edges
from headjax.interventions.questions import batch_of, check_pairs
from headjax.interventions.sweep import PRECISION
from headjax.models.load import LoadedModel
from headjax.models.spaces import inputs


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
      vocabulary, prompts longer than the context, or too small a budget.

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
  if edges is None:
    edges = all_edges(model.config, layers)
  edges = check_edges(model.config, edges)
  began = time.perf_counter()
  with jax.default_matmul_precision(PRECISION):
    job = _Job(model, pairs, edges, budget_bytes)
    kl = job.run(progress)
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=job.plan.examples * job.rows,
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


class _Job:
  """One sweep over all chunks: the plan, the placement and the loop."""

  def __init__(self, model, pairs, edges, budget_bytes):
    self.model, self.pairs, self.edges = model.model, pairs, edges
    config = model.config
    self.n_devices = min(jax.local_device_count(), len(pairs))
    self.params = chunks.replicate(model.params, self.n_devices)
    self.width = self.window(slice(None)).width
    heads = config.n_heads * config.d_head
    self.plan = chunks.plan_rows(
      config,
      n_examples=len(pairs),
      n_pos=pairs.clean.shape[1],
      width=self.width,
      itemsize=jax.tree.leaves(model.params)[0].dtype.itemsize,
      budget_bytes=budget_bytes,
      n_devices=self.n_devices,
      row_extra=2 * config.d_vocab + self.width * 4 * heads,
      example_extra=config.n_layers
      * config.n_heads
      * (self.width * config.d_model),
    )
    self.groups = [
      np.flatnonzero(edges[:, 2] == layer) for layer in np.unique(edges[:, 2])
    ]
    self.rows = _even_size([len(g) for g in self.groups], self.plan.heads)

  def window(self, index, width: int | None = None) -> suffix.Window:
    return suffix.make_window(
      self.model.config,
      self.pairs.first_difference[index],
      self.pairs.answer_pos[index],
      self.pairs.clean.shape[1],
      width,
    )

  def run(self, show: bool) -> np.ndarray:
    kl = np.zeros((len(self.pairs), len(self.edges)))
    parts = list(chunks.slices(len(self.pairs), self.plan.examples))
    bar = tqdm(
      total=len(parts) * len(self.edges),
      unit="edge",
      unit_scale=self.plan.examples,
      desc=f"{self.pairs.name}: patching edges",
      disable=not show,
    )
    with bar:
      for index, place in parts:
        n = place.stop - place.start
        for edges, found in self.chunk(index):
          kl[place, edges] = found[:, :n].T
          bar.update(len(edges))
    return kl

  def chunk(self, index: np.ndarray):
    """Yields some edges and their `[edge, batch]` divergences."""
    batch = chunks.spread(batch_of(self.pairs, index), self.n_devices)
    window = chunks.spread(self.window(index, self.width), self.n_devices)
    shared = edge_rows.prepared(self.model, self.params, batch, window)
    for group in self.groups:
      for rows, place in chunks.slices(len(group), self.rows):
        chosen = self.edges[group[rows]].astype(np.int32)
        found = edge_rows.compiled(
          self.model, self.params, shared, chosen[0, 2], self.of(chosen)
        )
        yield group[place], np.asarray(found)[: place.stop - place.start]

  def of(self, chosen: np.ndarray) -> edge_rows.Edges:
    layer, head, _, reader, letter = chosen.T
    return edge_rows.Edges(
      layer * self.model.config.n_heads + head, reader, letter
    )


def _even_size(groups: list[int], most: int) -> int:
  """Rows a call, at most so many, that leave the groups' last calls full.

  All calls have one size, so that there is one compile.
  """
  sizes = range(-(-most // 2), most + 1)
  return min(sizes, key=lambda size: (sum(-g % size for g in groups), -size))
