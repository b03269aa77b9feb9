"""Are tokens shown beside their ids, and is what differs marked?"""

import numpy as np
import pytest
from one_line import refusal

from headjax import PromptPairs, show_tokens
from headjax.data.tasks import load_task


@pytest.fixture
def pairs(toy):
  return load_task("sva", toy, examples=4)


def test_every_row_has_its_prompt_and_the_answer_that_follows(toy, pairs):
  table = show_tokens(toy, pairs)
  assert len(table.rows) == 8
  for n, (field, answer) in enumerate(
    [("clean", "answer"), ("reference", "foil")]
  ):
    label, ids, texts = table.rows[n]
    assert label.startswith(f"0 {field}")
    np.testing.assert_array_equal(ids[:-1], getattr(pairs, field)[0])
    assert ids[-1] == getattr(pairs, answer)[0]
    assert "".join(texts) == toy.decode(ids)


def test_the_differing_token_and_the_answer_are_marked(toy, pairs):
  table = show_tokens(toy, pairs)
  assert set(table.marked) == {frozenset({1, 5})}
  line = repr(table).splitlines()[0]
  assert line.count("*") == 2 and " is' " in line
  assert table._repr_html_().count("<b>") == 16


def test_padding_is_not_shown_and_text_is_escaped(toy):
  ids = toy.encode("x <")
  pairs = PromptPairs(
    [[*ids, 0]], [[*ids, 0]], [ids[0]], [ids[1]], lengths=[len(ids)]
  )
  table = show_tokens(toy, pairs)
  assert [len(row[1]) for row in table.rows] == [len(ids) + 1] * 2
  assert table.marked == (frozenset({len(ids)}),) * 2
  unsafe = show_tokens(toy, ids)._repr_html_()
  assert "<unk>" not in unsafe


def test_ids_alone_are_rows(toy):
  table = show_tokens(toy, np.array([[3, 4], [5, 6]]))
  assert [row[:2] for row in table.rows] == [("0", (3, 4)), ("1", (5, 6))]
  assert show_tokens(toy, [3, 4]).rows == table.rows[:1]


def test_what_is_no_prompt_is_refused(toy):
  with refusal("prompts", "float64", "encode the text"):
    show_tokens(toy, np.ones(3))
  with refusal("prompts", "rows of different lengths", "pad_right"):
    show_tokens(toy, [[3, 4], [5]])
  with refusal("tokenizer", "None"):
    show_tokens(None, [1])
