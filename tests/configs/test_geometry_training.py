"""Does every row of the geometry study train?"""

import jax
import numpy as np
import pytest

from configs import base
from configs.geometry import VARIANTS, get_config
from headjax.training import from_config
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("row", VARIANTS)
def test_two_steps_on_a_small_model_lower_the_loss(row):
  config = get_config(f"{row}@small")
  base.override(
    config,
    {
      "model.d_vocab": 64,
      "model.n_ctx": 16,
      "train.unroll": 1,
      "optimizer.warmup": 0,
      "optimizer.peak": 3e-3,
    },
  )
  settings = from_config.settings(config)
  one = Trainer(
    settings.model,
    settings.optimizer,
    settings.arithmetic,
    make_mesh(MeshShape(), jax.devices()[:1]),
  )
  state = one.init(0)
  tokens = one.place(
    np.random.default_rng(0).integers(0, 64, (4, 17)).astype(np.int32)
  )
  before = one.evaluate(state.params, tokens)
  for _ in range(2):
    state, metrics = one.step(state, tokens)
    assert np.isfinite(metrics["grad_norm"]) and metrics["grad_norm"] > 0
  assert one.evaluate(state.params, tokens) < before
