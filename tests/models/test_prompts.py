"""Are prompts that no model could run refused in one line?"""

import numpy as np
import pytest
from helpers import GPT2
from one_line import refusal

from headjax.models.prompts import bucket, check_prompts

TOKENS = np.array([[1, 2, 3], [4, 5, 28]])


def test_prompts_come_back_as_int32():
  tokens, lengths = check_prompts(GPT2, TOKENS)
  assert tokens.dtype == lengths.dtype == np.int32
  np.testing.assert_array_equal(tokens, TOKENS)
  assert list(lengths) == [3, 3]
  assert list(check_prompts(GPT2, TOKENS, [1, 3])[1]) == [1, 3]


@pytest.mark.parametrize(
  ("tokens", "parts"),
  [
    (TOKENS + 0.5, ["float64", "ids"]),
    (TOKENS[0], ["shape (3,)"]),
    (TOKENS[:, :0], ["shape (2, 0)"]),
    (TOKENS[:0], ["shape (0, 3)"]),
    (TOKENS + 1, ["to 29", "0 to 28"]),
    (TOKENS - 2, ["ids -1 to"]),
    (np.zeros((1, 13), int), ["(1, 13)", "12"]),
  ],
)
def test_bad_tokens_are_refused(tokens, parts):
  with refusal("tokens: got", *parts):
    check_prompts(GPT2, tokens)


@pytest.mark.parametrize("lengths", [[3], [0, 3], [3, 4], [1.5, 2.0], [[1, 2]]])
def test_bad_lengths_are_refused(lengths):
  with refusal("lengths: got", str(lengths), "2 lengths of 1 to 3 tokens"):
    check_prompts(GPT2, TOKENS, lengths)


def test_prompt_and_new_tokens_fit_the_context():
  check_prompts(GPT2, TOKENS, [2, 1], room=10)
  with refusal("max_new", "11 after a prompt of 2", "12 tokens"):
    check_prompts(GPT2, TOKENS, [2, 1], room=11)


@pytest.mark.parametrize(
  ("n_tokens", "width"), [(1, 16), (16, 16), (17, 32), (33, 50), (50, 50)]
)
def test_widths_double_up_to_the_context(n_tokens, width):
  assert bucket(n_tokens, 50) == width
