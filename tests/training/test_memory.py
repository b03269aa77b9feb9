"""What does a device hold of a step? Read from compiled steps, none is run."""

import functools

import jax
import jax.numpy as jnp
import pytest
from slow_params import slow_but

from headjax.models.config import ModelConfig
from headjax.training import step
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer

BATCH = 16
CONFIG = ModelConfig(4, 4, 32, 8, 128, 96, 48)


def trainer(fsdp: int, **arithmetic):
  """One for several devices that share everything, and its batch's shape."""
  mesh = make_mesh(MeshShape(fsdp=fsdp), jax.devices()[:fsdp])
  recipe = Optimizer(10, warmup=2)
  one = Trainer(CONFIG, recipe, Arithmetic(BATCH, **arithmetic), mesh)
  tokens = jax.ShapeDtypeStruct(
    (BATCH, CONFIG.n_ctx + 1), jnp.int32, sharding=one.batch_sharding
  )
  return one, tokens


@functools.cache
def memory(fsdp: int, **arithmetic):
  """What a compiled step says of the memory of one of the devices."""
  one, tokens = trainer(fsdp, **arithmetic)
  compiled = one.step.lower(one.abstract_state(), tokens).compile()
  return compiled.memory_analysis()


@pytest.mark.slow
def test_two_devices_hold_half_of_the_state_each():
  alone, shared = memory(1), memory(2)
  parameters = 70_000  # about: 4 layers of 12 x 32 x 32, 96 + 48 embeddings
  assert alone.argument_size_in_bytes > 3 * 4 * 0.7 * parameters
  # Vectors such as biases are whole on both.
  ratio = shared.argument_size_in_bytes / alone.argument_size_in_bytes
  assert 0.5 <= ratio < 0.54
  # The new state takes the place of the old one.
  kept = shared.output_size_in_bytes - shared.alias_size_in_bytes
  assert kept < 0.01 * shared.output_size_in_bytes


@pytest.mark.slow
def test_two_devices_need_less_room_for_half_the_batch_each():
  ratio = memory(2).temp_size_in_bytes / memory(1).temp_size_in_bytes
  assert ratio < 0.7


@pytest.mark.parametrize("fsdp", slow_but([2], [1, 2]))
def test_blocks_that_are_computed_anew_are_not_kept(fsdp):
  plain, anew = memory(fsdp), memory(fsdp, remat="block")
  assert anew.temp_size_in_bytes < 0.6 * plain.temp_size_in_bytes
  assert anew.argument_size_in_bytes == plain.argument_size_in_bytes


@pytest.mark.parametrize("fsdp", [1, 4])
def test_rows_of_logits_are_counted_by_device(fsdp, monkeypatch):
  found = []

  def loss(x, W_U, targets, *, n_rows):
    found.append(n_rows)
    return x.sum() + W_U.sum()

  monkeypatch.setattr(step, "cross_entropy", loss)
  one, tokens = trainer(fsdp, loss_rows=6)
  one.evaluate.lower(one.abstract_state().params, tokens)
  assert found == [6 * fsdp]
