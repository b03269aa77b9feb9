"""How are many small models trained at once? As one compiled program.

Members differ in their seed, in the order of their batches and in their weight
decay; all else is shared, so that seeds and points of a sweep are one axis.
Many steps are one call: a scan over the rows of the data that each batch takes.

Members are spread over the devices. On one device they are worked through one
after the other ("map", the default on CPUs) or side by side in batched products
("vmap", the default on accelerators, which a single small model leaves idle);
`experiments/benchmarks/ensembles.py` measures both.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, PartitionSpec

from headjax.checks import check, check_choice, fail
from headjax.models.compiling import product_options
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run
from headjax.models.sites import Edits
from headjax.training import optimizer
from headjax.training.dropout import dropout
from headjax.training.loss import cross_entropy
from headjax.training.recipe import Optimizer
from headjax.training.step import TrainState

WAYS = ("map", "vmap")
_MEMBERS = PartitionSpec("member")


class Ensemble:
  """The compiled programs of many models of one shape.

  Attributes:
    config: of every member.
    recipe: of every member's updates, but for the weight decay.
    seeds: `[member]` int, of the first parameters.
    weight_decay: `[member]`.
    mesh: devices, which divide the members.
  """

  def __init__(
    self,
    config: ModelConfig,
    recipe: Optimizer,
    seeds: np.ndarray,
    *,
    weight_decay: np.ndarray | None = None,
    first: int = 0,
    way: str | None = None,
    decaying: str = "matrices",
    dropout_rate: float = 0.0,
    loss_rows: int = 8192,
  ):
    """Compiles nothing yet.

    Args:
      config: of every member.
      recipe: of the updates.
      seeds: `[member]` int.
      weight_decay: `[member]`; None means the recipe's.
      first: the first position whose prediction counts.
      way: "map" or "vmap"; None means the one that suits the backend.
      decaying: "matrices" or "all" parameters; see `optimizer.make`.
      dropout_rate: share that a training step leaves out; see `dropout`.
      loss_rows: rows of logits in memory at once, of one member.

    Raises:
      ValueError: no members, or values that do not fit.
    """
    self.config, self.recipe = config, recipe
    self.seeds = np.asarray(seeds, np.int32)
    n = len(self.seeds)
    check(n > 0, "seeds", "none", "at least one", "give every member one")
    check(
      0 <= first < config.n_ctx,
      "first",
      first,
      f"0 to {config.n_ctx - 1}, a position",
      "count from 0",
    )
    decay = recipe.weight_decay if weight_decay is None else weight_decay
    self.weight_decay = np.broadcast_to(np.asarray(decay, np.float32), n)
    if way is None:
      way = "map" if jax.default_backend() == "cpu" else "vmap"
    check_choice("way", way, WAYS)
    check_choice("decaying", decaying, optimizer.DECAYING)
    check(
      0 <= dropout_rate < 1, "dropout", dropout_rate, "0 or more, below 1",
      "lower it",
    )  # fmt: skip
    self._way, self._first, self._loss_rows = way, first, loss_rows
    self._decaying, self._dropout_rate = decaying, dropout_rate
    self.model = Decoder(config, attention="fused", unroll=config.n_layers)
    self.mesh = _mesh(n)
    compiled = functools.partial(jax.jit, compiler_options=product_options())
    self._init = compiled(self._spread(self._start, 1))
    self._train = compiled(self._spread(self._steps, 5, 1), donate_argnums=0)
    self._score = compiled(self._spread(self._accuracy, 1, 1))

  def init(self) -> TrainState:
    """The states before the first step, with a leading member axis."""
    return self._init(jnp.asarray(self.seeds))

  def advance(
    self,
    state: TrainState,
    data: np.ndarray,
    rows: np.ndarray,
    active: np.ndarray | None = None,
  ) -> tuple[TrainState, np.ndarray]:
    """Trains all members; the state that is passed in is used up.

    Args:
      state: of `init` or an earlier call.
      data: `[n, n_ctx + 1]` token ids, for all members.
      rows: `[step, batch]` int, which rows of the data each step takes; or
        `[member, step, batch]`.
      active: `[member]` bool, which are trained; the others stay as they are,
        at no cost where members are worked through one after the other. None
        means all.

    Returns:
      The states, and the losses `[member, step]` in nats, 0 of those that are
      not trained.

    Raises:
      ValueError: rows that the data lacks, or a loss that is not finite.
    """
    rows = np.asarray(rows, np.int32)
    rows = np.broadcast_to(rows, (len(self.seeds), *rows.shape[-2:]))
    check(
      0 <= rows.min() and rows.max() < len(data),
      "rows",
      f"{rows.min()} to {rows.max()}",
      f"0 to {len(data) - 1}, rows of the data",
      "draw batches from the data",
    )
    if active is None:
      active = np.ones(len(self.seeds), bool)
    decay = jnp.asarray(self.weight_decay)
    seeds = jnp.asarray(self.seeds)
    state, losses = self._train(
      state, seeds, rows, decay, jnp.asarray(active), jnp.asarray(data)
    )
    losses = np.asarray(losses)
    if not np.isfinite(losses).all():
      member, step = np.argwhere(~np.isfinite(losses))[0]
      fail(
        "loss",
        f"{losses[member, step]} of member {member} in step {step} from here",
        "a finite loss",
        "lower the rate: optimizer.peak",
      )
    return state, losses

  def accuracy(self, state: TrainState, data: np.ndarray) -> np.ndarray:
    """`[member]`: how often the likeliest token is the next one.

    Args:
      state: of all members.
      data: `[n, n_ctx + 1]` token ids.
    """
    return np.asarray(self._score(state.params, jnp.asarray(data)))

  def params(self, state: TrainState, member: int) -> Any:
    """The parameters of one member."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[member]), state.params)

  def _spread(self, function, n_own: int, n_shared: int = 0):
    """Runs it for every member; the last arguments are for all of them."""

    def local(*args):
      own, shared = args[:n_own], args[n_own:]

      def one(*mine):
        return function(*mine, *shared)

      if self._way == "vmap":
        return jax.vmap(one)(*own)
      return jax.lax.map(lambda mine: one(*mine), own)

    return jax.shard_map(
      local,
      mesh=self.mesh,
      in_specs=(_MEMBERS,) * n_own + (PartitionSpec(),) * n_shared,
      out_specs=_MEMBERS,
      check_vma=False,
    )

  def _start(self, seed):
    key = jax.random.key(seed)
    params = self.model.init(key, jnp.zeros((1, 1), jnp.int32))["params"]
    slots = optimizer.make(self.recipe).init(params)
    return TrainState(jnp.zeros((), jnp.int32), params, slots)

  def _steps(self, state, seed, rows, weight_decay, active, data):
    update = optimizer.make(
      self.recipe, weight_decay, decaying=self._decaying
    ).update

    def step(state, batch):
      key = jax.random.fold_in(jax.random.key(seed), state.step)
      loss, gradient = jax.value_and_grad(self._loss)(
        state.params,
        data[batch],
        dropout(self.config, key, len(batch), self._dropout_rate),
      )
      updates, slots = update(gradient, state.opt_state, state.params)
      params = optax.apply_updates(state.params, updates)
      return TrainState(state.step + 1, params, slots), loss

    def stay():
      return state, jnp.zeros(len(rows), jnp.float32)

    return jax.lax.cond(active, lambda: jax.lax.scan(step, state, rows), stay)

  def _asked(self, params, tokens, edits=Edits()):
    """The normed stream of the positions that count, and their targets."""
    resid, _ = run(self.model, params, tokens[:, :-1], edits)
    variables = {"params": params}
    x = self.model.apply(variables, resid, method=Decoder.normed)
    W_U = self.model.apply(variables, method=Decoder.directions)
    return x[:, self._first :], W_U, tokens[:, 1 + self._first :]

  def _loss(self, params, tokens, edits):
    asked = self._asked(params, tokens, edits)
    return cross_entropy(*asked, n_rows=self._loss_rows)

  def _accuracy(self, params, tokens):
    x, W_U, targets = self._asked(params, tokens)
    return ((x @ W_U.T).argmax(-1) == targets).mean()


def _mesh(n_members: int) -> jax.sharding.Mesh:
  """As many devices as divide the members."""
  devices = jax.local_devices()
  n = max(k for k in range(1, len(devices) + 1) if n_members % k == 0)
  return jax.make_mesh((n,), ("member",), (AxisType.Auto,), devices=devices[:n])
