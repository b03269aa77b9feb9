"""Is as much left out as was asked for, and does the mean stay?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run
from headjax.models.sites import Edits
from headjax.training.dropout import dropout

CONFIG = ModelConfig(2, 2, 8, 4, 16, 5, 6)
ROWS = 400  # 76,800 values a site


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_share_is_left_out_and_the_rest_grows(rate):
  edits = dropout(CONFIG, jax.random.key(0), ROWS, rate)
  kept = []
  for site in ("attn_out", "mlp_out"):
    [edit] = getattr(edits, site)
    ones = jnp.ones((2, ROWS, 6, 8))
    x = np.asarray(jax.vmap(type(edit).__call__)(edit, ones))
    out = np.isclose(x, 0, atol=1e-6)
    np.testing.assert_allclose(x[~out], 1 / (1 - rate), rtol=1e-6)
    # Six standard errors of a share over as many draws.
    assert abs(out.mean() - rate) < 6 * np.sqrt(rate * (1 - rate) / x.size)
    assert abs(out[0].mean() - out[1].mean()) > 0  # no layer repeats another
    kept.append(~out)
  both = np.corrcoef(kept[0].ravel(), kept[1].ravel())[0, 1]
  assert abs(both) < 6 / np.sqrt(kept[0].size)  # nor one half the other


def test_another_key_leaves_out_others():
  [one], [two] = (
    dropout(CONFIG, jax.random.key(seed), 3, 0.5).mlp_out for seed in (0, 1)
  )
  assert (one.gate != two.gate).any()


def test_none_is_no_edit_and_some_changes_the_stream():
  assert dropout(CONFIG, jax.random.key(0), 3, 0.0) == Edits()
  model, tokens = Decoder(CONFIG), jnp.zeros((3, 6), int)
  params = model.init(jax.random.key(1), tokens)["params"]
  plain, _ = run(model, params, tokens)
  edits = dropout(CONFIG, jax.random.key(0), 3, 0.5)
  changed, _ = run(model, params, tokens, edits)
  assert (np.asarray(plain) != np.asarray(changed)).any(axis=-1).all()
