import numpy as np
import pytest

from headjax.reports.html.packing import exact, short, unpack


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_exact_numbers_keep_seven_digits(shape):
  values = 1e9 * np.random.default_rng(0).normal(size=shape)
  packed = exact(values)
  np.testing.assert_allclose(unpack(packed), values, rtol=1e-7)
  assert packed["shape"] == shape


def test_short_numbers_keep_three_digits_of_any_scale():
  random = np.random.default_rng(1)
  for scale in (1e-30, 1.0, 1e30):
    values = scale * random.uniform(0.1, 1, 100) * random.choice([-1, 1], 100)
    np.testing.assert_allclose(unpack(short(values)), values, rtol=5e-4)


def test_what_is_missing_stays_missing():
  values = [np.nan, 0.0, -2.0]
  for pack in (exact, short):
    np.testing.assert_array_equal(unpack(pack(values)), values)
  np.testing.assert_array_equal(unpack(short([0.0, 0.0])), [0, 0])
  np.testing.assert_array_equal(unpack(short([np.nan])), [np.nan])


def test_blanks_take_no_room():
  values = np.full(100_000, np.nan)
  assert len(short(values)["data"]) < 1000
