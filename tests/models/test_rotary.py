"""Do planes turn as fast as the rule says, and the other coordinates not?"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from one_line import refusal

from headjax.models.layers import rotate
from headjax.models.rotary import Scaling, frequencies


def test_plain_frequencies_fall_from_one_geometrically():
  found = frequencies(8, 16.0, Scaling())
  np.testing.assert_allclose(found, [1, 1 / 2, 1 / 4, 1 / 8], rtol=1e-15)


def test_linear_scaling_slows_all_planes_alike():
  plain = frequencies(6, 100.0, Scaling())
  slow = frequencies(6, 100.0, Scaling("linear", 2.5))
  np.testing.assert_allclose(slow, plain / 2.5, rtol=1e-15)


def test_llama3_keeps_fast_planes_and_slows_slow_ones():
  scaling = Scaling("llama3", 8.0, 1.0, 4.0, 8192)
  plain = frequencies(128, 500_000.0, Scaling())
  found = frequencies(128, 500_000.0, scaling)
  turns = plain * 8192 / (2 * math.pi)
  np.testing.assert_array_equal(found[turns > 4], plain[turns > 4])
  np.testing.assert_allclose(found[turns < 1], plain[turns < 1] / 8, rtol=1e-15)
  ratio = (found / plain)[(turns > 1) & (turns < 4)]
  assert len(ratio) > 5
  assert ((ratio > 1 / 8) & (ratio < 1)).all() and (np.diff(ratio) < 0).all()


def test_only_the_first_coordinates_turn(x64):
  x = jnp.asarray(np.random.default_rng(0).normal(size=(1, 3, 2, 7)))
  positions = jnp.array([[0, 2, 5]])
  y = np.asarray(rotate(x, positions, np.array([1.0, 0.5])))
  np.testing.assert_array_equal(y[..., 4:], x[..., 4:])
  np.testing.assert_array_equal(y[:, 0], x[:, 0])
  for i, speed in enumerate((1.0, 0.5)):
    before = np.asarray(x[..., i] + 1j * x[..., i + 2])
    turned = before * np.exp(1j * speed * np.array([0, 2, 5]))[None, :, None]
    np.testing.assert_allclose(y[..., i], turned.real, atol=1e-12)
    np.testing.assert_allclose(y[..., i + 2], turned.imag, atol=1e-12)


@pytest.mark.parametrize(
  ("fields", "part"),
  [
    ({"kind": "yarn"}, "rotary_scaling.kind"),
    ({"factor": 0.0}, "rotary_scaling.factor"),
    ({"context": 0}, "rotary_scaling.context"),
    ({"low": 4.0, "high": 4.0}, "rotary_scaling.low"),
  ],
)
def test_impossible_scalings_are_refused(fields, part):
  with refusal(part):
    Scaling(**fields)
