"""Are controls matched in number and layer, and never the circuit's heads?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.studies.spectral.controls import ROLES, controls

CIRCUIT = [(1, 0), (3, 2), (1, 4)]


def of_role(found, role):
  return found.groups[[r == role for r in found.roles]]


def test_random_heads_are_as_many_in_the_same_layers():
  found = controls(CIRCUIT, (5, 6), selected=[(3, 0)])
  assert set(found.roles) == set(ROLES) and not found.short
  [circuit] = of_role(found, "circuit")
  assert sorted(map(tuple, np.argwhere(circuit))) == sorted(CIRCUIT)
  for role, n in (("random", 40), ("sweep", 10)):
    groups = of_role(found, role)
    assert len(groups) == n
    assert (groups.sum(-1) == [0, 2, 0, 1, 0]).all()
    assert not (groups & circuit).any() and not groups[:, 3, 0].any()
    assert len(np.unique(groups, axis=0)) > n / 3
  [upper] = of_role(found, "upper")
  assert upper.sum(-1).tolist() == [0, 6, 0, 6, 0]
  singles = of_role(found, "single")
  assert singles.sum((1, 2)).tolist() == [1, 1, 1]
  assert (singles.any(0) == circuit).all()


def test_draws_are_those_of_the_stated_generators():
  found = controls([(0, 1)], (1, 6), draws=3, seeds=2)
  rng = np.random.RandomState(123)
  free = [0, 2, 3, 4, 5]
  wanted = [int(rng.choice(free, 1, replace=False)[0]) for _ in range(3)]
  assert of_role(found, "random").argmax(-1).ravel().tolist() == wanted
  wanted = [
    int(np.random.RandomState(s).choice(free, 1, replace=False)[0])
    for s in (0, 1)
  ]
  assert of_role(found, "sweep").argmax(-1).ravel().tolist() == wanted


def test_a_layer_with_too_few_other_heads_is_named():
  found = controls([(0, 0), (0, 1), (1, 0)], (2, 3))
  assert found.short == (0,)
  assert (of_role(found, "random").sum(-1) == [1, 1]).all()


@pytest.mark.parametrize(
  ("heads", "said"), [([], "no head"), ([(5, 0)], "head (5, 0)")]
)
def test_what_is_no_circuit_is_refused(heads, said):
  with refusal(f"circuit: got {said}"):
    controls(heads, (5, 6))
