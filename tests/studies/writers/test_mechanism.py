"""Are planted differences of two groups found, and measured as defined?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.studies.writers.mechanism import (
  attention_sources,
  coverage,
  directions,
  downstream,
  source_labels,
)

NAMES = ("bos", "format", "demo_input", "demo_label", "query_input")
WRITERS = [(0, 0), (0, 1), (1, 2), (2, 3)]
CANCELLERS = [(1, 0), (1, 3), (2, 1), (2, 2)]


def test_a_planted_difference_of_attention_is_found():
  rng = np.random.default_rng(0)
  attention = 0.2 + 0.01 * rng.normal(size=(30, 3, 4, 5))
  for head in WRITERS:
    attention[:, *head, 3] += 0.3
    attention[:, *head, 0] -= 0.3
  rows = attention_sources(attention, NAMES, WRITERS, CANCELLERS)
  assert [row["source"] for row in rows] == list(NAMES)
  by_name = {row["source"]: row for row in rows}
  label = by_name["demo_label"]
  mean = attention.mean(axis=0)
  own = np.mean([mean[head][3] for head in WRITERS])
  other = np.mean([mean[head][3] for head in CANCELLERS])
  assert label["writers"] == pytest.approx(own)
  assert label["cancellers"] == pytest.approx(other)
  assert label["difference"] == pytest.approx(own - other)
  # Of 70 splits, this one and its mirror image are the largest.
  assert label["p"] == by_name["bos"]["p"] == pytest.approx(2 / 70)
  assert label["p_holm"] == pytest.approx(5 * 2 / 70)
  assert by_name["format"]["p"] > 0.05


def test_heads_are_content_or_sink_by_the_larger_part():
  attribution = np.zeros((2, 1, 3, 5))
  attribution[:, 0, 0, 3] = 1.0
  attribution[:, 0, 0, 0] = [3.0, -3.2]  # averages out
  attribution[:, 0, 1, 1] = -1.0
  attribution[:, 0, 2, 2:4] = [1.0, -1.0]  # parts of one kind cancel
  attribution[:, 0, 2, 0] = 0.1
  found = source_labels(attribution, NAMES)
  assert found.tolist() == [["content", "sink", "sink"]]


def test_directions_are_those_of_the_mean_writes():
  writes = np.zeros((3, 4, 3))
  for head in WRITERS:
    writes[head] = [2.0, 0.0, 0.0]
  for i, head in enumerate(CANCELLERS):
    writes[head] = [-1.0, 2.0 + (-1) ** i, 0.0]
  found = directions(writes, WRITERS, CANCELLERS)
  assert found.projection == pytest.approx(-0.5)
  assert found.cosine == pytest.approx(-1 / np.sqrt(5))
  assert found.orthogonal == pytest.approx(2 / np.sqrt(5))
  assert found.cosine**2 + found.orthogonal**2 == pytest.approx(1)


def test_order_and_coverage_are_counted():
  assert downstream(WRITERS, CANCELLERS) == 4
  assert downstream([(1, 0)], CANCELLERS) == 2
  assert downstream([], CANCELLERS) == downstream(WRITERS, []) == 0
  assert coverage(WRITERS, [(2, 3), (9, 9)], count=4) == (1, 2)
  assert coverage(WRITERS, [(2, 3)], count=3) == (0, 1)


def test_an_empty_group_is_refused():
  with refusal("groups: got 4 writers and 0 cancellers; expected at least one"):
    directions(np.zeros((3, 4, 3)), WRITERS, [])
  with refusal("groups: got 0 writers"):
    attention_sources(np.zeros((2, 3, 4, 5)), NAMES, [], CANCELLERS)
