"""Which circuit does ACDC find in a model, on given prompts?

`find_circuit` joins the search (`headjax.interventions.acdc`) with the graph
(`headjax.interventions.graph`): absent edges carry the reference prompt's
values, or zero.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from headjax import results
from headjax.checks import check, check_choice
from headjax.data.pairs import PromptPairs
from headjax.interventions import acdc, chunks, nodes
from headjax.interventions.divergence import NegativeKL
from headjax.interventions.graph import Resume, run_graph, sent
from headjax.interventions.metrics import LogitDifference
from headjax.interventions.questions import Batch, batch_of, check_pairs
from headjax.interventions.sweep import PRECISION, Metric, at_answer
from headjax.models.compiling import fast_jit
from headjax.models.decoder import Decoder, run
from headjax.models.load import LoadedModel
from headjax.outline import outline

ABLATIONS = ("reference", "zero")
METRICS = ("kl", "logit_difference")
# From the stream that the unembedding reads, `[batch, pos, d_model]`, to how
# far each example is from the whole model, `[batch]`.
Distance = Callable[[Decoder, Any, jax.Array], jax.Array]


def find_circuit(
  model: LoadedModel,
  pairs: PromptPairs,
  threshold: float,
  *,
  ablation: str = "reference",
  metric: str = "kl",
  speculate: int = 4,
  budget_bytes: int = 2 * chunks.GIB,
  progress: bool = False,
) -> xr.Dataset:
  """Searches the edges that a model needs on these prompts.

  Args:
    model: from `load_model`.
    pairs: clean and reference prompts.
    threshold: tau; an edge stays if the metric rises by it or more without it.
    ablation: what absent edges carry: the value on the "reference" prompt, or
      "zero".
    metric: "kl", the mean of KL(whole model || circuit) over the examples, of
      the next token at the answer; or "logit_difference", the mean by which
      that of answer and foil falls.
    speculate: decisions measured at once, as far as the budget goes; the
      circuit does not depend on it.
    budget_bytes: memory, beside the parameters.
    progress: whether to show a progress bar.

  Returns:
    A dataset with `present[receiver, sender]`, 1 for the circuit's edges,
    `possible`, 1 for the graph's, `rise`, by what the metric rose without the
    edge when it was decided on, and in the attributes the metric of the
    circuit, the number of decisions and the provenance.

  Raises:
    ValueError: an unknown choice, the model's parts do not add up, ids outside
      the vocabulary, or a budget that not one graph fits.

  Source: Conmy et al. 2023; paper A uses tau = 0.001, KL and the reference.
  """
  check_choice("ablation", ablation, ABLATIONS)
  check_choice("metric", metric, METRICS)
  check_pairs(model.config, pairs)
  nodes.check_splits(model.config)
  speculate = _fitting(model, pairs, speculate, budget_bytes)
  there = nodes.possible(model.config)
  began = time.perf_counter()
  with (
    jax.default_matmul_precision(PRECISION),
    tqdm(
      total=int(there.sum()),
      unit="edge",
      desc=f"{pairs.name}: circuit at {threshold:g}",
      disable=not progress,
    ) as bar,
  ):
    batch = batch_of(pairs, np.arange(len(pairs)))
    graph = PromptGraph(model, batch, ablation, _distance(model, batch, metric))
    found = acdc.search(
        model.config, graph, threshold, speculate=speculate,
        progress=lambda done: bar.update(done - bar.n),
    )  # fmt: skip
    provenance = results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=speculate * len(pairs),
      method="acdc",
      ablation=ablation,
      metric=metric,
      threshold=threshold,
      value=found.value,
      decisions=found.decisions,
      batches=found.batches,
    )
  names = ("receiver", "sender")
  rise = {"long_name": f"rise of {metric}", "units": "nats"}
  return xr.Dataset(
    {
      "present": (names, found.present.astype(np.int8)),
      "possible": (names, there.astype(np.int8)),
      "rise": (names, found.rise, rise),
    },
    {
      "receiver": [str(node) for node in nodes.receivers(model.config)],
      "sender": [str(node) for node in nodes.senders(model.config)],
    },
    attrs=provenance,
  )


class PromptGraph:
  """The graph on some prompts, as `acdc.search` evaluates it."""

  def __init__(
    self, model: LoadedModel, batch: Batch, ablation: str, distance: Distance
  ):
    """Runs the prompts.

    Args:
      model: from `load_model`.
      batch: the prompts.
      ablation: one of `ABLATIONS`.
      distance: a pytree, called as a metric on the whole stream.
    """
    self.model, self.params, self.batch = model.model, model.params, batch
    self.known, corrupted = (
      _sent(self.model, self.params, tokens, key_valid=batch.key_valid)
      for tokens in (batch.clean, batch.reference)
    )
    zero = ablation == "zero"
    self.corrupted = jnp.zeros_like(corrupted) if zero else corrupted
    self.distance = distance

  def __repr__(self) -> str:
    shapes = (outline(x) for x in (self.batch.clean, self.known))
    return "PromptGraph(clean={}, sent={})".format(*shapes)

  def __call__(self, masks: np.ndarray, layer: int) -> np.ndarray:
    """`[n]` mean distances; layers before `layer` lack no edge."""
    resume = Resume(jnp.asarray(layer), self.known)
    return np.asarray(
      _evaluate(
          self.model, self.params, self.batch, masks, self.corrupted, resume,
          self.distance,
      )
    )  # fmt: skip


_sent = fast_jit(sent, static_argnames=("model",))


@functools.partial(fast_jit, static_argnames=("model",))
def _evaluate(model, params, batch, masks, corrupted, resume, distance):
  def one(mask):
    resid = run_graph(
        model, params, batch.clean, mask, corrupted,
        key_valid=batch.key_valid, resume=resume,
    )  # fmt: skip
    return distance(model, params, resid).mean()

  return jax.vmap(one)(masks)


def _distance(model: LoadedModel, batch: Batch, metric: str) -> Distance:
  """How far the prediction at the answer is from that of the whole model."""
  resid, _ = run(
    model.model, model.params, batch.clean, key_valid=batch.key_valid
  )
  clean = at_answer(resid, batch.answer_pos)
  if metric == "kl":
    inner = NegativeKL(clean)
  else:
    inner = LogitDifference(batch.answer, batch.foil)
  base = inner(model.model, model.params, clean)
  return _AtAnswer(inner, base, batch.answer_pos)


@flax.struct.dataclass
class _AtAnswer:
  """By how much a metric at the answer falls below that of the whole model."""

  metric: Metric
  base: jax.Array
  answer_pos: jax.Array

  def __call__(self, model, params, resid):
    resid = at_answer(resid, self.answer_pos)
    return self.base - self.metric(model, params, resid)


def _fitting(
  model: LoadedModel, pairs: PromptPairs, speculate: int, budget_bytes: int
) -> int:
  """How many graphs fit, at most as many as asked for."""
  config = model.config
  each = 3 * len(nodes.senders(config)) * config.d_model
  each += len(nodes.receivers(config)) // config.n_layers * 2 * config.d_model
  each += 3 * config.d_mlp
  rows = len(pairs) * pairs.clean.shape[1]
  itemsize = jax.tree.leaves(model.params)[0].dtype.itemsize
  one = itemsize * (rows * each + 2 * len(pairs) * config.d_vocab)
  check(
    one <= budget_bytes,
    "budget_bytes",
    budget_bytes,
    f"at least {one} for {len(pairs)} prompts",
    "raise the budget or take fewer prompts",
  )
  # A number below 1 is the search's to refuse.
  return min(speculate, budget_bytes // one)
