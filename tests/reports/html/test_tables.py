import json

import pytest
from one_line import refusal

from headjax.reports.html import tables


def write(tmp_path, text, name="t.csv"):
  path = tmp_path / name
  path.write_bytes(text if isinstance(text, bytes) else text.encode())
  return path


def test_a_table_reads_as_it_was_written(tmp_path):
  path = write(tmp_path, 'a,b\n1,"x, ""y""\nz"\n2\n')
  columns, rows = tables.read(path)
  assert columns == ["a", "b"]
  assert rows == [["1", 'x, "y"\nz'], ["2", ""]]
  assert tables.read(write(tmp_path, "")) == ([], [])


@pytest.mark.parametrize(
  ("text", "part"),
  [
    (b"\xff\xfe\x00", "unreadable"),
    ("a,b\n1,2,3\n", "3 cells in row 1"),
    ('a\n"open', "unreadable"),
  ],
)
def test_what_is_no_table_is_refused(text, part, tmp_path):
  with refusal("t.csv", part):
    tables.read(write(tmp_path, text))


def test_json_is_a_table_if_it_is_one_row(tmp_path):
  row = {"p": 0.5, "why": None, "n": 3}
  path = write(tmp_path, json.dumps(row), "cell.json")
  assert tables.read(path) == (["p", "why", "n"], [["0.5", "", "3"]])
  for other in ([1], {}, {"a": [1]}, 3):
    assert tables.read(write(tmp_path, json.dumps(other), "x.json")) is None
  with refusal("x.json", "unreadable"):
    tables.read(write(tmp_path, "{", "x.json"))


def test_what_is_equal_or_empty_in_all_rows_takes_no_column():
  html = tables.html(
    ["run", "x", "paper"], [["r", "1", ""], ["r", "2", ""]], 200
  )
  assert "run r" in html and html.count("<th ") == 1 and "paper" not in html
  same = tables.html(["run", "x"], [["r", "1"], ["r", "1"]], 200)
  assert same.count("<th ") == 2


def test_one_row_becomes_pairs():
  html = tables.html(["E", "paper"], [["8.57528", ""]], 200)
  assert "<dt>E</dt>" in html and "8.575" in html and 'title="8.57528"' in html
  assert "paper" not in html and "<table" not in html


def test_numbers_are_rounded_and_stand_to_the_right():
  assert tables.short("-0.123456") == "\u22120.1235"
  assert tables.short("134515008") == "134515008"
  assert tables.short("48.4%") == "48.4%" and tables.short("L1H-2") == "L1H-2"
  html = tables.html(["name", "x"], [["a", "-1"], ["b", ""], ["c", "2.5"]], 200)
  assert '<th scope="col" class="n"><button type="button">x' in html
  assert '<td class="n">\u22121</td>' in html and "title" not in html


def test_markup_in_a_table_is_text():
  html = tables.html(["<i>"], [["<b>"], ["x"]], 200)
  assert "<b>" not in html and "&lt;b&gt;" in html and "&lt;i&gt;" in html


def test_a_long_table_says_how_many_rows_it_has():
  html = tables.html(["a"], [[str(i)] for i in range(300)], 200)
  assert html.count("<tr>") == 1 + 200
  assert "The first 200 of 300 rows." in html
