"""Do both forms of the head sweep agree on every row, made small?"""

import jax
import numpy as np
import pytest
from helpers import random_pairs

from configs.geometry import VARIANTS, get_config
from headjax.interventions.heads import patch_heads
from headjax.models.decoder import Decoder
from headjax.models.from_config import model_config
from headjax.models.load import LoadedModel


@pytest.mark.slow
@pytest.mark.parametrize("row", VARIANTS)
def test_both_forms_agree_on_every_row(row, x64):
  scale = "small" if "routed" in row else "tiny"
  config = model_config(get_config(f"{row}@{scale}").model)
  pairs = random_pairs(config, [7, 5], [3, 1])
  params = Decoder(config).init(jax.random.key(0), pairs.clean)["params"]
  params = jax.tree.map(lambda x: x.astype("float64"), params)
  model = LoadedModel(config, params, None, row, "0" * 64)
  suffix, general = (
    patch_heads(model, pairs, method).effect for method in ("suffix", "general")
  )
  np.testing.assert_allclose(suffix, general, atol=1e-10, rtol=0)
  assert np.abs(general).max() > 1e-9
