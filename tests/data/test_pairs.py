"""Are pairs checked where they are made, and equal where content is equal?"""

import dataclasses
import re

import numpy as np
import pytest

from headjax.data import PromptPairs, pad_right

CLEAN = [[5, 6, 7], [5, 8, 0]]
REFERENCE = [[5, 9, 7], [4, 8, 0]]


def made(**changes):
  fields = {
    "clean": CLEAN,
    "reference": REFERENCE,
    "answer": [1, 2],
    "foil": [2, 1],
    "lengths": [3, 2],
  }
  return PromptPairs(**(fields | changes))


def test_positions_follow_from_lengths_and_differences():
  pairs = made()
  assert pairs.n_examples == len(pairs) == 2
  np.testing.assert_array_equal(pairs.answer_pos, [2, 1])
  np.testing.assert_array_equal(pairs.first_difference, [1, 0])
  assert pairs.first_difference.dtype == pairs.answer_pos.dtype == np.int32


def test_without_lengths_prompts_have_the_full_width():
  np.testing.assert_array_equal(made(lengths=None).lengths, [3, 3])


def test_an_equal_pair_starts_to_differ_at_its_answer():
  pairs = made(reference=CLEAN)
  np.testing.assert_array_equal(pairs.first_difference, pairs.answer_pos)


def test_padding_changes_neither_difference_nor_digest():
  padded = made(clean=[[5, 6, 7], [5, 8, 99]])
  np.testing.assert_array_equal(padded.clean, CLEAN)
  np.testing.assert_array_equal(padded.first_difference, [1, 0])
  assert padded.digest == made().digest


@pytest.mark.parametrize(
  "change",
  [
    {"clean": [[5, 6, 8], [5, 8, 0]]},
    {"reference": [[5, 9, 8], [4, 8, 0]]},
    {"answer": [1, 3]},
    {"foil": [3, 1]},
    {"lengths": [3, 1]},
    {"group": ["a", "b"]},
    {"condition": [0, 1]},
  ],
)
def test_every_content_changes_the_digest(change):
  assert made(**change).digest != made().digest


def test_names_are_not_content():
  assert made(name="other", split="file").digest == made().digest


def test_the_digest_of_groups_tells_their_borders():
  ab, ba = made(group=["ab", "c"]), made(group=["a", "bc"])
  assert ab.digest != ba.digest


def test_arrays_are_read_only_copies():
  ids = np.array(CLEAN)
  pairs = made(clean=ids)
  ids[0, 0] = 77
  assert pairs.clean[0, 0] == 5
  for field in ("clean", "reference", "answer", "foil", "lengths"):
    array = getattr(pairs, field)
    assert array.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
      array[0] = 1


@pytest.mark.parametrize(
  "indices", [[1], np.array([1]), slice(1, 2), np.array([False, True])]
)
def test_select_keeps_every_field(indices):
  pairs = made(group=["a", "b"], condition=[3, 2], name="n", split="s")
  picked = pairs.select(indices)
  for field in dataclasses.fields(pairs):
    whole, part = getattr(pairs, field.name), getattr(picked, field.name)
    if isinstance(whole, np.ndarray):
      np.testing.assert_array_equal(part, whole[1:])
    else:
      assert part == whole


def test_select_keeps_the_order_of_the_indices():
  np.testing.assert_array_equal(made().select([1, 0]).answer, [2, 1])


def test_a_vocabulary_must_hold_every_id():
  made().check_vocabulary(10)
  with pytest.raises(ValueError, match="reference: got id 9 in example 0"):
    made().check_vocabulary(9)
  with pytest.raises(ValueError, match="foil: got id 50 in example 1"):
    made(foil=[2, 50]).check_vocabulary(10)


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"clean": [1, 2]}, "clean: got shape (2,)"),
    ({"clean": np.zeros((0, 3), int)}, "clean: got shape (0, 3)"),
    ({"clean": [[1], [1, 2]]}, "clean: got rows of different lengths"),
    ({"clean": [[0.5, 1, 2]] * 2}, "clean: got dtype float64"),
    ({"reference": [[1, 2]] * 2}, "reference: got shape (2, 2)"),
    ({"answer": [1]}, "answer: got shape (1,)"),
    ({"foil": [1, -1]}, "foil: got -1"),
    ({"answer": [1, 2**31]}, "answer: got 2147483648"),
    ({"lengths": [3, 0]}, "lengths: got 0 in example 1"),
    ({"lengths": [4, 2]}, "lengths: got 4 in example 0"),
    ({"group": ["a"]}, "group: got shape (1,)"),
    ({"condition": [0, 4]}, "condition: got 4"),
  ],
)
def test_wrong_fields_are_refused_in_one_line(changes, message):
  with pytest.raises(ValueError, match=re.escape(message)) as error:
    made(**changes)
  assert "\n" not in str(error.value)


def test_rows_are_padded_on_the_right():
  ids, lengths = pad_right([[3], [1, 2, 3], [4, 5]])
  np.testing.assert_array_equal(ids, [[3, 0, 0], [1, 2, 3], [4, 5, 0]])
  np.testing.assert_array_equal(lengths, [1, 3, 2])
