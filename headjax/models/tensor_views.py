"""How is a part of a stored tensor read, and not the rest?

A tensor is looked at where it is on the disk; only what is copied out of the
view is read, in pages, and no page stays when the view is gone.
"""

import json
import pathlib
from collections.abc import Mapping

import numpy as np

from headjax.models.tensor_files import DTYPES, StoredTensor


class Views:
  """The tensors of some safetensors files, none of them in memory."""

  def __init__(self, found: Mapping[str, StoredTensor]):
    """Reads the headers.

    Args:
      found: from `tensor_files.catalogue`: the safetensors package has
        compared the headers with the files. Their types are checked.
    """
    self._found = found
    files = {tensor.file for tensor in found.values()}
    self._starts = {file: _starts(file) for file in files}

  def __getitem__(self, name: str) -> np.ndarray:
    """A tensor in its stored type, on the disk."""
    tensor = self._found[name]
    return np.memmap(
      tensor.file,
      DTYPES[tensor.dtype],
      mode="r",
      offset=self._starts[tensor.file][name],
      shape=tensor.shape,
    )


def _starts(file: pathlib.Path) -> dict[str, int]:
  """Where each tensor begins in a file, in bytes.

  The file begins with the length of its header, 8 bytes, and the header, whose
  offsets count from its end.
  """
  with open(file, "rb") as stream:
    length = int.from_bytes(stream.read(8), "little")
    header = json.loads(stream.read(length))
  return {
    name: 8 + length + tensor["data_offsets"][0]
    for name, tensor in header.items()
    if name != "__metadata__"
  }
