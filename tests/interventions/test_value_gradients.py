"""Are traces of the value gradient slopes of the loss along what they name?"""

import dataclasses

import jax
import numpy as np
import pytest
from helpers import GPT2, LLAMA, PUBLIC, random_model, random_tokens
from one_line import refusal
from slow_params import slow_but

from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.interventions.value_gradients import value_gradient_traces
from headjax.models import weights
from headjax.models.decoder import Decoder, run, unembed
from headjax.models.ungroup import ungroup

AXIS = dataclasses.replace(
  GPT2, d_head=4, d_key=None, write=WriteDesign("axis", 0.3)
)


def loss(config, params, tokens):
  resid, _ = run(Decoder(config), params, tokens)
  log_p = jax.nn.log_softmax(unembed(Decoder(config), params, resid), -1)
  rows = np.arange(tokens.shape[1] - 1)
  return -sum(
    float(log_p[i, rows, ids[1:]].sum()) for i, ids in enumerate(tokens)
  )


@pytest.mark.parametrize(
  "config",
  slow_but([AXIS, LLAMA], [GPT2, AXIS, LLAMA, PUBLIC["gemma2"]]),
  ids=["gpt2", "axis", "grouped", "gemma2"],
)
def test_a_trace_is_the_slope_along_the_identity_of_a_write(config, x64):
  model, _ = random_model(config, scale=0.2)
  tokens = random_tokens(config, (3, 6))
  found = value_gradient_traces(model, tokens, examples=2)
  assert found.shape == (3, 4, 4)
  wide, params = ungroup(config, model.params)
  W_O = np.asarray(weights.per_query_head(params, wide, "W_O"))
  W_V = np.asarray(weights.get(params, "W_V"))
  for layer, head, writer in [(0, 1, 1), (1, 2, 0), (2, 3, 3), (1, 0, 1)]:
    ends = []
    for step in (1e-5, -1e-5):
      moved = W_V.copy()
      moved[layer, :, head] += step * W_O[layer, writer].T
      changed = weights.replaced(params, {"W_V": moved})
      ends.append(loss(wide, changed, tokens))
    slope = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(found[layer, head, writer], slope, rtol=1e-5)


def test_values_that_read_a_block_have_nothing_to_choose():
  config = dataclasses.replace(AXIS, read=ReadDesign("block", (), "V"))
  model, _ = random_model(config, dtype="float32")
  with refusal("model", "one block by design"):
    value_gradient_traces(model, random_tokens(config, (2, 5)))
