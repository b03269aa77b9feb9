"""Do arrays come back, and is anything else refused?"""

import numpy as np
from one_line import refusal

from headjax.array_files import read_arrays, write_arrays


def test_arrays_come_back_or_the_file_is_refused(tmp_path):
  path = tmp_path / "new" / "arrays.npz"
  told = "arrays of a test", "remove it"
  assert read_arrays(path, *told) is None
  write_arrays(path, {"a": np.arange(3), "text": np.array("x")})
  found = read_arrays(path, *told)
  assert found["a"].tolist() == [0, 1, 2] and str(found["text"]) == "x"
  with open(path, "wb") as file:
    np.save(file, np.arange(3))
  with refusal(f"{path}: got unreadable file; expected arrays of a test"):
    read_arrays(path, *told)
  write_arrays(path, {"a": np.array([None])})
  with refusal("unreadable file", "remove it"):
    read_arrays(path, *told)
