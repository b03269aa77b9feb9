import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA
from jax.sharding import PartitionSpec as P
from one_line import refusal

from headjax.models import weights
from headjax.models.decoder import Decoder
from headjax.training import sharding
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer

RECIPE = Optimizer(steps=20, peak=3e-3, warmup=0)


def losses(config, shape, devices, steps=20):
  one = Trainer(
    config, RECIPE, Arithmetic(16, loss_rows=64), make_mesh(shape, devices)
  )
  state, found = one.init(1), []
  rng = np.random.default_rng(0)
  for _ in range(steps):
    start = rng.integers(0, config.d_vocab, (16, 1))
    tokens = (start + np.arange(config.n_ctx + 1)) % 7
    state, metrics = one.step(state, one.place(tokens.astype(np.int32)))
    found.append(float(metrics["loss"]))
  return found, state


@pytest.mark.parametrize(
  ("config", "shapes"),
  [
    (GPT2, [MeshShape(8), MeshShape(2, 2, 2)]),
    (LLAMA, [MeshShape(2, 2, 2)]),
  ],
  ids=["gpt2", "llama"],
)
def test_every_mesh_gives_the_same_loss_curve(config, shapes):
  alone, _ = losses(config, MeshShape(), jax.devices()[:1])
  assert alone[-1] < alone[0] - 0.2
  for shape in shapes:
    shared, _ = losses(config, shape, jax.devices())
    np.testing.assert_allclose(shared, alone, rtol=1e-5)


def test_parameters_and_moments_are_split_and_scalars_are_not():
  mesh = make_mesh(MeshShape(2, 2, 2))
  state = Trainer(LLAMA, RECIPE, Arithmetic(16), mesh).init(0)
  assert state.step.sharding.is_fully_replicated
  for tree in (state.params, state.opt_state[1][0].mu):
    W_in = weights.get(tree, "W_in")
    assert W_in.addressable_shards[0].data.size * 4 == W_in.size
    W_O = weights.get(tree, "W_O")
    assert W_O.sharding.spec == P(None, "tensor", None, "fsdp")
    # The mesh does not divide a vocabulary of 29.
    assert weights.get(tree, "W_E").sharding.spec == P(None, "fsdp")


def test_block_readers_are_split_by_head():
  mesh = make_mesh(MeshShape(2, 2, 2))
  shape = jax.ShapeDtypeStruct((3, 4, 6, 6), jnp.float32)
  tree = {"attention": {"W_Q": shape}}
  [found] = jax.tree.leaves(sharding.of_params(mesh, tree))
  assert found.spec == P(None, "tensor", "fsdp", None)


def test_every_weight_has_a_place():
  mesh = make_mesh(MeshShape(2, 2, 2))
  for config in (GPT2, LLAMA):
    shapes = jax.eval_shape(
      Decoder(config).init, jax.random.key(0), jnp.zeros((1, 1), int)
    )["params"]
    jax.tree.map(
      lambda leaf, where: where.shard_shape(leaf.shape),
      shapes,
      sharding.of_params(mesh, shapes),
    )


def test_rows_of_a_process_are_those_that_its_devices_hold():
  mesh = make_mesh(MeshShape(2, 2, 2))
  assert sharding.local_rows(mesh, 12).tolist() == list(range(12))


def test_what_does_not_divide_is_refused():
  with refusal("mesh: got data 3 x fsdp 1 x tensor 1", "a product of 8"):
    make_mesh(MeshShape(3))
  with refusal("mesh", "a product of 8"):
    make_mesh(MeshShape(fsdp=0))
  mesh = make_mesh(MeshShape(fsdp=2, tensor=2))
  with refusal("train.batch_size: got 6", "4 x 1"):
    Trainer(GPT2, RECIPE, Arithmetic(6), mesh)
  with refusal("train.batch_size: got 4", "4 x 2"):
    Trainer(GPT2, RECIPE, Arithmetic(4, accumulate=2), mesh)
