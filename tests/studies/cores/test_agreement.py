"""Are the axis, its edits and its continuations what they say?"""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import GPT2, random_model
from one_line import refusal

from headjax import results
from headjax.data.tasks import load_task
from headjax.data.toy import Toy
from headjax.interventions.projections import add, only_where
from headjax.models.decoder import run, unembed
from headjax.statistics.discrimination import auc
from headjax.studies.cores import (
  agreement,
  alike,
  continuing,
  number_axis,
  steering,
  turning,
)


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
  flips = agreement.flip_aucs(model, axes, pairs)
  assert flips == [row["flip"] for row in rows]


def test_the_control_moves_as_far_as_the_flip(model, pairs, axes):
  streams = number_axis.last_streams(model, pairs)
  for axis in axes:
    other = number_axis.random_axis(axis, 1)
    here = streams[axis.layer]
    far = np.linalg.norm(axis.projected(streams, "flip") - here, axis=1)
    moved = axis.moved_as_far(streams, other) - here
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), far, rtol=1e-9)
    across = moved - np.outer(moved @ other.direction[:, 0], other.direction)
    assert np.abs(across).max() < 1e-9


def test_a_separation_is_between_the_means_of_the_numbers(model, pairs, axes):
  plural = number_axis.is_plural(pairs)
  for axis in axes:
    z = axis.coordinates(number_axis.last_streams(model, pairs))
    apart = z[plural].mean() - z[~plural].mean()
    assert np.isclose(axis.separation, apart) and apart > 0


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


def test_models_are_compared_on_what_both_can_write(model, pairs):
  texts = alike.shared_texts([model.tokenizer] * 2, [pairs, pairs])
  again = alike.as_pairs(model.tokenizer, texts)
  assert again.clean.tolist() == pairs.clean.tolist()
  assert again.condition.tolist() == pairs.condition.tolist()
  assert again.answer.tolist() == pairs.answer.tolist()
  unknown = {
    "The zebra near the cabinets": False,
    "The dog near the cats": True,
  }
  assert alike.written_by(model.tokenizer, unknown) == {
    "The dog near the cats": True
  }


def test_models_are_compared_by_rank_within_the_numbers_too():
  """Two axes that agree on the label alone agree on nothing within."""
  rng, plural = np.random.default_rng(0), np.arange(80) % 2 == 0
  z = 10 * plural + rng.normal(size=80)
  noise = 10 * plural + rng.normal(size=80)
  found = alike.pair_rows({"a": z, "b": z**3, "c": noise}, plural, draws=200)
  assert [row["models"] for row in found] == ["a b", "a c", "b c"]
  same, label, _ = found
  assert np.isclose(same["spearman"], 1) and np.isclose(same["within"], 1)
  assert label["spearman"] > 0.6 > 0.4 > label["permuted"]
  assert abs(label["within"]) < label["permuted within"] < 0.4
  table = alike.matrix_rows(found, ["a", "b", "c"], "spearman")
  assert table[0]["model"] == "a" and table[2]["a"] == label["spearman"]


def test_the_smallest_move_that_reaches_what_is_wanted():
  tried = np.array([0.0, 1, 2])
  found = np.array([[1.0, 0, 0, 0, 0], [2, 1, 0, 3, 0.9], [3, 3, 0, -1, 0.5]])
  wanted = np.array([0.5, 2, 1, 1.5, 1])
  moves = steering.first_crossing(tried, found, wanted)
  np.testing.assert_allclose(moves, [0, 1.5, 2, 0.5, 2])


def test_a_turn_reaches_the_other_number_and_its_control_is_as_far(
  model, pairs, axes, tmp_path
):
  results.save(turning.turn(model, axes[-1], pairs, draws=2), tmp_path / "t.nc")
  found = results.load(tmp_path / "t.nc")
  plural = number_axis.is_plural(pairs)
  strength, after = found["strength"].values, found["preference"]
  assert (np.sign(strength)[strength != 0] == np.where(plural, -1, 1)[
    strength != 0]).all()  # fmt: skip
  reached = np.abs(strength) < steering.LARGEST
  beyond = np.where(plural, -1, 1) * after.sel(along="core").values
  assert reached.any() and (beyond[reached] > 0.8).all()
  steer = steering.Steering(model, axes[-1])
  steer.look(pairs.clean, pairs.lengths)
  other = number_axis.random_axis(axes[-1], 1)
  np.testing.assert_allclose(
    after.sel(along="random 1").values,
    steer.preferences(steer.moves(other, strength)[None])[0], atol=1e-3,
  )  # fmt: skip
  rows = turning.turned_rows(found)
  assert [(r["subject"], r["along"]) for r in rows][:3] == [
    ("singular", "none"), ("singular", "core"), ("singular", "random"),
  ]  # fmt: skip
  before = after.sel(along="none").values[~plural] > 0
  assert rows[0]["prefers other"] == before.mean()


def test_a_continuation_is_of_the_number_that_is_wanted(model, axes):
  prompt, axis = "The dog near the cats", axes[-1]
  text, strengths = continuing.continue_as(
    model, axis, prompt, "plural", along=axis, max_new=3
  )
  assert isinstance(text, str) and strengths.shape == (3,)
  plain, none = continuing.continue_as(
    model, axis, prompt, "plural", along=None, max_new=3
  )
  again, _ = continuing.continue_as(
    model, axis, prompt, "singular", along=None, max_new=3
  )
  assert plain == again and not none.any()
  verb, _ = continuing.continue_as(
    model, axis, prompt, "plural", along=axis, verb_first=True, max_new=1
  )
  assert verb.strip() in {"are", "were", "is", "was"}


def test_steering_is_an_edit_of_the_last_position(model, axes):
  ids = model.tokenizer.encode("The dog near the cats")
  tokens = np.zeros((1, 16), np.int32)
  tokens[0, : len(ids)] = ids
  steer = steering.Steering(model, axes[0])
  steer.look(tokens, np.array([len(ids)]))
  found = steer.logits(steer.moves(axes[0], np.array([[0.0], [2.5]])))[:, 0]
  here = np.zeros((1, len(ids)), bool)
  here[0, -1] = True
  for strength, row in zip((0.0, 2.5), found, strict=True):
    far = strength * axes[0].separation
    move = add(model.config, 0, far * axes[0].direction[:, 0])
    edits = only_where(move, jnp.asarray(here))
    prompt = jnp.asarray(tokens[:, : len(ids)])
    resid, _ = run(model.model, model.params, prompt, edits)
    want = unembed(model.model, model.params, resid[:, -1])[0]
    np.testing.assert_allclose(row, want, atol=1e-4)
  assert np.abs(found[1] - found[0]).max() > 0.1


def test_bad_input_is_refused(model, axes, pairs):
  with pytest.raises(ValueError, match="number: got 'dual'"):
    continuing.continue_as(model, axes[0], "The", "dual", along=None)
  for field, got in (("max_new", 0), ("top_k", 0), ("top_k", 10**9)):
    with refusal(field, str(got)):
      continuing.continue_as(
        model, axes[0], "The", "plural", along=None, **{field: got}
      )
  with pytest.raises(ValueError, match="pairs: got no conditions"):
    number_axis.with_attractor(dataclasses.replace(pairs, condition=None))
