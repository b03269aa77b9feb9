"""How does a figure of a result become part of the page? As its own bytes."""

import base64
import pathlib
import struct
from html import escape

from headjax.checks import check

_BEGINS, _ENDS = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"


def picture(path: pathlib.Path, name: str) -> str:
  """An inlined .png file.

  Args:
    path: of the file.
    name: what the page calls it.

  Raises:
    ValueError: it is no PNG file, or cut off.
  """
  data = path.read_bytes()
  check(
    data.startswith(_BEGINS) and data.endswith(_ENDS) and len(data) > 45,
    str(path),
    f"{len(data)} bytes that are no whole picture",
    "a PNG file",
    "draw the figure again, or take the file out of the folder",
  )
  width, height = struct.unpack(">II", data[16:24])
  text = base64.b64encode(data).decode("ascii")
  spoken = f"Figure {pathlib.PurePath(name).stem} of {name}"
  return (
    f'<figure class="picture"><img alt="{escape(spoken)}" width="{width}"'
    f' height="{height}" src="data:image/png;base64,{text}">'
    f"<figcaption>{escape(name)}</figcaption></figure>"
  )
