"""Are the metrics what NumPy makes of the oracle's logits?"""

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import slow_sweep
from helpers import GPT2, LLAMA, random_model, random_tokens

from headjax.interventions.divergence import NegativeKL
from headjax.interventions.metrics import LogitDifference, LogProbability
from headjax.models.decoder import run

CONFIGS = {"tied": GPT2, "untied": LLAMA}


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(
  "metric", ["logit_difference", "log_probability", "kl"]
)
def test_metric_is_that_of_the_oracle_s_logits(x64, name, metric):
  model, w = random_model(CONFIGS[name])
  clean = random_tokens(model.config, (3, 6))
  other = random_tokens(model.config, (3, 6), seed=1)
  answer, foil = np.array([4, 0, 28]), np.array([7, 28, 1])
  at = [
    run(model.model, model.params, jnp.asarray(tokens))[0][:, -1]
    for tokens in (clean, other)
  ]
  ours = {
    "logit_difference": LogitDifference(jnp.asarray(answer), jnp.asarray(foil)),
    "log_probability": LogProbability(jnp.asarray(answer)),
    "kl": NegativeKL(at[0]),
  }[metric]
  got = ours(model.model, model.params, at[1])
  for i in range(3):
    logits = [
      oracle.forward(model.config, w, t[i])[1][-1] for t in (clean, other)
    ]
    want = slow_sweep.metric_value(
      metric, logits[1], logits[0], answer[i], foil[i]
    )
    assert got[i] == pytest.approx(want, abs=1e-10)
    assert abs(want) > 1e-3


@pytest.mark.parametrize("name", CONFIGS)
def test_logit_difference_never_unembeds_the_vocabulary(name):
  model, _ = random_model(CONFIGS[name], dtype="float32")
  metric = LogitDifference(jnp.array([1, 2]), jnp.array([3, 4]))
  resid = jnp.zeros((2, 16))

  def program(metric):
    call = jax.make_jaxpr(lambda r: metric(model.model, model.params, r))
    return str(call(resid))

  assert "dot_general" not in program(metric)
  assert "dot_general" in program(LogProbability(jnp.array([1, 2])))
