"""How is a text file read when it is packed? As text, in a stream.

A packed file that ends too early is an error, never a shorter text.
"""

import gzip
import io
import pathlib

from headjax.checks import fail

PACKINGS = (".gz", ".zst")
ZSTD_INSTALL = "pip install zstandard"
_CHUNK = 1 << 20


def open_text(path: pathlib.Path) -> io.TextIOWrapper:
  """Opens a file of UTF-8 text; only a newline ends a line.

  Args:
    path: plain, or packed as its ending says: `.gz` or `.zst`.

  Raises:
    ValueError: a `.zst` file, without the package that unpacks it.
    OSError, EOFError: the file cannot be read, or ends too early; also while
      reading.
  """
  if path.suffix == ".gz":
    raw = gzip.open(path, "rb")
  elif path.suffix == ".zst":
    raw = io.BufferedReader(_ZstdReader(path), _CHUNK)
  else:
    raw = open(path, "rb")
  return io.TextIOWrapper(raw, encoding="utf-8-sig", newline="\n")


class _ZstdReader(io.RawIOBase):
  """The unpacked bytes of all frames of a file.

  The package's own reader takes a missing end for the end.
  """

  def __init__(self, path):
    self._zstandard = _zstandard(path)
    self._path = path
    self._file = open(path, "rb")
    self._frame = self._new_frame()
    self._fresh = True  # no byte of this frame was seen yet
    self._packed = b""
    self._ready = memoryview(b"")

  def readable(self):
    return True

  def readinto(self, buffer):
    while not self._ready and self._refill():
      pass
    size = min(len(buffer), len(self._ready))
    buffer[:size] = self._ready[:size]
    self._ready = self._ready[size:]
    return size

  def close(self):
    self._file.close()
    super().close()

  def _new_frame(self):
    return self._zstandard.ZstdDecompressor().decompressobj()

  def _refill(self):
    """Unpacks the next chunk; False at the end of the file."""
    if self._frame.eof:
      self._packed = self._frame.unused_data
      self._frame, self._fresh = self._new_frame(), True
    packed = self._packed or self._file.read(_CHUNK)
    self._packed = b""
    if not packed:
      if self._fresh:
        return False
      raise EOFError("the file ends within a frame")
    self._fresh = False
    try:
      self._ready = memoryview(self._frame.decompress(packed))
    except self._zstandard.ZstdError as error:
      raise OSError(f"not a zstd file: {error}") from error
    return True


def _zstandard(path):
  """The package that unpacks zstd, which is optional."""
  try:
    import zstandard
  except ImportError:
    fail(str(path), "no installed zstandard", "the package", ZSTD_INSTALL)
  return zstandard
