"""Do heads built by hand get their class, and is the null's floor a floor?"""

import jax
import numpy as np
import planted_circuit
import pytest
import xarray as xr
from one_line import refusal
from scipy import stats

from headjax import results
from headjax.data.induction import random_induction
from headjax.interventions.attention_sums import AttentionSums
from headjax.studies.spectral import screen
from headjax.studies.spectral.measuring import measure


@pytest.fixture(scope="module", autouse=True)
def one_device():
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(jax, "local_device_count", lambda: 1)
    yield


@pytest.fixture(scope="module")
def found():
  return measure(planted_circuit.planted(), planted_circuit.rows(), draws=50)


def test_heads_built_by_hand_get_their_class(found):
  kinds = screen.classes(found)
  for head, wanted in planted_circuit.CLASSES.items():
    assert kinds.values[head] == wanted, head
  idle = np.ones(kinds.shape, bool)
  for head in planted_circuit.CLASSES:
    idle[head] = False
  assert (kinds.values[idle] == "unclassified").all()


def test_circuits_are_the_planted_heads(found):
  assert screen.circuit(found, "induction") == [planted_circuit.INDUCTION]
  assert screen.circuit(found, "previous") == [planted_circuit.PREVIOUS]


def test_the_uniform_baseline_is_one_over_the_eligible_keys(found):
  values = screen.selectivity(found, "uniform").sel(kind="induction")
  rows = planted_circuit.rows()
  eligible = rows.tokens.shape[1] - 7
  attention = found.attention.sel(kind="induction")
  np.testing.assert_allclose(values, attention * eligible)
  assert values.values[planted_circuit.INDUCTION] > 50
  idle = values.values[0, 0]
  assert idle == pytest.approx(eligible / (eligible + 7), rel=0.2)
  with refusal("baseline: got 'none'"):
    screen.selectivity(found, "none")


def test_the_ratio_counts_what_a_head_gives(found):
  """A copying head gives as many directions as tokens have, others fewer."""
  ratio = found.ratio.sel(measure="entropy")
  assert ratio[planted_circuit.INDUCTION] > 20
  assert ratio[0, 4] < ratio[planted_circuit.INDUCTION]


def test_a_saved_measurement_gives_the_same(found, tmp_path):
  results.save(found, tmp_path / "found.nc")
  again = results.load(tmp_path / "found.nc")
  assert screen.rows(again) == screen.rows(found)
  assert screen.null_floor(again) == screen.null_floor(found)


def synthetic(attention, baseline=1.0, kinds=("induction", "first")):
  """A measurement with that attention `[kind, layer, head]`."""
  attention = np.asarray(attention, float)
  full = np.zeros((len(screen.PLAIN), *attention.shape[1:]))
  for kind, values in zip(kinds, attention, strict=True):
    full[screen.PLAIN.index(kind)] = values
  return xr.Dataset(
    {
      "attention": (("kind", "layer", "head"), full),
      "baseline": (("layer", "head"), np.full(full.shape[1:], baseline)),
      "null": (("draw", "layer", "head"), np.ones((9, *full.shape[1:]))),
    },
    {"kind": list(screen.PLAIN)},
    attrs={"n_eligible": 249.0},
  )


def test_thresholds_are_thirty_fifty_and_a_hundred():
  found = synthetic(
    [[[29.9, 30, 49.9, 50]], [[0, 0, 0, 60]]]
  )  # the last head attends to the first token even more
  kinds = screen.classes(found).values[0].tolist()
  assert kinds == ["unclassified", "induction", "induction", "first"]
  assert screen.members(found, "induction") == [(0, 3)]
  assert screen.members(found, "induction", best_class=True) == []
  previous = synthetic(
    [[[99, 100, 101]], [[0, 0, 200]]], kinds=("previous", "first")
  )
  assert screen.circuit(previous, "previous") == [(0, 1)]


def test_the_conserved_fraction_has_two_estimators():
  values = np.zeros((2, 1, 10))
  values[0, 0, :3] = 40, 2, 1.5
  found = synthetic(values)
  signal = np.arange(10, 0, -1)[None]
  part = screen.conserved(found, signal)
  assert part.by_share == {0.1: 0.1, 0.208: 0.1, 0.3: 0.1, 1.0: 0.1}
  assert screen.conserved(found, -signal).by_share[0.3] == 0
  assert part.floor == 1 and part.above_null == pytest.approx(0.3)


def test_one_head_in_a_hundred_passes_the_floor_by_chance():
  """Attention that is exchangeable over the keys that stand for no kind."""
  probe = random_induction(50257, 1024, 60)
  n_heads = 4000
  random = np.random.default_rng(0)
  sums = AttentionSums(probe, draws=100)
  for place in (slice(i, i + 4) for i in range(0, 60, 4)):
    pattern = random.gamma(0.3, size=(4, 1, n_heads, 256))
    pattern[..., [0, 254, 255]] *= 30  # what does not count may differ
    sums.add(place, pattern / pattern.sum(-1, keepdims=True))
  marked, baseline, null = sums.means()
  value = marked[sums.kinds.index("induction")] / baseline
  floor = np.quantile(null / baseline, 0.99)
  passed = int((value > floor).sum())
  low, high = stats.binom.ppf([0.005, 0.995], n_heads, 0.01)
  assert low <= passed <= high, passed
