import numpy as np
import pytest
import scipy.linalg
import slow_kerdock

from headjax.geometry import kerdock_signs


@pytest.mark.parametrize(
  ("n", "members"), [(16, range(8)), (64, range(32)), (256, (1, 77))]
)
def test_signs_are_those_of_the_definition(n, members):
  m = n.bit_length() - 1
  for member in members:
    expected = [slow_kerdock.sign(v, member, m) for v in range(n)]
    assert kerdock_signs(n, member).tolist() == expected


@pytest.mark.parametrize("n", [16, 64, 256])
def test_the_sum_of_any_two_members_is_bent(n):
  hadamard = scipy.linalg.hadamard(n).astype(np.float32)
  signs = np.array([kerdock_signs(n, member) for member in range(n // 2)])
  first, second = np.triu_indices(n // 2, k=1)
  spectra = (signs[first] * signs[second]) @ hadamard
  assert np.all(abs(spectra) == np.sqrt(n))


def test_signs_cannot_be_changed_by_accident():
  with pytest.raises(ValueError, match="read-only"):
    kerdock_signs(16, 1)[0] = -1
