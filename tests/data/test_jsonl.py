"""Does a file of a user's own pairs arrive as written, or not at all?"""

import json

import numpy as np
import pytest

from headjax.data import from_jsonl

SHORT = {
  "clean": "The cat",
  "reference": "The cats",
  "answer": " is",
  "foil": " are",
}
LONG = {
  "clean": "When Mary and John went out, John",
  "reference": "When Anna and Paul went out, Paul",
  "answer": " saw",
  "foil": " ate",
}


def written(folder, *lines):
  path = folder / "mine.jsonl"
  lines = [x if isinstance(x, str) else json.dumps(x) for x in lines]
  path.write_text("\n".join(lines), encoding="utf-8")
  return path


# The toy language lacks the words.
@pytest.mark.parametrize("tokenizer", ["gpt2", "smollm2-135m"], indirect=True)
def test_prompts_of_different_lengths_arrive_as_written(tmp_path, tokenizer):
  extra = SHORT | {"note": "ignored"}
  path = written(tmp_path, LONG, "", extra, " ", LONG, "")
  pairs = from_jsonl(path, tokenizer)
  assert (pairs.name, pairs.split, len(pairs)) == ("mine", "file", 3)
  assert pairs.lengths[0] > pairs.lengths[1] == 2
  for i, source in enumerate((LONG, SHORT, LONG)):
    for field in ("clean", "reference"):
      ids = getattr(pairs, field)[i]
      assert tokenizer.decode(ids[: pairs.lengths[i]]) == source[field]
      np.testing.assert_array_equal(ids[pairs.lengths[i] :], 0)
    for field in ("answer", "foil"):
      assert tokenizer.decode([getattr(pairs, field)[i]]) == source[field]
  np.testing.assert_array_equal(pairs.answer_pos, pairs.lengths - 1)
  np.testing.assert_array_equal(pairs.first_difference, [1, 1, 1])
  differing = (pairs.clean != pairs.reference).sum(1)
  np.testing.assert_array_equal(differing, [3, 1, 3])


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path, gpt2_tokenizer):
  path = tmp_path / "mine.jsonl"
  line = json.dumps(SHORT).encode()
  path.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n" + line + b"\r\n")
  assert len(from_jsonl(path, gpt2_tokenizer)) == 2


@pytest.mark.parametrize(
  ("line", "where", "what"),
  [
    ("{'clean'}", "", "Expecting property name"),
    ("[" * 100_000, "", "a JSON object"),
    ("[1]", "", "got a list; expected a JSON object"),
    ({"clean": "The cat"}, ", field reference", "no such field"),
    (SHORT | {"foil": 3}, ", field foil", "got int 3; expected text"),
    (SHORT | {"clean": None}, ", field clean", "got NoneType None"),
    (SHORT | {"clean": "\ud800"}, ", field clean", "expected text"),
    (SHORT | {"clean": "", "reference": ""}, ", field clean", "no tokens"),
    (
      SHORT | {"reference": "The old cat"},
      ", field reference",
      "got 3 tokens ['The', ' old', ' cat']; expected 2 tokens, like clean "
      "['The', ' cat']",
    ),
    (
      SHORT | {"answer": " is not"},
      ", field answer",
      "got ' is not' = tokens [' is', ' not']; expected a single token",
    ),
    (SHORT | {"foil": ""}, ", field foil", "expected a single token"),
    (SHORT | {"foil": " is"}, ", field foil", "got ' is', the answer"),
  ],
)
def test_a_wrong_line_is_named(tmp_path, gpt2_tokenizer, line, where, what):
  path = written(tmp_path, SHORT, line, SHORT)
  with pytest.raises(ValueError) as error:
    from_jsonl(path, gpt2_tokenizer)
  message = str(error.value)
  assert message.startswith(f"{path}, line 2{where}: got ")
  assert what in message
  assert "\n" not in message and len(message) < 600


def test_long_prompts_are_shortened_in_messages(tmp_path, gpt2_tokenizer):
  long = SHORT | {"clean": "The cat" + " very" * 500}
  with pytest.raises(ValueError, match="got 2 tokens .* expected 502") as error:
    from_jsonl(written(tmp_path, long), gpt2_tokenizer)
  assert len(str(error.value)) < 600


@pytest.mark.parametrize(
  ("content", "what"),
  [
    (b"", "no pairs"),
    (b"\n \n", "no pairs"),
    (b"\xff\xfe", "UTF-8"),
    (None, "No such file"),
  ],
)
def test_a_file_without_pairs_is_refused(
  tmp_path, gpt2_tokenizer, content, what
):
  path = tmp_path / "mine.jsonl"
  if content is not None:
    path.write_bytes(content)
  with pytest.raises(ValueError, match=what) as error:
    from_jsonl(path, gpt2_tokenizer)
  assert str(error.value).startswith(str(path))
  assert "\n" not in str(error.value)
