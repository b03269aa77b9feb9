"""From where do the heads of a circuit read? Appendix B.3.

ACDC at several thresholds, because the size of a circuit depends on it: no
claim is drawn from the size, but the senders of the edges into attention are
counted by their kind.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headjax.data.pairs import PromptPairs
from headjax.interventions import nodes
from headjax.interventions.chunks import GIB
from headjax.interventions.circuits import find_circuit
from headjax.models.load import LoadedModel

THRESHOLDS = (0.0003, 0.001, 0.003)
KINDS = ("embedding", "positions", "head", "mlp")
PER_THRESHOLD = ("value", "decisions", "batches", "wall_s", "chunk")


def measure(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  thresholds: Sequence[float] = THRESHOLDS,
  ablation: str = "reference",
  speculate: int = 4,
  budget_bytes: int = 2 * GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Searches a circuit at each threshold, by the divergence at the answer.

  Args:
    model: from `load_model`, without norms of what its parts write.
    pairs: clean and reference prompts.
    thresholds: tau, in nats.
    ablation: what absent edges carry, "reference" or "zero".
    speculate: decisions measured at once.
    budget_bytes: memory, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `present[threshold, receiver, sender]`, `rise`, and for each
    threshold the divergence `value` that the circuit is left with, its
    `decisions` and `batches`; and by sender and receiver their kinds.

  Source: paper A, appendix B.3 (tau = 0.001) and C.
  """
  found = [
    find_circuit(
      model, pairs, threshold, ablation=ablation, speculate=speculate,
      budget_bytes=budget_bytes, progress=progress,
    )
    for threshold in thresholds
  ]  # fmt: skip
  data = xr.concat(
    [one[["present", "rise"]] for one in found],
    "threshold",
    combine_attrs="override",
  ).assign_coords(
    threshold=list(thresholds),
    sender_kind=("sender", [n.kind for n in nodes.senders(model.config)]),
    receiver_kind=("receiver", [n.kind for n in nodes.receivers(model.config)]),
  )
  for name in ("value", "decisions", "batches"):
    data[name] = ("threshold", [one.attrs[name] for one in found])
  data["value"].attrs["units"] = "nats"
  attributes = {
    k: v
    for k, v in found[0].attrs.items()
    if k not in ("threshold", *PER_THRESHOLD)
  }
  wall = sum(one.attrs["wall_s"] for one in found)
  data.attrs = attributes | {"wall_s": wall, "chunk": found[0].attrs["chunk"]}
  return data


def summarise(data: xr.Dataset) -> list[dict]:
  """A row for each threshold: the circuit, and what its heads read.

  Args:
    data: from `measure`.

  Returns:
    Its edges, those into attention by the kind of their sender, the heads and
    MLPs that it keeps, and what it lacks of the model's prediction.
  """
  rows = []
  receiver, sender = data.receiver_kind.values, data.sender_kind.values
  for threshold in data.threshold.values.tolist():
    here = data.sel(threshold=threshold)
    present = here.present.values.astype(bool)
    into = present[receiver == "head"]
    sends = present.any(0)
    rows.append(
      {
        "threshold": threshold,
        "edges": int(present.sum()),
        "into_attention": int(into.sum()),
      }
      | {
        f"into_attention_from_{kind}": int(into[:, sender == kind].sum())
        for kind in KINDS
      }
      | {
        "heads": int(np.count_nonzero(sends & (sender == "head"))),
        "mlps": int(np.count_nonzero(sends & (sender == "mlp"))),
        "kl": float(here.value),
        "decisions": int(here.decisions),
      }
    )
  return rows
