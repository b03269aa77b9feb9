"""Is every planted head called what it is, by every check of the study?"""

import jax
import numpy as np
import planted_writers as planted
import pytest

from headjax import results
from headjax.studies.writers import cell, explained, explaining
from headjax.studies.writers.released import name_of

DRAWS = 500
# Two parts compile for long; `test_the_slow_parts` has them.
QUICK = [
  p for p in explaining.PARTS if p not in ("mean-patching", "importance")
]
CANCELLERS = [planted.CANCELLER, planted.SUPPRESSOR, planted.CASCADE]


@pytest.fixture(scope="module", autouse=True)
def one_device():
  """Several virtual devices only make the compiler slower."""
  patch = pytest.MonkeyPatch()
  patch.setattr(jax, "local_device_count", lambda: 1)
  yield
  patch.undo()


@pytest.fixture(scope="module")
def studied():
  model = planted.circuit()
  prompts = planted.prompts(model.tokenizer)
  data = cell.measure_cell(model, prompts, draws=DRAWS)
  found = cell.judge(data, draws=DRAWS)
  more, reasons = explaining.explain(model, prompts, found, parts=QUICK)
  assert reasons == {}
  return found, more, explained.tables(more, found, draws=DRAWS)


def by_head(rows):
  return {row["head"]: row for row in rows}


def test_roles_are_those_that_were_planted(studied):
  found, _, tables = studied
  assert explained.TABLES.keys() - tables.keys() == {"coverage", "importance"}
  assert found.of_role("writer") == planted.WRITERS
  assert found.of_role("canceller") == CANCELLERS
  assert {v.name for v in found.verdicts.values()} == {"canonical"}
  shares = by_head(found.rows())
  # Of 1 - 0.4 + 0.6 - 0.25, a fifth is taken away again, and the induction
  # head adds a little.
  for head, weight in zip(planted.WRITERS, (1, 0.6), strict=True):
    row = shares[name_of(head)]
    assert row["direct"] == pytest.approx(weight / (0.8 * 0.95), rel=0.03)
    assert row["total"] == pytest.approx(0.8 * row["direct"], rel=1e-4)
  assert shares[name_of(planted.CASCADE)]["direct"] == pytest.approx(
    -0.25, rel=0.03
  )
  assert 0 < shares[name_of(planted.INDUCTION)]["direct"] < 0.05
  assert shares[name_of(planted.INDUCTION)]["role"] == "weak"
  assert shares[name_of(planted.PREVIOUS)]["role"] == "weak"


def test_the_copy_suppressor_is_of_rank_one_and_the_canceller_is_not(studied):
  rows = by_head(studied[2]["rank-one"])
  assert rows[name_of(planted.SUPPRESSOR)]["rank_one"]
  assert rows[name_of(planted.SUPPRESSOR)]["top_share"] == pytest.approx(1)
  for head in (*planted.WRITERS, planted.CANCELLER):
    row = rows[name_of(head)]
    # Two labels in one direction, eight digits in one each.
    assert row["top_share"] == pytest.approx(2 / 10)
    assert not row["rank_one"]


def test_the_induction_head_is_found_outside_the_groups(studied):
  _, more, tables = studied
  score = more["induction"].score.sel(kind="induction").mean("example").values
  assert np.unravel_index(score.argmax(), score.shape) == planted.INDUCTION
  assert score.max() > 0.8
  [row] = tables["induction"]
  assert row["heads"].split()[0] == name_of(planted.INDUCTION)
  assert row["expected"] == pytest.approx(10 * 5 / 18)


def test_only_the_last_head_answers_the_writers(studied):
  rows = studied[2]["cascade"]
  # The others have no writer in an earlier layer.
  assert {row["head"] for row in rows} == {name_of(planted.CASCADE)}
  by_source = {row["without"]: row for row in rows}
  assert by_source.keys() == {name_of(head) for head in planted.WRITERS}
  assert all(row["sure"] for row in rows)
  first = by_source[name_of(planted.WRITERS[0])]["share"]
  assert first == pytest.approx(-1 / 0.95, rel=0.02)


def test_what_is_seen_and_moved_is_told(studied):
  found, more, tables = studied
  sources = by_head(tables["sources"])
  for head in (*planted.WRITERS, planted.CANCELLER, planted.SUPPRESSOR):
    assert sources[name_of(head)]["kind"] == "content"
    assert abs(sources[name_of(head)]["demo_label"]) > 0.3
  # It looks at the last token, a comma.
  assert sources[name_of(planted.CASCADE)]["kind"] == "sink"
  seen = {row["source"]: row for row in tables["attention"]}
  assert seen["demo_label"]["writers"] == pytest.approx(1, abs=1e-3)
  assert seen["format"]["cancellers"] == pytest.approx(1 / 3, abs=1e-3)
  moved = by_head(tables["values"])
  for head in planted.WRITERS:
    assert moved[name_of(head)]["sure"]
    assert moved[name_of(head)]["share"] < -0.5


def test_one_canceller_comes_after_a_writer(studied):
  [row] = studied[2]["geometry"]
  assert (row["downstream"], row["cancellers"]) == (1, 3)


@pytest.mark.slow
def test_the_slow_parts(studied):
  found = studied[0]
  model = planted.circuit()
  prompts = planted.prompts(model.tokenizer)
  parts = ["mean-patching", "importance"]
  more, _ = explaining.explain(model, prompts, found, parts=parts)
  tables = explained.tables(more, found, draws=DRAWS)
  rows = {row["role"]: row for row in tables["coverage"]}
  assert (rows["writer"]["count"], rows["canceller"]["count"]) == (2, 3)
  assert rows["writer"]["among"] == 2  # of 18 heads, all are among 20
  rows = by_head(tables["importance"])
  assert len(rows) == 5
  assert rows[name_of(planted.WRITERS[0])]["rules"] > 0
  assert rows[name_of(planted.CANCELLER)]["rules"] < 0


def test_controls_do_nothing(studied):
  rows = studied[2]["controls"]
  assert [row["groups"] for row in rows[:2]] == ["W and C", "largest"]
  assert len(rows) == 2 + explaining.N_CONTROLS
  assert (rows[1]["first"], rows[1]["second"]) == (2, 3)
  assert rows[0]["attenuation"] > 1
  assert max(abs(row["attenuation"]) for row in rows[2:]) < 0.2


def test_rows_follow_from_the_saved_datasets(studied, tmp_path):
  found, more, tables = studied
  saved = {}
  for name, dataset in more.items():
    results.save(dataset, tmp_path / f"{name}.nc")
    saved[name] = results.load(tmp_path / f"{name}.nc")
  assert explained.tables(saved, found, draws=DRAWS) == tables


def test_without_cancellers_it_is_not_canonical():
  model = planted.circuit(cancel=0.0, suppress=0.0, cascade=0.0)
  prompts = planted.prompts(model.tokenizer)
  data = cell.measure_cell(model, prompts, draws=DRAWS)
  found = cell.judge(data, draws=DRAWS)
  assert found.of_role("writer") == planted.WRITERS
  assert found.of_role("canceller") == []
  assert {v.name for v in found.verdicts.values()} == {"writers_dominate"}
  more, reasons = explaining.explain(
    model, prompts, found, parts=["cascade", "writes"]
  )
  assert "2 writers and 0 cancellers" in reasons["cascade"]
  assert explained.tables(more, found, draws=DRAWS).keys() == {"rank-one"}
