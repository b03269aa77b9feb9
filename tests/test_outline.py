"""Does a value with arrays say its shapes and none of its numbers?"""

import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headjax import Edits, run
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


def test_activations_and_holds_are_short(x64):
  model, _ = helpers.random_model(helpers.GPT2)
  _, acts = run(model.model, model.params, np.zeros((1, 2), int))
  text = repr(acts)
  assert "z=float64[3, 1, 2, 4, 5]" in text and "router" not in text
  assert max(map(len, text.splitlines())) < 80
  hold = repr(clamps.nothing(model.config))
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
