"""Is what a caller sees layer by layer what a forward computes?"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from helpers import LLAMA, random_model, random_tokens

from headjax.models.decoder import default_context, run
from headjax.models.layerwise import scan_layers
from headjax.models.sites import Edit, Edits, LinearEdit

CONFIG = dataclasses.replace(LLAMA, windows=(0, 3, 2))


def test_every_site_of_every_layer_is_seen(x64):
  model, _ = random_model(CONFIG)
  tokens = jnp.asarray(random_tokens(CONFIG, (2, 9)))
  n, d = CONFIG.n_layers, CONFIG.d_model
  rng = np.random.default_rng(0)
  edits = Edits(
    attn_out=(
      LinearEdit(jnp.ones(n), jnp.asarray(rng.normal(size=(n, d, d)))),
    ),
    mlp_out=(Edit(jnp.linspace(0, 1, n), jnp.ones(n)),),
  )
  wanted = run(model.model, model.params, tokens, edits)
  found = scan_layers(
    model.model, model.params, tokens, default_context(tokens),
    lambda params, acts: acts, edits,
  )  # fmt: skip
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-12),
    found, wanted,
  )  # fmt: skip


def test_each_layer_brings_its_own_parameters():
  model, raw = random_model(CONFIG, dtype="float32")
  tokens = jnp.zeros((1, 2), int)
  _, found = scan_layers(
    model.model, model.params, tokens, default_context(tokens),
    lambda params, _: params["attention"]["W_O"],
  )  # fmt: skip
  np.testing.assert_array_equal(found, raw["W_O"].astype(np.float32))
