"""Do the tests of writers and cancellers err as often as they say?"""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from experiments.benchmarks import writers_calibration as calibration
from headjax import command_line

# Small enough for a few hundred repeats.
SMALL = {"prompts": 96, "heads": 96, "shuffles": 8, "planted": 8}
REPEATS = 150


def rows(name, repeats=REPEATS, draws=2000, **changes):
  cell = dataclasses.replace(calibration.CELLS[name], **SMALL | changes)
  found = calibration.discoveries(cell, repeats, draws)
  return {row["rule"]: row for row in found}


def test_attributions_have_the_variances_that_the_cell_says():
  cell = calibration.Cell(prompts=800, heads=120, planted=40, strength=40.0)
  values, shuffled = (x[..., 0, :] for x in calibration.draw(cell, 0))
  assert values.shape == (800, 120) and shuffled.shape == (20, 800, 120)
  assert values.var() == pytest.approx(1 + values.mean(axis=0).var(), rel=0.05)
  np.testing.assert_allclose(values.mean(axis=0), cell.truth[0], atol=0.15)
  assert np.abs(shuffled.mean(axis=(0, 1))).max() < 0.15
  change = shuffled[0] - shuffled[1]
  assert change.var() == pytest.approx(2 * 0.2, rel=0.05)
  kinds = shuffled.mean(axis=0).reshape(50, 16, 120).mean(axis=0)
  assert kinds.var() == pytest.approx(0.6, rel=0.15)
  correlation = np.abs(np.corrcoef(change.T))[np.triu_indices(120, 1)]
  assert correlation.mean() == pytest.approx(0.25, abs=0.02)


def test_skewed_labels_have_mean_zero_and_variance_one():
  cell = calibration.Cell(
    prompts=4000, heads=4, between=0.0, labels=1.0, planted=0, skewed=True
  )
  values, _ = calibration.draw(cell, 0)
  assert np.abs(values.mean(axis=0)).max() < 0.1
  assert values.var() == pytest.approx(1.0, rel=0.1)
  assert np.abs(stats.skew(values, axis=0)).min() > 0.8


def test_prompts_that_belong_together_share_their_labels():
  values, shuffled = calibration.draw(
    calibration.Cell(prompts=32, heads=5, together=8, between=0.0, labels=1.0),
    0,
  )
  for table in (values, *shuffled):
    groups = table[:, 0].reshape(4, 8, 5)
    np.testing.assert_array_equal(groups, groups[:, :1].repeat(8, axis=1))


def test_the_script_prints_three_tables(tmp_path, monkeypatch, capsys):
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
  small = dataclasses.replace(calibration.Cell(), **SMALL | {"prompts": 32})
  monkeypatch.setattr(calibration, "CELLS", {"small": small})
  with pytest.raises(SystemExit) as ended:
    command_line.run(calibration.main, ["--repeats", "2"])
  assert ended.value.code == 0
  printed = capsys.readouterr().out
  assert "realised FDR" in printed and "sign-shuffle, 2 cells" in printed
  assert printed.count("very skewed") == 2
  with pytest.raises(SystemExit) as ended:
    command_line.run(calibration.main, ["--repeats", "1"])
  assert ended.value.code == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["as released", "independent", "skewed"])
def test_the_sign_flip_rule_keeps_its_false_discovery_rate(name):
  found = rows(name)
  print(name, found)
  row = found["sign-flip"]
  assert row["realised FDR"] <= row["allowed"]
  assert row["found"] > 0.5


@pytest.mark.slow
def test_prompts_that_belong_together_must_change_sign_together():
  found = rows("eight together")
  print(found)
  assert found["sign-flip"]["realised FDR"] > found["sign-flip"]["allowed"]
  row = found["sign-flip, together"]
  assert row["realised FDR"] <= row["allowed"]


@pytest.mark.slow
def test_nothing_planted_is_seldom_found():
  row = rows("as released", planted=0)["sign-flip"]
  assert row["realised FDR"] <= row["allowed"]


@pytest.mark.slow
def test_p_of_the_sign_shuffle_is_uniform():
  p = calibration.shuffle_p(500)
  assert stats.kstest(p, "uniform").pvalue > 1e-3
  assert (p <= 0.05).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 500)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "heavy tails", "skewed"])
def test_bca_intervals_cover(name):
  row = calibration.coverage(name, 200, 500, draws=1000)
  print(row)
  assert abs(row["coverage"] - 0.95) <= 3 * row["error"]
