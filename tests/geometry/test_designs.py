"""Is the structured form of a design its dense matrix, and bad ones refused?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from one_line import refusal

from headjax.geometry.designs import (
  ReadDesign,
  Sizes,
  WriteDesign,
  output_scale,
  routing,
)
from headjax.geometry.kerdock import kerdock_basis

TINY = Sizes(n_layers=3, n_heads=8, d_head=16, d_model=128)
MIXED = Sizes(n_layers=3, n_heads=12, d_head=16, d_model=192)
ROUTED = Sizes(n_layers=3, n_heads=16, d_head=16, d_model=192)
LAYERS, OTHERS = (0, 1, 2), (8, 9, 10)
WRITES = {
  "axis": WriteDesign("axis", 0.3),
  "axis, live": WriteDesign("axis", 0.3, live=12),
  "common": WriteDesign("rotated", 0.3, (0, 0, 0)),
  "rotated": WriteDesign("rotated", 0.3, LAYERS),
  "rotated, live": WriteDesign("rotated", 0.3, LAYERS, live=5),
  "half shared": WriteDesign("half_shared", 0.3, LAYERS),
  "half shared, live": WriteDesign("half_shared", 0.3, LAYERS, live=3),
}
ROUTINGS = ("angle-split", "split-cycle", "sum-hub")
READS = {
  "axis blocks": ReadDesign("block"),
  "rotated blocks": ReadDesign("block", OTHERS),
  "normed blocks": ReadDesign("block_norm", LAYERS),
}


def layer_of(rotation, layer):
  return jax.tree.map(lambda x: x[layer], rotation)


def compare_write(design, sizes):
  dense, rotation = design.dense(sizes), design.rotation(sizes)
  assert dense.shape == (3, sizes.n_heads, sizes.d_head, sizes.d_model)
  shape = (2, 3, sizes.n_heads, sizes.d_head)
  z = jnp.asarray(np.random.default_rng(0).normal(size=shape))
  for layer in range(sizes.n_layers):
    expected = np.einsum("bphe,hed->bpd", z, dense[layer])
    found = design.apply(z, layer_of(rotation, layer))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)
  return dense


@pytest.mark.parametrize("sizes", [TINY, MIXED], ids=["r = 2", "r = 3"])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_its_dense_matrix(name, sizes, x64):
  compare_write(WRITES[name], sizes)


@pytest.mark.parametrize("kind", ROUTINGS)
def test_a_routed_write_is_its_dense_matrix(kind, x64):
  design = WriteDesign("routed", 0.3, routing=routing(kind, 16, 12))
  dense = compare_write(design, ROUTED)
  # Every head writes isometrically, whatever blocks it writes to.
  gram = np.einsum("lhed,lhfd->lhef", dense, dense)
  np.testing.assert_allclose(
    gram, np.broadcast_to(0.09 * np.eye(16), gram.shape), atol=1e-12
  )


@pytest.mark.parametrize("sizes", [TINY, MIXED], ids=["r = 2", "r = 3"])
@pytest.mark.parametrize("name", READS)
def test_a_read_is_its_dense_matrix(name, sizes, x64):
  design = READS[name]
  dense, rotation = design.dense(sizes), design.rotation(sizes)
  x = np.random.default_rng(0).normal(size=(2, 3, sizes.d_model))
  x = jnp.asarray(x)
  for layer in range(sizes.n_layers):
    expected = np.einsum("bpd,hde->bphe", x, dense[layer])
    found = design.apply(x, layer_of(rotation, layer), sizes.d_head)
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)


def test_dense_matrices_are_built_of_kerdock_columns_and_blocks():
  for layer, member in enumerate(LAYERS):
    basis = kerdock_basis(192, member)
    half = kerdock_basis(96, member)
    for head in range(12):
      own = slice(16 * head, 16 * head + 16)
      rotated = WRITES["rotated"].dense(MIXED)[layer, head]
      np.testing.assert_array_equal(rotated, 0.3 * basis[:, own].T)
      common = WRITES["common"].dense(MIXED)[layer, head]
      np.testing.assert_array_equal(
        common, 0.3 * kerdock_basis(192, 0)[:, own].T
      )
      blocks = READS["rotated blocks"].dense(MIXED)[layer, head]
      np.testing.assert_array_equal(
        blocks, kerdock_basis(192, 8 + member)[:, own]
      )
      shared = WRITES["half shared"].dense(MIXED)[layer, head]
      expected = np.zeros((16, 192))
      if head % 2 == 0:
        expected[:, own] = 0.3 * np.eye(16)
      else:
        odd = np.flatnonzero(np.arange(192) // 16 % 2)
        place = slice(16 * (head // 2), 16 * (head // 2) + 16)
        expected[:, odd] = 0.3 * half[:, place].T
      np.testing.assert_allclose(shared, expected, atol=1e-15)


def test_coordinates_that_are_not_live_are_not_written():
  dense = WRITES["axis, live"].dense(TINY)
  np.testing.assert_array_equal(dense[:, :, 12:], 0)
  full = WRITES["axis"].dense(TINY)
  np.testing.assert_array_equal(dense[:, :, :12], full[:, :, :12])


def test_the_matrices_of_the_three_routings():
  hub, cycle, split = (
    np.array(routing(kind, 16, 12))
    for kind in ("sum-hub", "split-cycle", "angle-split")
  )
  for matrix in (hub, cycle, split):
    np.testing.assert_allclose((matrix**2).sum(0), 1)
  for matrix in (hub, cycle):
    np.testing.assert_array_equal(matrix[:, :12], np.eye(12))
  np.testing.assert_array_equal(hub[0, 12:], 1)
  assert (cycle[:, 12:] > 0).sum(0).tolist() == [3, 3, 3, 3]
  assert (cycle[:, 12:] > 0).sum(1).tolist() == [1] * 12
  first = [12 * head // 16 for head in range(16)]
  for head, block in enumerate(first):
    assert split[block, head] == split[(block + 1) % 12, head] == 0.5**0.5


@pytest.mark.parametrize(
  ("design", "sizes", "parts"),
  [
    (
      WriteDesign("rotated", 1.0, LAYERS),
      Sizes(3, 5, 10, 50),
      ["d_model: got 50", "16, 64, 256"],
    ),
    (
      WriteDesign("axis"),
      Sizes(3, 7, 16, 128),
      ["write: got 7 heads x 16 = 112", "d_model = 128"],
    ),
    (
      WriteDesign("rotated", 1.0, (0, 1, 128)),
      Sizes(3, 12, 64, 768),
      ["member: got 128", "0 to 127", "768 = 256 x 3"],
    ),
    (
      WriteDesign("half_shared", 1.0, (0, 1, 8)),
      MIXED,
      ["member: got 8", "0 to 7", "96 = 16 x 6"],
    ),
    (
      WriteDesign("half_shared", 1.0, LAYERS),
      Sizes(3, 3, 64, 192),
      ["write: got 3 heads", "even"],
    ),
    (
      WriteDesign("rotated", 1.0, (0, 1)),
      TINY,
      ["write.members: got 2 members", "3, one a layer"],
    ),
    (WriteDesign("axis", 1.0, LAYERS), TINY, ["write.members: got 3", "0"]),
    (WriteDesign("axis", live=17), TINY, ["write.live: got 17", "d_head = 16"]),
    (WriteDesign("axis", live=0), TINY, ["write.live: got 0"]),
    (WriteDesign("diagonal"), TINY, ["write.kind: got 'diagonal'", "rotated"]),
    (
      WriteDesign("routed", routing=routing("sum-hub", 16, 8)),
      ROUTED,
      ["write.routing: got 8 blocks", "12 blocks of 16 heads"],
    ),
    (
      WriteDesign("routed", routing=routing("sum-hub", 14, 12)),
      ROUTED,
      ["write.routing: got 12 blocks of [14]", "12 blocks of 16 heads"],
    ),
    (WriteDesign("routed"), ROUTED, ["write.routing: got 0 blocks"]),
    (
      ReadDesign("block"),
      Sizes(3, 8, 32, 128),
      ["read: got 8 heads x 32 = 256", "d_model = 128", "wide as its block"],
    ),
    (
      ReadDesign("block", (8, 9, 32)),
      TINY,
      ["member: got 32", "0 to 31", "128 = 64 x 2"],
    ),
    (ReadDesign("block", (8,)), TINY, ["read.members: got 1 members", "3"]),
    (ReadDesign("block", (), "QQ"), TINY, ["read.restricted: got 'QQ'", "QKV"]),
    (ReadDesign("half"), TINY, ["read.kind: got 'half'", "block_norm"]),
  ],
)
def test_a_design_that_does_not_fit_is_refused_with_the_numbers(
  design, sizes, parts
):
  with refusal(*parts):
    design.check(sizes)


@pytest.mark.parametrize(
  ("kind", "heads", "blocks", "parts"),
  [
    ("sum-hub", 12, 12, ["routing: got 12 heads into 12 blocks"]),
    ("split-cycle", 17, 12, ["routing: got 17 heads into 12 blocks"]),
    ("round-robin", 16, 12, ["routing: got 'round-robin'", "sum-hub"]),
  ],
)
def test_a_routing_that_does_not_exist_is_refused(kind, heads, blocks, parts):
  with refusal(*parts):
    routing(kind, heads, blocks)


def test_the_output_scale_is_the_gain_of_a_learned_start():
  deviation = 0.02 / (2 * 12) ** 0.5
  W_O = np.random.default_rng(0).normal(0, deviation, (768, 768))
  z = np.random.default_rng(1).normal(size=(500, 768))
  gain = ((z @ W_O) ** 2).mean() ** 0.5
  assert abs(gain / output_scale(768, 12) - 1) < 0.01
