"""Is attention over cached keys the same as over the whole sequence?"""

import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from helpers import FAMILIES

from headjax.models import softmax
from headjax.models.softmax import KV, Context

N_POS, CUT = 9, 4


def random_heads(config, seed=0):
  """q, k (after rotary) and v, and their contexts, of two sequences."""
  rng = np.random.default_rng(seed)
  shape = (2, N_POS, config.n_heads, config.d_head)
  q, k, v = (jnp.asarray(x) for x in rng.normal(size=(3, *shape)) * 2)
  positions = jnp.tile(jnp.arange(N_POS), (2, 1))
  valid = jnp.ones((2, N_POS), bool).at[1, 2].set(False)
  return q, k, v, Context(positions, valid)


def part(context, k, v, where):
  cut = Context(context.positions[:, where], context.key_valid[:, where])
  return KV(k[:, where], v[:, where], cut)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("window", [0, 3])
def test_cached_prefix_and_own_keys_make_the_whole(x64, name, window):
  config = FAMILIES[name]
  q, k, v, context = random_heads(config)
  k = softmax.turn(config, k, context)
  window = jnp.array(window)
  whole = softmax.attend(config, window, q, context, (KV(k, v, context),))
  first, rest = slice(None, CUT), slice(CUT, None)
  own = part(context, k, v, rest)
  parts = (part(context, k, v, first), own)
  split = softmax.attend(config, window, q[:, rest], own.context, parts)
  for a, b in zip(whole[:2], split[:2], strict=True):
    np.testing.assert_allclose(a[:, :, rest], b, rtol=0, atol=1e-12)
  np.testing.assert_allclose(whole[2][:, rest], split[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_heads_attend_as_the_oracle(x64, name):
  config = FAMILIES[name]
  q, k, v, context = random_heads(config)
  keys = KV(softmax.turn(config, k, context), v, context)
  _, pattern, z = softmax.attend(config, jnp.array(3), q, context, (keys,))
  for b in range(2):
    for h in range(config.n_heads):
      want = oracle.attend(
        config, 3, q[b, :, h], k[b, :, h], v[b, :, h],
        context.positions[b], context.key_valid[b],
      )  # fmt: skip
      np.testing.assert_allclose(pattern[b, h], want[0], rtol=0, atol=1e-12)
      np.testing.assert_allclose(z[b, :, h], want[1], rtol=0, atol=1e-12)


def test_softmax_of_low_precision_scores_is_taken_in_float32():
  scores = jnp.array([[0.0, 1.0, 2.0, 3.0]], jnp.bfloat16)
  got = softmax.softmax(scores, jnp.ones((1, 4), bool))
  want = np.exp([0.0, 1, 2, 3]) / np.exp([0.0, 1, 2, 3]).sum()
  assert got.dtype == jnp.bfloat16
  np.testing.assert_allclose(
    got[0].astype(np.float32), want, rtol=2**-8, atol=0
  )
