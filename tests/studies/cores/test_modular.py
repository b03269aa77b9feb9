"""Are times, ranks and maps those of exact constructions?"""

import jax.numpy as jnp
import numpy as np
import pytest

from configs import base
from configs.cores import get_config
from headjax.models import weights
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel
from headjax.studies.cores import modular
from headjax.studies.cores.members import setup

P = 7


def circle_model():
  """No attention, an MLP that is off: only b reaches the answer, as a circle.

  The stream holds b on one circle, and the unembedding reads it: the model
  answers c = b.
  """
  config = ModelConfig(
    1, 1, 6, 2, 4, P, 2, norm="none", mlp="relu", tied=False
  )  # fmt: skip
  raw = {k: np.zeros(shape) for k, shape in weights.shapes(config).items()}
  angle = 2 * np.pi * np.arange(P) / P
  circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
  raw["W_E"][:, :2] = circle
  raw["W_U"][:2] = circle.T
  params = weights.pack(config, raw, "circle")
  params = weights.nested(
    {k: jnp.asarray(v, jnp.float32) for k, v in raw.items()}
  )
  return LoadedModel(config, params, None, "circle@0", "0" * 64)


@pytest.mark.slow
def test_the_row_of_a_model_on_one_circle():
  moment = modular.Moment("decay", 5, [circle_model()])
  row = modular.core_row(moment, moment.models[0], P)
  assert (row["model"], row["epoch"], row["branch"]) == ("circle", 5, "decay")
  assert row["rank"] == row["energy rank"] == row["sufficient rank"] == 2
  test = modular.additions(P).test
  assert np.isclose(row["test accuracy"], (test[:, 1] == test[:, 2]).mean())


def small(**changes):
  config = get_config("modular-small")
  base.override(config, {
    "seeds": (0, 1), "p": P, "model.d_model": 32, "model.d_head": 8,
    "model.d_mlp": 64, "train.epochs": 40, "train.branch": 20,
    "train.every": 20,
  } | changes)  # fmt: skip
  return config


def test_measured_epochs_are_dense_early_and_hold_the_branch():
  config = get_config("modular")
  epochs = modular.measured_epochs(config.train)
  assert epochs[:3] == [0, 100, 200] and 900 in epochs
  assert epochs[-2:] == [19_500, 20_000]
  assert 2100 not in epochs and 2500 in epochs


@pytest.mark.slow
def test_both_branches_start_from_the_same_models():
  config = small()
  found = list(
    modular.moments(
      setup(config, d_vocab=P), P, modular.measured_epochs(config.train), 20
    )
  )
  assert [(m.branch, m.epoch) for m in found] == [
    ("decay", 0), ("decay", 20), ("decay", 40), ("none", 40),
  ]  # fmt: skip
  norms = [
    float(jnp.linalg.norm(m.models[0].params["embed"]["W_pos"])) for m in found
  ]
  # Embeddings of positions hardly learn: what decay takes from them shows.
  assert norms[0] > norms[1] > norms[3] > norms[2]
  assert found[0].models[0].digest != found[1].models[0].digest
