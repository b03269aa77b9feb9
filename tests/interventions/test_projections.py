"""Does the engine project as NumPy does, and nowhere else?"""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, PUBLIC, random_model, random_tokens

from headjax.geometry.cores import random_core
from headjax.interventions.projections import add, only_where, project
from headjax.models.decoder import run

EXPECTED = {
  "keep": lambda x, m, P: m + (x - m) @ P,
  "remove": lambda x, m, P: x - (x - m) @ P,
  "flip": lambda x, m, P: x - 2 * (x - m) @ P,
}


def both(model, site, edits, shape=(2, 5)):
  """The site without and with the edits, all layers."""
  tokens = random_tokens(model.config, shape)
  return [
    np.asarray(getattr(run(model.model, model.params, tokens, e)[1], site))
    for e in (type(edits)(), edits)
  ]


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("site", ["resid_post", "resid_mid"])
def test_a_projection_is_that_of_numpy(x64, kind, centred, site):
  model, _ = random_model(PUBLIC["gemma2"])
  d = model.config.d_model
  Q = random_core(d, 3, 0)
  mean = np.random.default_rng(1).normal(size=d) if centred else None
  edits = project(model.config, 1, Q, kind, site=site, mean=mean)
  before, after = both(model, site, edits)
  np.testing.assert_array_equal(before[0], after[0])
  m = np.zeros(d) if mean is None else mean
  expected = EXPECTED[kind](before[1], m, Q @ Q.T)
  np.testing.assert_allclose(after[1], expected, atol=1e-12)


def test_an_empty_subspace_keeps_nothing_and_removes_nothing(x64):
  model, _ = random_model(GPT2)
  nothing = np.zeros((model.config.d_model, 0))
  _, kept = both(model, "resid_post", project(model.config, 2, nothing, "keep"))
  assert not kept[2].any()
  edits = project(model.config, 2, nothing, "remove")
  before, after = both(model, "resid_post", edits)
  np.testing.assert_array_equal(before, after)


def test_a_vector_is_added_where_the_mask_says(x64):
  model, _ = random_model(GPT2)
  vector = np.random.default_rng(0).normal(size=model.config.d_model)
  mask = np.zeros((2, 5), bool)
  mask[0, 3] = mask[1, 4] = True
  edits = only_where(add(model.config, 1, vector), jnp.asarray(mask))
  before, after = both(model, "resid_post", edits)
  expected = before[1] + mask[..., None] * vector
  np.testing.assert_allclose(after[1], expected, atol=1e-12)
  np.testing.assert_array_equal(after[1][~mask], before[1][~mask])
  assert np.abs(after[2] - before[2]).max() > 1e-3


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"site": "z"}, "site: got 'z'"),
    ({"kind": "double"}, "kind: got 'double'"),
    ({"layer": 3}, "layer: got 3"),
    ({"basis": np.eye(3)}, "basis: got shape"),
    ({"basis": 2 * np.eye(16)[:, :2]}, "off orthonormal by 3"),
  ],
)
def test_bad_input_is_refused(change, message):
  given = {"layer": 0, "basis": np.eye(16)[:, :2], "kind": "keep"} | change
  with pytest.raises(ValueError, match=message):
    project(GPT2, given.pop("layer"), given.pop("basis"), given.pop("kind"),
            **given)  # fmt: skip
