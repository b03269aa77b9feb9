"""Runs that take seconds: config, command, and a stand-in for the trainer."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from ml_collections import ConfigDict

from configs import base
from headjax.training import from_config
from headjax.training.step import TrainState

ROOT = pathlib.Path(__file__).parents[1]
# What differs from configs/base.py: a model of seconds on the built-in corpus.
SMALL = {
  "data.corpus": "toy",
  "model.n_layers": 2,
  "model.n_heads": 2,
  "model.d_model": 32,
  "model.d_head": 16,
  "model.d_mlp": 64,
  "model.d_vocab": 512,
  "model.n_ctx": 16,
  "optimizer.warmup": 2,
  "train.steps": 12,
  "train.batch_size": 8,
  "train.log_every": 4,
  "train.evaluate_every": 6,
  "train.evaluate_sequences": 16,
  "train.checkpoint_steps": (0, 5),
  "train.checkpoint_minutes": 0.0,
}
TIMES = ("wall_s", "tokens_per_s", "mfu", "input_share")


def config(changes=()) -> ConfigDict:
  """The small config, with dotted fields changed."""
  small = base.get_config()
  base.override(small, SMALL | dict(changes))
  return small


def settings(changes=()) -> from_config.Settings:
  """The same as what training takes."""
  return from_config.settings(config(changes))


def command(workdir, changes=()) -> list[str]:
  """The arguments of `python -m headjax.train` for it."""
  fields = SMALL | dict(changes)
  overrides = [f"--config.{name}={value}" for name, value in fields.items()]
  return ["--config=configs/base.py", f"--workdir={workdir}", *overrides]


def start(
  arguments, cache, *, program=("-m", "headjax.train"), **environment
) -> subprocess.Popen:
  """Begins a run in a process with one device.

  Args:
    arguments: of the command.
    cache: a folder for compiled programs, for the next processes to use.
    program: what Python runs.
    **environment: further variables.
  """
  variables = os.environ | {
    "XLA_FLAGS": "",
    "JAX_COMPILATION_CACHE_DIR": str(cache),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
  }
  return subprocess.Popen(
    [sys.executable, *program, *arguments],
    cwd=ROOT,
    env=variables | environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


def metrics(workdir) -> list[dict]:
  """The lines of metrics, without times."""
  lines = (pathlib.Path(workdir) / "metrics.jsonl").read_text().splitlines()
  return [
    {k: v for k, v in json.loads(line).items() if k not in TIMES}
    for line in lines
  ]


class StandIn:
  """A trainer whose step is a few sums, with all that the loop asks of one.

  Attributes:
    calls: names of what was called.
    spoil: step -> name of a metric that is NaN after that update.
  """

  def __init__(self, settings, spoil=()):
    self.mesh = jax.make_mesh((8,), ("data",), (AxisType.Auto,))
    self.batch_size = settings.arithmetic.batch_size
    self.calls, self.spoil = [], dict(spoil)

  def abstract_state(self):
    whole = NamedSharding(self.mesh, PartitionSpec())
    return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=whole),
      jax.eval_shape(_first, jax.random.key(0)),
    )

  def init(self, seed):
    self.calls.append("init")
    whole = NamedSharding(self.mesh, PartitionSpec())
    return jax.device_put(_first(jax.random.key(seed)), whole)

  def step(self, state, tokens):
    self.calls.append("step")
    state, metrics = _step(state, tokens)
    name = self.spoil.get(len([c for c in self.calls if c == "step"]))
    return state, metrics | ({name: jnp.float32(np.nan)} if name else {})

  def evaluate(self, params, tokens):
    self.calls.append("evaluate")
    return _loss(params, tokens)

  def place(self, tokens):
    rows = NamedSharding(self.mesh, PartitionSpec("data"))
    return jax.device_put(tokens, rows)

  def local_rows(self):
    return np.arange(self.batch_size)


def _first(key):
  params = {"w": jax.random.normal(key, (16,))}
  return TrainState(jnp.zeros((), jnp.int32), params, {"m": jnp.zeros(16)})


@jax.jit
def _loss(params, tokens):
  return jnp.mean(jnp.sin(tokens[:, :16] * params["w"][None]) ** 2)


@functools.partial(jax.jit, donate_argnums=0)
def _step(state, tokens):
  loss, gradient = jax.value_and_grad(_loss)(state.params, tokens)
  m = 0.9 * state.opt_state["m"] + gradient["w"]
  params = {"w": state.params["w"] - 0.01 * m}
  metrics = {
    "loss": loss,
    "grad_norm": jnp.linalg.norm(gradient["w"]),
    "learning_rate": 0.01 / (1 + state.step),
  }
  return TrainState(state.step + 1, params, {"m": m}), metrics
