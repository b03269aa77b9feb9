"""How do numbers get into a page? Compressed, as exact as one can see.

The page undoes it (`templates/unpack.js`) with what browsers have since 2023.
"""

import base64
import zlib
from typing import Any

import numpy as np

Packed = dict[str, Any]


def exact(values) -> Packed:
  """Packs numbers with seven digits, as float32.

  Args:
    values: any shape; whatever `numpy.asarray` takes.

  Returns:
    What JSON can hold: `type`, `scale`, `shape`, and the compressed bytes in
    base 64.
  """
  return _packed(np.asarray(values, np.float32), "f4", 1.0)


def short(values) -> Packed:
  """Packs many numbers with three digits, as float16 shares of the largest.

  What is below 6e-8 of the largest becomes 0.

  Args:
    values: any shape; whatever `numpy.asarray` takes.

  Returns:
    As `exact`; the values are those of the bytes times `scale`.
  """
  values = np.asarray(values, np.float64)
  finite = np.abs(values[np.isfinite(values)])
  scale = float(finite.max(initial=0)) or 1.0
  return _packed((values / scale).astype(np.float16), "f2", scale)


def unpack(packed: Packed) -> np.ndarray:
  """The numbers again, as the page sees them, float64."""
  data = zlib.decompress(base64.b64decode(packed["data"]))
  flat = np.frombuffer(data, f"<{packed['type']}").astype(np.float64)
  return flat.reshape(packed["shape"]) * packed["scale"]


def _packed(values: np.ndarray, kind: str, scale: float) -> Packed:
  data = np.ascontiguousarray(values, f"<{kind}").tobytes()
  text = base64.b64encode(zlib.compress(data, 9)).decode("ascii")
  return {"type": kind, "scale": scale, "shape": values.shape, "data": text}
