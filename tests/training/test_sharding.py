import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, LLAMA
from jax.sharding import PartitionSpec as P
from one_line import refusal

from headjax.geometry.designs import ReadDesign
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
    pytest.param(
      GPT2, [MeshShape(8), MeshShape(2, 2, 2)], marks=pytest.mark.slow
    ),
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


def specs(config, *names):
  """How the mesh 2 x 2 x 2 splits some weights."""
  mesh = make_mesh(MeshShape(2, 2, 2))
  shapes = jax.eval_shape(
    Decoder(config).init, jax.random.key(0), jnp.zeros((1, 1), int)
  )["params"]
  tree = sharding.of_params(mesh, config, shapes)
  return [weights.get(tree, name).spec for name in names]


def test_heads_are_split_whatever_they_read():
  # As many heads as they are wide, so that the shapes do not tell.
  free = dataclasses.replace(
    GPT2, n_heads=4, n_kv_heads=4, d_head=4, d_key=None
  )
  assert specs(free, "W_Q") == [P(None, "fsdp", "tensor", None)]
  blocked = dataclasses.replace(
    free, d_model=16, read=ReadDesign("block", restricted="QK")
  )
  assert specs(blocked, "W_Q", "W_V") == [
    P(None, "tensor", "fsdp", None),
    P(None, "fsdp", "tensor", None),
  ]


def test_every_device_has_a_part_of_every_expert():
  experts = dataclasses.replace(LLAMA, n_experts=4, experts_per_token=2)
  assert specs(experts, "W_in", "W_out") == [
    P(None, None, "fsdp", "tensor"),
    P(None, None, "tensor", "fsdp"),
  ]


def test_every_weight_has_a_place():
  mesh = make_mesh(MeshShape(2, 2, 2))
  for config in (GPT2, LLAMA):
    shapes = jax.eval_shape(
      Decoder(config).init, jax.random.key(0), jnp.zeros((1, 1), int)
    )["params"]
    jax.tree.map(
      lambda leaf, where: where.shard_shape(leaf.shape),
      shapes,
      sharding.of_params(mesh, config, shapes),
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
  capped = dataclasses.replace(GPT2, logit_cap=30.0)
  with refusal("logit_cap: got 30.0"):
    Trainer(capped, RECIPE, Arithmetic(8), mesh)
