"""Is a claim judged by its interval over seeds, and by the right rows?"""

import numpy as np
import pytest

from headjax.statistics import seed_difference, seed_interval
from headjax.statistics.seeds import SeedInterval
from headjax.studies.exclusivity import lane_claims
from headjax.studies.exclusivity.claim_list import CLAIMS
from headjax.studies.exclusivity.claims import (
  Claim,
  column,
  judge,
  less,
  verdict,
)
from headjax.studies.exclusivity.tables import TABLES


def rows(values, design="learned@tiny", **more):
  return [
    {"run": f"{design}-{i}", "design": design, "seed": i, "x": value} | more
    for i, value in enumerate(values)
  ]


A, B = [3.0, 3.5, 4.0], [1.0, 1.5, 1.0]
TABLE = {"t": rows(A) + rows(B, "write-common-R@tiny")}


def claim(a, b=None, bound=0.0):
  return Claim("text", "5.2", "x", "yes", a, b, bound)


def test_one_design_is_judged_by_its_mean():
  mine = column("t", "x", "learned")
  [row] = judge(TABLE, [claim(mine)])
  wanted = seed_interval(A)
  assert (row["estimate"], row["low"]) == (wanted.estimate, wanted.low)
  assert (row["holds"], row["n_seeds"], row["scale"]) == ("yes", 3, "tiny")
  assert judge(TABLE, [claim(mine, bound=9.0)])[0]["holds"] == "no"
  assert judge(TABLE, [claim(mine, bound=3.4)])[0]["holds"] == "undecided"


def test_two_designs_are_judged_by_their_difference():
  a, b = column("t", "x", "learned"), column("t", "x", "write-common")
  [row] = judge(TABLE, [claim(a, b)])
  wanted = seed_difference(A, B)
  assert (row["low"], row["high"]) == (wanted.low, wanted.high)
  assert row["holds"] == "yes"
  assert judge(TABLE, [claim(b, a)])[0]["holds"] == "no"


def test_a_claim_without_runs_has_no_row_and_one_seed_decides_nothing():
  assert judge(TABLE, [claim(column("t", "x", "mlp3456"))]) == []
  assert judge(TABLE, [claim(column("u", "x", "learned"))]) == []
  one = {"t": rows(A[:1])}
  assert judge(one, [claim(column("t", "x", "learned"))])[0]["holds"] == (
    "undecided"
  )


def test_scales_are_judged_apart():
  table = {"t": rows(A) + rows([-3.0, -3.5, -4.0], "learned@small")}
  found = judge(table, [claim(column("t", "x", "learned"))])
  assert [(r["scale"], r["holds"]) for r in found] == [
    ("tiny", "yes"), ("small", "no")
  ]  # fmt: skip


def test_columns_are_chosen_changed_and_combined():
  table = {
    "t": [
      {"run": "r", "design": "learned", "task": task, "x": x, "y": 2.0}
      for task, x in (("sva", 8.0), ("sva", 2.0), ("quote", 100.0))
    ]
  }
  assert column("t", "x", "learned", task="sva")(table) == {"r": 5.0}
  log = column("t", "x", "learned", np.log2, task="sva")(table)
  assert log == {"r": pytest.approx(2.0)}
  assert column("t", "x - y", "learned", task="sva")(table) == {"r": 3.0}
  assert column("t", "x / y", "learned", task="quote")(table) == {"r": 50.0}
  both = less(
    column("t", "x", "learned", task="quote"),
    column("t", "x", "learned", task="sva"),
  )
  assert both(table) == {"r": 95.0}


def test_values_that_are_not_there_are_left_out():
  table = {"t": rows([1.0, np.nan, 2.0])}
  assert judge(table, [claim(column("t", "x", "learned"))])[0]["n_seeds"] == 2


@pytest.mark.parametrize(
  ("low", "high", "wanted"),
  [(0.1, 1, "yes"), (-1, -0.1, "no"), (-1, 1, "undecided"), (0, 1, "undecided"),
   (np.nan, np.nan, "undecided")],
)  # fmt: skip
def test_verdicts(low, high, wanted):
  assert verdict(SeedInterval(0.0, low, high, 5), 0.0) == wanted


def curve(accuracy, score):
  steps = [0, 100, 200, 400]
  return {
    "curves": [
      {"run": "r", "design": "write-common@tiny", "task": "sva", "step": s,
       "accuracy": a, "Lambda": x, "chance": 0.1}
      for s, a, x in zip(steps, accuracy, score, strict=True)
    ]
  }  # fmt: skip


def test_a_lane_that_forms_two_doublings_late_has_a_delay_of_two():
  delay = lane_claims.lane_delay("write-common", "sva")
  late = curve([0.5, 0.95, 1.0, 1.0], [0.1, 0.1, 0.2, 0.9])
  assert delay(late) == {"r": pytest.approx(2.0)}
  early = curve([0.5, 0.5, 0.5, 1.0], [0.1, 0.9, 0.9, 0.9])
  assert delay(early) == {"r": pytest.approx(-2.0)}
  none = curve([0.5, 0.95, 1.0, 1.0], [0.1, 0.9, 0.9, 0.05])
  assert np.isnan(delay(none)["r"])


def test_every_claim_is_told_once_and_reads_a_table_that_there_is():
  texts = [(c.text, c.statistic) for c in CLAIMS]
  assert len(set(texts)) == len(texts)

  class Seen(dict):
    def get(self, name, default):
      assert name in TABLES, name
      return default

  for one in CLAIMS:
    assert one.a(Seen()) == {}
    assert one.b is None or one.b(Seen()) == {}
    assert one.paper and one.section and one.statistic
