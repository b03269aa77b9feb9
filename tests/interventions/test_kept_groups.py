"""Does a stopped sweep of ablations go on, to the same bits, or not at all?"""

import dataclasses

import jax
import numpy as np
import planted_circuit
import pytest
from one_line import refusal

from headjax.interventions import ablations
from headjax.interventions.ablations import ablate_groups
from headjax.interventions.kept_groups import KeptGroups

MEASURES = ("loss", "logit", "difference", "rank")
ROWS = 6


@pytest.fixture(scope="module")
def planted():
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(jax, "local_device_count", lambda: 1)
    yield dataclasses.replace(planted_circuit.planted(), digest="a" * 64)


@pytest.fixture(scope="module")
def groups(planted):
  shape = (5, planted.config.n_layers, planted.config.n_heads)
  return np.random.default_rng(0).random(shape) < 0.3


@pytest.fixture(scope="module")
def whole(planted, groups):
  return sweep(planted, groups)


def sweep(planted, groups, folder=None, rows=ROWS):
  three = 3 * 4 * ablations._numbers(planted.config, planted_circuit.LENGTH)
  return ablate_groups(
    planted, planted_circuit.rows(ROWS).select(slice(rows)), groups,
    budget_bytes=three, folder=folder,
  )  # fmt: skip


class Stopped:
  """Counts the groups that are run, and stops before one of them."""

  def __init__(self, monkeypatch, at=None):
    self.calls, self.at = 0, at
    self.without = ablations._without
    monkeypatch.setattr(ablations, "_without", self)

  def __call__(self, *args):
    if self.calls == self.at:
      raise KeyboardInterrupt
    self.calls += 1
    return self.without(*args)


def same(one, other):
  for name in MEASURES:
    for which in (name, f"base_{name}"):
      np.testing.assert_array_equal(one[which].values, other[which].values)


@pytest.mark.parametrize("at", [0, 1, 4, 8, 11])
def test_it_goes_on_to_the_same_bits(
  planted, groups, whole, tmp_path, monkeypatch, at
):
  assert whole.attrs["chunk"] == 3 and whole.attrs["distinct_groups"] == 6
  with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
    Stopped(patch, at)
    sweep(planted, groups, tmp_path)
  with monkeypatch.context() as patch:
    rest = Stopped(patch)
    found = sweep(planted, groups, tmp_path)
  # The group that runs when the next one is stopped is lost.
  done = at - at // 6 * 6
  assert rest.calls == 12 - at // 6 * 6 - max(0, done - 1)
  same(found, whole)
  with monkeypatch.context() as patch:
    none = Stopped(patch, at=0)
    same(sweep(planted, groups, tmp_path), whole)
  assert none.calls == 0


def test_other_groups_and_rows_share_what_is_done(
  planted, groups, whole, tmp_path, monkeypatch
):
  sweep(planted, groups[:3], tmp_path)
  run = Stopped(monkeypatch)
  same(sweep(planted, groups, tmp_path), whole)
  assert run.calls == 2 * 2
  few = sweep(planted, groups, tmp_path, rows=3)
  assert run.calls == 4
  np.testing.assert_array_equal(few.loss, whole.loss[:3])


def test_other_weights_are_measured_anew(
  planted, groups, whole, tmp_path, monkeypatch
):
  sweep(planted, groups, tmp_path)
  other = dataclasses.replace(
    planted, digest="b" * 64,
    params=jax.tree.map(lambda x: 0.9 * x, planted.params),
  )  # fmt: skip
  run = Stopped(monkeypatch)
  found = sweep(other, groups, tmp_path)
  assert run.calls == 12 and np.abs(found.loss - whole.loss).max() > 1e-4
  same(found, sweep(other, groups))


def test_all_that_values_depend_on_is_in_the_name(planted, monkeypatch):
  rows = planted_circuit.rows(ROWS)

  def known(model=planted, probe=rows, index=(0, 1, 2)):
    return ablations._measured_with(model, probe, np.array(index))

  assert known() == known()
  half = dataclasses.replace(
    planted,
    params=jax.tree.map(lambda x: x.astype("bfloat16"), planted.params),
  )
  wide = dataclasses.replace(
    planted, config=dataclasses.replace(planted.config, norm_eps=0.1)
  )
  others = [
    known(half), known(wide), known(index=(0, 1)), known(index=(1, 2, 3)),
    known(dataclasses.replace(planted, digest="c")),
  ]  # fmt: skip
  monkeypatch.setattr(jax, "__version__", "0.0")
  others.append(known())
  assert all(other != known for other in others)
  assert len({repr(other) for other in others}) == 6


def test_now_and_then_they_are_written(tmp_path):
  group, values = np.eye(3, dtype=bool), np.arange(8.0).reshape(4, 2)
  kept = KeptGroups(tmp_path, {"rows": 1}, seconds=0)
  kept.add(group, values)
  again = KeptGroups(tmp_path, {"rows": 1}, seconds=1e9)
  np.testing.assert_array_equal(again.get(group), values)
  assert again.get(~group) is None
  again.add(~group, values)
  assert KeptGroups(tmp_path, {"rows": 1}).get(~group) is None
  again.write()
  assert KeptGroups(tmp_path, {"rows": 1}).get(~group) is not None
  assert KeptGroups(tmp_path, {"rows": 2}).get(group) is None
  assert KeptGroups(None, {"rows": 1}).get(group) is None


def test_a_damaged_file_is_one_line(tmp_path):
  kept = KeptGroups(tmp_path, {})
  kept.add(np.eye(2, dtype=bool), np.zeros((4, 1)))
  kept.write()
  (path,) = tmp_path.iterdir()
  raw = path.read_bytes()
  for part in (raw[:0], raw[:50], raw[: len(raw) // 2], b"text"):
    path.write_bytes(part)
    with refusal(f"{path}: got unreadable file; expected groups"):
      KeptGroups(tmp_path, {})
