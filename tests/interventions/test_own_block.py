"""Is just the scalar part of the own-block value map taken out?"""

import dataclasses

import numpy as np
import pytest
from helpers import GPT2, LLAMA, random_model
from one_line import refusal

from headjax.geometry.designs import ReadDesign, WriteDesign, routing
from headjax.interventions.own_block import (
  random_orthogonal,
  scalars,
  without_scalar_part,
)
from headjax.models import weights

BASE = dataclasses.replace(GPT2, d_model=32, d_head=8, d_key=None)
AXIS = dataclasses.replace(BASE, write=WriteDesign("axis", 0.3))
DESIGNS = {
  "axis": AXIS,
  "live": dataclasses.replace(BASE, write=WriteDesign("axis", 0.5, live=5)),
  "rotated": dataclasses.replace(
    BASE, write=WriteDesign("rotated", 0.3, (3, 4, 5))
  ),
  "routed": dataclasses.replace(
    BASE, n_heads=6, n_kv_heads=None, out_bias=False,
    write=WriteDesign("routed", 0.3, routing=routing("split-cycle", 6, 4)),
  ),
}  # fmt: skip


def own_map(model, layer, head):
  """M by its definition: what the values make of the head's own writes."""
  config = model.config
  width = config.write.live or config.d_head
  W_O = config.write.dense(config.sizes)[layer, head, :width]
  unit = W_O / np.linalg.norm(W_O, axis=1, keepdims=True)
  W_V = np.asarray(weights.get(model.params, "W_V"))[layer, :, head, :width]
  return unit @ W_V, unit


@pytest.mark.parametrize("design", DESIGNS)
def test_the_scalar_part_goes_and_nothing_else(design, x64):
  model, raw = random_model(DESIGNS[design])
  s = scalars(model)
  edited = without_scalar_part(model, [0, 2])
  for layer, head in np.ndindex(s.shape):
    M, unit = own_map(model, layer, head)
    width = len(M)
    assert s[layer, head] == pytest.approx(np.trace(M) / width)
    after = own_map(edited, layer, head)[0]
    gone = s[layer, head] * np.eye(width) * (layer != 1)
    np.testing.assert_allclose(after, M - gone, atol=1e-12)
    # Outside of the head's own space nothing changes.
    change = raw["W_V"] - np.asarray(weights.get(edited.params, "W_V"))
    change = change[layer, :, head]
    np.testing.assert_allclose(change[:, width:], 0)
    inside = unit.T @ unit @ change
    np.testing.assert_allclose(inside, change, atol=1e-12)
  np.testing.assert_array_equal(
    weights.get(edited.params, "W_Q"), weights.get(model.params, "W_Q")
  )


def test_the_control_has_the_same_norm_and_another_direction(x64):
  model, _ = random_model(AXIS)
  R = random_orthogonal(model, 0)
  identity = R @ R.swapaxes(-1, -2)
  eye = np.broadcast_to(np.eye(8), R.shape)
  np.testing.assert_allclose(identity, eye, atol=1e-12)
  control = without_scalar_part(model, [1], R)
  for head in range(4):
    M = own_map(model, 1, head)[0]
    gone = M - own_map(control, 1, head)[0]
    s = scalars(model)[1, head]
    np.testing.assert_allclose(gone, s * R[1, head], atol=1e-12)
    assert np.linalg.norm(gone) == pytest.approx(abs(s) * 8**0.5)
  assert np.abs(R[0, 0] - R[0, 1]).max() > 0.1
  assert np.abs(R - random_orthogonal(model, 1)).max() > 0.1


def test_models_without_such_a_map_are_refused():
  blocks = dataclasses.replace(AXIS, read=ReadDesign("block"))
  grouped = dataclasses.replace(AXIS, n_kv_heads=2)
  for config, got in [
    (GPT2, "learned writes"),
    (LLAMA, "2 heads to each value head"),
    (blocks, "a block"),
    (grouped, "2 heads to each value head"),
  ]:
    model, _ = random_model(config, dtype="float32")
    with refusal("model", got):
      scalars(model)
  model, _ = random_model(AXIS, dtype="float32")
  with refusal("layers", "[3]"):
    without_scalar_part(model, [1, 3])
  with refusal("layers", "none"):
    without_scalar_part(model, [])
