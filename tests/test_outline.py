"""Does a value with arrays say its shapes and none of its numbers?"""

import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headjax import Edits
from headjax.interventions import clamps, edits
from headjax.outline import of_fields, outline
from headjax.statistics import Interval


@pytest.mark.parametrize(
  ("value", "text"),
  [
    (np.zeros((2, 3), np.float32), "float32[2, 3]"),
    (jnp.zeros(4, jnp.int32), "int32[4]"),
    ((np.zeros(2), 1), "(float64[2], 1)"),
    (0.5, "0.5"),
    (np.float64(1 / 3), "0.333333"),
    ({np.str_("a"): np.zeros(2)}, "{'a': float64[2]}"),
    (np.int64(3), "3"),
    ((1, 2, 3, 4), "(1, 2, 3, 4)"),
    ((1, 2, 3, 4, 5), "(1, 2, ... 5 in all)"),
    ("z", "'z'"),
    (None, "None"),
  ],
)
def test_an_array_is_its_type_and_shape(value, text):
  assert outline(value) == text


def test_what_is_empty_is_left_out():
  assert repr(Edits()) == "Edits()"
  zero = edits.zero(helpers.GPT2, "z")
  assert repr(zero) == (
    "Edits(z=(Edit(gate=float32[3, 1, 1, 1, 1], value=float32[3, 1, 1, 1, 1])))"
  )


def test_holds_are_short():
  hold = repr(clamps.nothing(helpers.GPT2))
  assert hold == "Hold(heads=bool[3, 4, 3, 4], mlps=bool[3, 4, 3])"


def test_numbers_stay_numbers():
  assert (
    repr(Interval(1.5, 1.0, 2.0)) == "Interval(estimate=1.5, low=1.0, high=2.0)"
  )


def test_an_edit_says_its_shapes_while_it_is_traced():
  seen = []

  def see(gate):
    seen.append(of_fields(Edits(z=(edits.Edit(gate, gate),))))
    return gate

  jax.jit(see)(jnp.ones((2, 3)))
  assert "gate=float32[2, 3]" in seen[0]
