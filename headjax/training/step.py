"""What happens in one step? One compiled program: loss, gradient, update."""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding

from headjax.checks import check
from headjax.models.compiling import product_options
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run
from headjax.training import optimizer, sharding
from headjax.training.loss import cross_entropy
from headjax.training.recipe import Arithmetic, Optimizer


@flax.struct.dataclass
class TrainState:
  """Everything that a run goes on from.

  Attributes:
    step: int32 scalar, updates made.
    params: of the model, float32.
    opt_state: of the optimiser.
  """

  step: jax.Array
  params: Any
  opt_state: Any


class Trainer:
  """The compiled programs of a run: first state, step and evaluation."""

  def __init__(
    self,
    config: ModelConfig,
    recipe: Optimizer,
    arithmetic: Arithmetic,
    mesh: Mesh,
  ):
    """Checks that the mesh divides the batch; compiles nothing yet.

    Args:
      config: of the model.
      recipe: of the optimiser.
      arithmetic: how a step is computed.
      mesh: with the axes `data`, `fsdp` and `tensor`.
    """
    sharding.check_batch(mesh, arithmetic.batch_size, arithmetic.accumulate)
    check(
      config.logit_cap is None,
      "logit_cap",
      config.logit_cap,
      "None: the loss is of logits without a cap",
      "train a model without one",
    )
    self.config, self.arithmetic, self.mesh = config, arithmetic, mesh
    self.schedule = optimizer.schedule(recipe)
    self.optimizer = optimizer.make(recipe)
    self.batch_sharding = NamedSharding(mesh, sharding.BATCH)
    self.model = Decoder(
      config,
      attention="fused",
      remat=arithmetic.remat == "block",
      unroll=min(arithmetic.unroll, config.n_layers),
      stream=self.batch_sharding,
    )
    compiled = functools.partial(jax.jit, compiler_options=product_options())
    self.step = compiled(self._step, donate_argnums=0)
    self.evaluate = compiled(self._loss)

  def abstract_state(self) -> TrainState:
    """Shapes, types and shardings of the state."""
    shapes = jax.eval_shape(self._init, jax.random.key(0))
    return jax.tree.map(
      lambda leaf, where: jax.ShapeDtypeStruct(
        leaf.shape, leaf.dtype, sharding=where
      ),
      shapes,
      sharding.of_params(self.mesh, self.config, shapes),
    )

  def init(self, seed: int) -> TrainState:
    """The state before the first step; each device makes its own part."""
    where = jax.tree.map(lambda leaf: leaf.sharding, self.abstract_state())
    init = jax.jit(self._init, out_shardings=where)
    return init(jax.random.key(seed))

  def local_rows(self) -> np.ndarray:
    """The rows of a batch that this process feeds, in order."""
    return sharding.local_rows(self.mesh, self.arithmetic.batch_size)

  def place(self, tokens: np.ndarray) -> jax.Array:
    """The batch over all devices, from this process's rows of it."""
    return jax.make_array_from_process_local_data(self.batch_sharding, tokens)

  def _init(self, key):
    params = self.model.init(key, jnp.zeros((1, 1), jnp.int32))["params"]
    return TrainState(
      jnp.zeros((), jnp.int32), params, self.optimizer.init(params)
    )

  def _step(self, state, tokens):
    loss, gradient = self._gradient(state.params, tokens)
    updates, opt_state = self.optimizer.update(
      gradient, state.opt_state, state.params
    )
    params = optax.apply_updates(state.params, updates)
    metrics = {
      "loss": loss,
      "grad_norm": optax.tree.norm(gradient),
      "learning_rate": self.schedule(state.step),
    }
    return TrainState(state.step + 1, params, opt_state), metrics

  def _gradient(self, params, tokens):
    """Mean loss and its gradient, over the portions of the batch."""
    gradient = jax.value_and_grad(self._loss)
    n = self.arithmetic.accumulate
    if n == 1:
      return gradient(params, tokens)
    # Portion i takes every n-th row, so that it lies on all devices.
    portions = jnp.swapaxes(tokens.reshape(-1, n, tokens.shape[1]), 0, 1)

    def add(total, portion):
      portion = jax.lax.with_sharding_constraint(portion, self.batch_sharding)
      return jax.tree.map(jnp.add, total, gradient(params, portion)), None

    zeros = jax.tree.map(jnp.zeros_like, (jnp.zeros(()), params))
    total, _ = jax.lax.scan(add, zeros, portions)
    return jax.tree.map(lambda x: x / n, total)

  def _loss(self, params, tokens):
    """Mean next-token loss of `[batch, n_ctx + 1]` tokens, in nats."""
    params = jax.tree.map(
      lambda leaf: leaf.astype(self.arithmetic.dtype), params
    )
    outer = {part: params[part] for part in params if part != "blocks"}
    params = params | sharding.gathered(self.mesh, self.config, outer)
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    resid, _ = run(self.model, params, inputs)
    variables = {"params": params}
    x = self.model.apply(variables, resid, method=Decoder.normed)
    W_U = self.model.apply(variables, method=Decoder.directions)
    n_rows = self.arithmetic.loss_rows * sharding.batch_shards(self.mesh)
    return cross_entropy(x, W_U, targets, n_rows=n_rows)
