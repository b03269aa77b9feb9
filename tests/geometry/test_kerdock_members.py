"""The Kerdock fingerprint: how the head blocks of all members meet."""

import itertools
import json
import pathlib

import numpy as np
import one_line
import pytest
import slow_kerdock

from headjax.geometry import check_members, kerdock_basis

FACTS = pathlib.Path(__file__).parents[1] / "reference" / "facts.json"
KERDOCK = json.loads(FACTS.read_text())["kerdock"]


def all_blocks(d_model, d_head, members):
  """{(a, b): cosines between the columns of all head blocks} for a < b."""
  bases = {member: kerdock_basis(d_model, member) for member in members}
  for a, b in itertools.combinations(members, 2):
    yield (a, b), slow_kerdock.head_blocks(bases[a], bases[b], d_head)


def kernels(blocks):
  """Projection kernels, [head, head]."""
  return (blocks**2).sum(axis=(-1, -2))


def compare(d_model, d_head, members):
  """{(a, b): (projection kernels, numbers of shared directions)}."""
  return {
    pair: (kernels(blocks), slow_kerdock.shared_directions(blocks))
    for pair, blocks in all_blocks(d_model, d_head, members)
  }


def sharing(found):
  """The pairs of members of which any blocks share a direction."""
  return {pair for pair, (_, shared) in found.items() if shared.any()}


@pytest.fixture(scope="module")
def family():
  """All 276 pairs of the 24 members that the full-size designs use."""
  return compare(768, 64, range(KERDOCK["members"]))


def test_projection_kernels_lie_in_the_published_range(family):
  pk = np.array([pk for pk, _ in family.values()])
  assert pk.shape == (276, 12, 12)
  assert pk.min() >= KERDOCK["pk_min"] - 1e-9
  assert pk.max() <= KERDOCK["pk_max"] + 1e-9
  # The lower end is reached, the upper one up to what the mixers leave.
  assert pk.min() < KERDOCK["pk_min"] + 1e-6
  assert pk.max() > KERDOCK["pk_max"] - 1e-4


def test_the_published_members_share_directions_and_no_others(family):
  many = KERDOCK["pairs_with_64_of_144_sharing_3_dims"]
  few = KERDOCK["pairs_with_16_of_144_sharing_3_dims"]
  expected = {tuple(p): 64 for p in many} | {tuple(p): 16 for p in few}
  assert sharing(family) == set(expected)
  for pair, count in expected.items():
    shared = family[pair][1]
    assert (shared == 3).sum() == count
    assert (shared == 0).sum() == 144 - count


def test_what_sharing_blocks_do_not_share_stays_well_apart(family):
  largest = 0
  for a, b in sharing(family):
    blocks = slow_kerdock.head_blocks(
      kerdock_basis(768, a), kerdock_basis(768, b), 64
    )
    blocks = blocks[family[a, b][1] == 3]
    cosines = np.linalg.svd(blocks, compute_uv=False)
    np.testing.assert_allclose(cosines[:, :3], 1, rtol=0, atol=1e-12)
    largest = max(largest, cosines[:, 3].max())
  bound = KERDOCK["max_remaining_cosine_in_sharing_head_pairs"]
  assert bound - 0.002 < largest <= bound  # the mixers move the third digit


def test_rotated_readers_share_nothing_with_earlier_writers(family):
  """Layer l writes member l and reads member 12 + l."""
  pairs = {(w, r - 12) for w, r in sharing(family) if w < 12 <= r}
  assert pairs == {(layer, layer) for layer in (8, 9, 10, 11)}


def test_the_tiny_stream_reads_members_that_no_earlier_layer_writes():
  found = sharing(compare(128, 16, range(16)))
  later = {(w, w + gap) for w in range(4) for gap in range(1, 4 - w)}
  assert any((write, 4 + layer) in found for write, layer in later)
  assert not any((write, 8 + layer) in found for write, layer in later)


def test_members_of_the_small_stream_share_nothing():
  found = compare(192, 16, range(12))
  assert not sharing(found)
  pk = np.array([pk for pk, _ in found.values()])
  assert abs(pk / (16**2 / 192) - 1).max() < 0.008


def test_blocks_of_the_smallest_stream_share_a_quarter_of_their_dimensions():
  found = compare(64, 16, range(4))
  assert sharing(found) == {(0, 1), (2, 3)}
  assert (found[0, 1][1] == 4).all()


def test_odd_heads_with_their_own_bases_decompose_the_stream():
  """Even heads write the axes, odd heads a basis of all odd blocks."""
  blocks = np.arange(768).reshape(12, 64)
  odd = np.empty((12, 768, 384))
  for layer in range(12):
    odd[layer] = np.eye(768)[:, blocks[1::2].ravel()] @ kerdock_basis(
      384, layer
    )
  writes = np.empty((12, 768, 768))
  writes[:, :, blocks[0::2].ravel()] = np.eye(768)[:, blocks[0::2].ravel()]
  writes[:, :, blocks[1::2].ravel()] = odd
  identity = np.broadcast_to(np.eye(768), writes.shape)
  np.testing.assert_allclose(
    writes @ writes.swapaxes(1, 2), identity, rtol=0, atol=1e-9
  )
  pk = np.array(
    [
      kernels(slow_kerdock.head_blocks(odd[a], odd[b], 64))
      for a, b in itertools.combinations(range(12), 2)
    ]
  )
  assert pk.shape == (66, 6, 6)
  assert 10.656 <= pk.min() and pk.max() <= 10.683


@pytest.mark.parametrize(
  ("d_model", "d_head", "members"),
  [(768, 64, range(24)), (384, 64, range(12)), (192, 16, range(32)),
   (128, 16, range(16))],
)  # fmt: skip
def test_designs_of_every_size_in_use_pass_the_rejection_rule(
  d_model, d_head, members
):
  check_members(d_model, d_head, members)


@pytest.mark.parametrize("d_model", [80, 96])
def test_streams_with_a_narrow_hadamard_factor_are_rejected(d_model):
  expected = 16**2 / d_model
  (a, b), pk = next(
    (pair, kernels(blocks))
    for pair, blocks in all_blocks(d_model, 16, range(8))
    if abs(kernels(blocks) / expected - 1).max() > 0.01
  )
  with one_line.refusal(
    f"members: got projection kernels {pk.min():.4f} to {pk.max():.4f}",
    f"members {a} and {b} (d_model {d_model} = 16 x",
    f"within 1% of d_head^2 / d_model = {expected:.4f}",
  ):
    check_members(d_model, 16, range(8))


def test_the_same_member_in_two_layers_is_no_reason_for_rejection():
  check_members(768, 64, [0] * 12)


def test_heads_that_do_not_tile_the_stream_are_refused():
  with one_line.refusal("d_head: got 50; expected a divisor of d_model = 768"):
    check_members(768, 50, [0, 1])


def test_more_members_than_exist_are_refused():
  with one_line.refusal("member: got 32; expected 0 to 31"):
    check_members(128, 16, range(33))
