"""Is a tensor on the disk the tensor that safetensors reads?"""

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from headjax.models import tensor_files
from headjax.models.tensor_views import Views

RNG = np.random.default_rng(0)
TENSORS = {
  "odd": RNG.normal(size=(3, 5)).astype(np.float16),
  "wide": RNG.normal(size=(4, 3, 2)).astype(ml_dtypes.bfloat16),
  "single": RNG.normal(size=(7,)).astype(np.float32),
  "double": RNG.normal(size=(2, 9)),
}


@pytest.mark.parametrize("note", ["", "x", "xyz"])  # headers of other lengths
def test_views_are_the_stored_tensors(tmp_path, note):
  save_file(TENSORS, tmp_path / "model.safetensors", {"note": note})
  views = Views(tensor_files.catalogue(tmp_path))
  for name, wanted in TENSORS.items():
    found = views[name]
    assert isinstance(found, np.memmap) and found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_views_cannot_be_written(tmp_path):
  save_file(TENSORS, tmp_path / "model.safetensors")
  views = Views(tensor_files.catalogue(tmp_path))
  with pytest.raises(ValueError, match="read-only"):
    views["odd"][0] = 1
