"""Do the rows have the geometry that they are there for?"""

import json
import pathlib

import numpy as np
import pytest

from configs import geometry
from headjax.geometry import conservation, write_space
from headjax.geometry.subspaces import weight_read_space
from headjax.models import spaces, weights
from headjax.models.from_config import model_config

FACTS = pathlib.Path(__file__).parents[1] / "reference" / "facts.json"
KERDOCK = json.loads(FACTS.read_text())["kerdock"]
FIRST_MIDDLE_LAST = (0, 5, 11)


def config_of(variant):
  return model_config(geometry.get_config(variant).model)


def kernels(a, b):
  """`[i, j]` PK of orthonormal `[i, d_model, k]` with `[j, d_model, k]`."""
  return np.array([[(u.T @ v) ** 2 for v in b] for u in a]).sum((2, 3))


def bases(dense):
  """`[layer * head, d_model, d_head]`, orthonormal."""
  flat = np.moveaxis(dense, -2, -1).reshape(-1, dense.shape[3], dense.shape[2])
  return np.linalg.qr(flat)[0]


def designs():
  """One frozen variant for each distinct write at each scale."""
  found = {}
  for name in geometry.VARIANTS:
    for scale in ("", "@small", "@tiny"):
      if scale == "@tiny" and "routed" in name:
        continue
      config = config_of(name + scale)
      if config.write.frozen:
        found.setdefault((config.write, config.sizes), name + scale)
  return list(found.values())


def totals(variant, read):
  """Both sides of proposition 1, `[layer]`, for some layers of a variant."""
  config = config_of(variant)
  layers = [i for i in FIRST_MIDDLE_LAST if i < config.n_layers]
  writes = write_space(config.write.dense(config.sizes)[layers])
  read = weight_read_space(np.stack([read] * len(layers)))
  return conservation(writes, read)


def some_read(variant):
  shape = (config_of(variant).d_model, 10)
  return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize(
  "variant",
  [v for v in designs() if "routed" not in v and "fixeddiag" not in v],
)
def test_frozen_writes_conserve_what_a_reader_reads(variant, x64):
  total, dimension = totals(variant, some_read(variant))
  np.testing.assert_array_equal(dimension, 10)
  np.testing.assert_allclose(total, 10, atol=1e-9, rtol=0)


@pytest.mark.parametrize("variant", [v for v in designs() if "routed" in v])
def test_routed_writes_do_not(variant, x64):
  total, dimension = totals(variant, some_read(variant))
  assert (abs(total - dimension) > 0.3).all()


@pytest.mark.parametrize("variant", [v for v in designs() if "fixed" in v])
def test_truncated_writes_conserve_what_is_read_of_live_coordinates(
  variant, x64
):
  config = config_of(variant)
  read = np.linalg.qr(some_read(variant))[0]
  live = np.arange(config.d_model) % config.d_head < config.write.live
  total, _ = totals(variant, read)
  np.testing.assert_allclose(total, (read[live] ** 2).sum(), atol=1e-9)


def test_all_common_axis_reads_and_writes_one_lane(x64):
  config = config_of("all-common-axis")
  shape = weights.shapes(config)["W_V"]
  W = np.random.default_rng(0).normal(size=shape)
  params = {"blocks": {"attention": {"W_V": W}}}
  found = spaces.read_spaces(params, config, "V", folded=False).columns
  layers = list(FIRST_MIDDLE_LAST)
  reads = np.asarray(found)[layers].reshape(-1, 768, 64)
  pk = kernels(reads, bases(config.write.dense(config.sizes)[layers]))
  same = np.arange(36)[:, None] % 12 == np.arange(36) % 12
  np.testing.assert_allclose(pk[same], 64, atol=1e-10, rtol=0)
  np.testing.assert_array_equal(pk[~same], 0)


def test_all_rotated_shares_evenly_between_layers():
  config = config_of("all-rotated")
  layers = list(FIRST_MIDDLE_LAST)
  writes = bases(config.write.dense(config.sizes)[layers])
  reads = np.asarray(config.read.dense(config.sizes))[layers]
  pk = kernels(reads.reshape(-1, 768, 64), writes)
  between = kernels(writes, writes)
  across = np.arange(36)[:, None] // 12 != np.arange(36) // 12
  for values in (pk, between[across]):
    # The published bounds are those of one precision lower.
    assert values.min() >= KERDOCK["pk_min"] - 1e-5
    assert values.max() <= KERDOCK["pk_max"] + 1e-5
    assert 5.332 <= values.min() and values.max() <= 5.336
  np.testing.assert_allclose(between[~across].reshape(36, 12).sum(1), 64)


def test_half_of_half_shared_is_shared():
  config = config_of("half-shared")
  dense = config.write.dense(config.sizes)[list(FIRST_MIDDLE_LAST)]
  pk = kernels(bases(dense), bases(dense)).reshape(3, 12, 3, 12)
  for a, b in ((0, 1), (0, 2), (1, 2)):
    one = pk[a, :, b]
    np.testing.assert_allclose(one[::2, ::2], 64 * np.eye(6), atol=1e-9)
    np.testing.assert_allclose(one[::2, 1::2], 0, atol=1e-9)
    assert one[1::2, 1::2].min() >= 10.656
    assert one[1::2, 1::2].max() <= 10.683
