"""Are controls as large as the groups, and of other heads?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.studies.writers import controls


def test_controls_are_the_nearest_others_in_random_groups():
  mean = np.array([[5.0, -4.0, 0.1, 3.9], [-4.6, 0.2, -0.3, 0.0]])
  first, second = controls.signed_groups(mean, 3)
  assert (first, second) == ([(0, 0)], [(1, 0), (0, 1)])
  found = controls.nearest_controls(mean, first, second, count=20)
  assert {(len(a), len(b)) for a, b in found} == {(1, 2)}
  # 3.9 is nearest to 5.0; what is left goes to the next.
  wanted = {(0, 3), (1, 2), (1, 1)}
  assert all({*a, *b} == wanted for a, b in found)
  assert len({a[0] for a, _ in found}) == 3
  with refusal("heads: got 5 in the groups and 3 others"):
    controls.nearest_controls(mean, list(np.ndindex(1, 3)), [(1, 0), (1, 1)])


def test_attenuation_is_what_both_have_less_than_each():
  changes = {"writers": -0.5, "cancellers": 0.2, "both": -0.3}
  assert controls.attenuation(changes) == pytest.approx(0.4)
  assert controls.attenuation(changes | {"both": -0.7}) == pytest.approx(0)
