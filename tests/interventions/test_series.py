"""Is a sweep over checkpoints the sweeps of each, with one compile?"""

import dataclasses

import numpy as np
import pytest
import tokenizers as backends
from helpers import GPT2, random_model, random_pairs
from one_line import refusal

from headjax import results
from headjax.interventions import sweep
from headjax.interventions.heads import patch_heads
from headjax.interventions.series import at_step, patch_series
from headjax.models.tokenizers import Tokenizer
from headjax.reports.summary import summarise

STEPS = [0, 16, 256]


@pytest.fixture(scope="module")
def pairs():
  return random_pairs(GPT2, [6, 8, 3], [3, 5, 2])


def models(tokenizers=(None, None, None)):
  for step, tokenizer in zip(STEPS, tokenizers, strict=True):
    model, _ = random_model(GPT2, seed=step, dtype="float32")
    name, digest = f"mine@{step}", f"{step:064d}"
    yield (
      step,
      dataclasses.replace(model, name=name, digest=digest, tokenizer=tokenizer),
    )


@pytest.fixture(scope="module")
def found(pairs):
  return patch_series(models(), pairs, ablation="zero")


def test_each_step_is_a_sweep_of_its_own(found, pairs):
  assert found.effect.dims == ("step", "example", "layer", "head")
  assert found.step.values.tolist() == STEPS
  for step, model in models():
    alone = patch_heads(model, pairs, ablation="zero")
    here = at_step(found, step)
    np.testing.assert_array_equal(here.effect, alone.effect)
    np.testing.assert_array_equal(here.base, alone.base)
    assert str(found.digest.sel(step=step).values) == model.digest
    assert summarise(here) == summarise(alone)
  assert (found.wall_s > 0).all()


def test_attributes_are_what_all_steps_share(found):
  assert found.attrs["model"] == "mine"
  assert found.attrs["ablation"] == "zero"
  assert not {"model_digest", "wall_s"} & found.attrs.keys()


def test_a_saved_series_is_the_same(found, tmp_path):
  results.save(found, tmp_path / "effects.nc")
  assert results.load(tmp_path / "effects.nc").identical(found)


def test_all_checkpoints_share_one_program(found, pairs):
  before = sweep._suffix_rows.jitted._cache_size()
  patch_series(models(), pairs, ablation="zero")
  assert sweep._suffix_rows.jitted._cache_size() == before


def test_an_unknown_step_lists_those_there_are(found):
  with refusal("step", "5", "0, 16, 256"):
    at_step(found, 5)


def words(n):
  names = {f"w{i}": i for i in range(n)}
  return Tokenizer(
    backends.Tokenizer(backends.models.WordLevel(names, unk_token="w0")), "w"
  )


def test_other_tokenizers_are_refused(pairs):
  with refusal("series", "tokenizers in mine@0 and mine@16"):
    patch_series(models([words(5), words(6), words(6)]), pairs)
  with refusal("series", "no checkpoint"):
    patch_series([], pairs)
