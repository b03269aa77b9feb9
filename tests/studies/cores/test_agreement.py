"""Are the axis, its edits and its continuations what they say?"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, random_model

from headjax import results
from headjax.data.tasks import load_task
from headjax.data.toy import Toy
from headjax.interventions.projections import add, only_where
from headjax.models.decoder import run, unembed
from headjax.statistics.discrimination import auc
from headjax.studies.cores import agreement, continuing, number_axis


@pytest.fixture(scope="module")
def model():
  tokenizer = Toy().tokenizer
  config = dataclasses.replace(
    GPT2, n_layers=2, windows=None, d_vocab=tokenizer.d_vocab, n_ctx=32
  )
  found, _ = random_model(config, dtype="float32")
  return dataclasses.replace(found, tokenizer=tokenizer)


@pytest.fixture(scope="module")
def pairs(model):
  return number_axis.with_attractor(
    load_task("sva", model.tokenizer, split="discovery", examples=32)
  )


@pytest.fixture(scope="module")
def axes(model, pairs):
  return number_axis.axes(model, pairs)


def test_only_other_attractors_are_left(model, pairs):
  assert set(pairs.condition.tolist()) == {1, 2}
  plural = number_axis.is_plural(pairs)
  assert plural.any() and not plural.all()
  for row, answer in zip(plural, pairs.answer, strict=True):
    assert model.tokenizer.decode([answer]) == (" are" if row else " is")


def test_the_margin_is_of_four_verbs(model, pairs):
  ids = number_axis.verb_tokens(model.tokenizer)
  texts = [model.tokenizer.decode([i]) for n in ids.values() for i in n]
  assert texts == [" are", " were", " is", " was"]
  assert number_axis.margins(model, pairs).shape == (len(pairs),)


def test_an_axis_is_a_direction_towards_the_plural(model, pairs, axes):
  assert [axis.layer for axis in axes] == [0, 1]
  plural = number_axis.is_plural(pairs)
  for axis in axes:
    assert np.isclose(np.linalg.norm(axis.direction), 1)
    z = axis.coordinates(number_axis.last_streams(model, pairs))
    assert z[plural].mean() > z[~plural].mean()
    assert abs(z.mean()) < 1e-4  # around the mean of these prompts


def test_rows_say_what_every_edit_does(model, pairs, axes, tmp_path):
  """One row that goes on by itself is the whole forward under an edit."""
  results.save(agreement.measure(model, axes, pairs), tmp_path / "a.nc")
  found = results.load(tmp_path / "a.nc")
  rows, plural = agreement.layer_rows(found), number_axis.is_plural(pairs)
  for row, axis in zip(rows, axes, strict=True):
    for name, one in (
      ("", axis), ("random ", number_axis.random_axis(axis, axis.layer))
    ):  # fmt: skip
      for kind in agreement.KINDS:
        here = found["margin"].sel(layer=axis.layer, edit=name + kind).values
        want = number_axis.margins(model, pairs, one.edit(model, kind))
        np.testing.assert_allclose(here, want, rtol=0, atol=1e-4)
        assert row[name + kind] == auc(here, plural)
  moved = found["margin"].sel(edit="flip") - found["margin"].sel(edit="remove")
  assert np.abs(moved).max() > 1e-3
  assert agreement.best_layer([{"layer": 3, "flip": 0.2},
                               {"layer": 5, "flip": 0.1}]) == 5  # fmt: skip


def test_behind_the_last_block_the_kept_axis_is_all_of_the_margin(
  model, pairs, axes
):
  kept = number_axis.margins(model, pairs, axes[-1].edit(model, "keep"))
  z = axes[-1].coordinates(number_axis.last_streams(model, pairs))
  stream = axes[-1].mean + z[:, None] * axes[-1].direction[:, 0]
  ask = number_axis.verb_margin(model.tokenizer)
  expected = ask(model.model, model.params, stream.astype(np.float32))
  np.testing.assert_allclose(kept, np.asarray(expected)[:, 0], atol=1e-4)


def test_a_knob_is_a_line():
  z = np.array([-1.0, 0, 2])
  found = agreement.knob_fit(z, 3 * z + 1)
  assert np.allclose([found["slope"], found["offset"], found["r2"]], [3, 1, 1])


def test_models_are_compared_by_rank():
  z = np.array([0.1, 0.5, 0.9])
  texts = {"a": ["x", "y", "w"], "b": ["w", "x", "y"], "c": ["x", "y", "v"]}
  moved = z[[2, 0, 1]] ** 3
  found = agreement.agreement_of_models({"a": z, "b": moved, "c": -z}, texts)
  assert [row["models"] for row in found] == ["a b", "a c", "b c"]
  assert [row["prompts"] for row in found] == [3, 2, 2]
  assert np.isclose(found[0]["spearman"], 1)
  assert np.isnan(found[1]["spearman"])


def test_the_strength_follows_the_trial():
  assert np.isclose(continuing.strength_for(2.0, 2.4, -1.0), -1.5)
  assert continuing.strength_for(2.0, 2.0, -1.0) == 0
  assert continuing.strength_for(2.0, 2.001, -1.0) == -50


def test_a_continuation_is_of_the_number_that_is_wanted(model, axes):
  prompt = "The dog near the cats"
  text, strengths = continuing.continue_as(
    model, axes[-1], prompt, "plural", max_new=3
  )
  assert isinstance(text, str) and strengths.shape == (3,)
  assert (strengths != 0).all()
  plain, none = continuing.continue_as(model, None, prompt, "plural", max_new=3)
  again, _ = continuing.continue_as(model, None, prompt, "singular", max_new=3)
  assert plain == again and not none.any()


def test_steering_is_an_edit_of_the_last_position(model, axes):
  ids = model.tokenizer.encode("The dog near the cats")
  tokens = np.zeros((1, 16), np.int32)
  tokens[0, : len(ids)] = ids
  steer = continuing._Steering(model, axes[0])
  steer.look(tokens, len(ids))
  found = steer.logits([0.0, 2.5])
  here = np.zeros((1, len(ids)), bool)
  here[0, -1] = True
  for strength, row in zip((0.0, 2.5), found, strict=True):
    move = add(model.config, 0, strength * axes[0].direction[:, 0])
    edits = only_where(move, jnp.asarray(here))
    prompt = jnp.asarray(tokens[:, : len(ids)])
    resid, _ = run(model.model, model.params, prompt, edits)
    want = unembed(model.model, model.params, resid[:, -1])[0]
    np.testing.assert_allclose(row, want, atol=1e-4)
  assert np.abs(found[1] - found[0]).max() > 0.1


def test_bad_input_is_refused(model, axes, pairs):
  with pytest.raises(ValueError, match="number: got 'dual'"):
    continuing.continue_as(model, None, "The", "dual")
  with pytest.raises(ValueError, match="pairs: got no conditions"):
    number_axis.with_attractor(dataclasses.replace(pairs, condition=None))
