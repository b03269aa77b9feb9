"""Does the geometry of two heads tell how much their edge matters? B.1.

Every edge from a head to an input of a later one is patched alone, and its
divergence compared with the projection kernel of what the source can write and
what the reader's weights read.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.geometry.survey import kernel_of_all_pairs
from headjax.interventions.chunks import GIB
from headjax.interventions.edge_lists import (
  COLUMNS,
  all_edges,
  sample_edges,
)
from headjax.interventions.edges import patch_edges
from headjax.models.load import LoadedModel
from headjax.models.spaces import inputs, read_spaces, write_spaces
from headjax.statistics.rank_correlation import rank_correlation, within_groups

# Where designs make all kernels alike they differ by a few parts in 10,000:
# nothing to rank edges by.
ALIKE = 1e-3


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  layers: Sequence[int] | None = None,
  share: float = 1.0,
  seed: int = 0,
  budget_bytes: int = 2 * GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Patches edges and adds the kernels of their ends.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts; the paper takes 16 of `sva`.
    layers: that both ends must lie in; default all.
    share: of these edges, drawn at random.
    seed: of the draw.
    budget_bytes: memory, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `kl[example, edge]` in nats and `pk[edge]`, the kernel of
    the source's write space and the reader's weight read space.

  Source: paper A, appendix B.1 and table 7.
  """
  edges = sample_edges(all_edges(model.config, layers), share, seed)
  data = patch_edges(
    model, pairs, edges=edges, budget_bytes=budget_bytes, progress=progress
  )
  about = {"long_name": "projection kernel", "units": "dimensions"}
  data["pk"] = ("edge", kernels(model, edges), about)
  return data.assign_attrs(share=share, edge_seed=seed)


def kernels(model: LoadedModel, edges: np.ndarray) -> np.ndarray:
  """`[edge]` projection kernels of edges `[edge, 5]`, by the weights alone."""
  write = write_spaces(model.params, model.config)
  found = np.zeros(len(edges))
  for i, letter in enumerate(inputs(model.config)):
    read = read_spaces(model.params, model.config, letter, folded=False)
    pk = kernel_of_all_pairs(read, write)
    here = edges[:, 4] == i
    source_layer, source_head, layer, head, _ = edges[here].T
    found[here] = pk[layer, head, source_layer, source_head]
  return found


def summarise(data: xr.Dataset) -> list[dict]:
  """Rank correlations of the kernel with the mean divergence.

  Args:
    data: from `measure`.

  Returns:
    One row for all inputs and one for each: Spearman over all edges, nan where
    the design makes all kernels alike; the median over readers, of the edges
    into one input of one head; and how many readers have a correlation, or
    have none because their kernels or divergences are constant.
  """
  kl = data.kl.mean("example").values
  letters, pk = data["input"].values, data.pk.values
  readers = np.stack(
    [np.unique(data[name], return_inverse=True)[1] for name in COLUMNS[2:]], 1
  )
  rows = []
  for letter in ("all", *sorted(set(letters.tolist()), key="QKVG".index)):
    here = np.ones(len(kl), bool) if letter == "all" else letters == letter
    within = within_groups(pk[here], kl[here], readers[here], ALIKE)
    rows.append(
      {
        "input": letter,
        "edges": int(here.sum()),
        "without_effect": int((kl[here] == 0).sum()),
        "spearman": rank_correlation(pk[here], kl[here], ALIKE),
        "median_within_readers": within.median,
        "readers": within.groups,
        "readers_of_constant_kernel": within.constant_x,
        "readers_of_constant_kl": within.constant_y,
      }
    )
  return rows
