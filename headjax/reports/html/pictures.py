"""How does a figure of a result become part of the page? As a small PNG.

Figures have few colours: with a palette they are about a third as large.
"""

import base64
import io
import pathlib
from html import escape

from PIL import Image

from headjax.checks import check

_ENDS = b"IEND\xaeB`\x82"


def picture(path: pathlib.Path, name: str) -> str:
  """An inlined .png file.

  Args:
    path: of the file.
    name: what the page calls it.

  Raises:
    ValueError: it is no PNG file, or cut off.
  """
  data = path.read_bytes()
  image = _opened(path, data)
  width, height = image.size
  text = base64.b64encode(_smaller(data, image)).decode("ascii")
  spoken = f"Figure {pathlib.PurePath(name).stem} of {name}"
  return (
    f'<figure class="picture"><img alt="{escape(spoken)}" width="{width}"'
    f' height="{height}" src="data:image/png;base64,{text}">'
    f"<figcaption>{escape(name)}</figcaption></figure>"
  )


def _opened(path: pathlib.Path, data: bytes) -> Image.Image:
  whole = data.endswith(_ENDS)
  try:
    image = Image.open(io.BytesIO(data), formats=["PNG"])
    image.load()
  except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
    whole = False
  check(
    whole,
    str(path),
    f"{len(data)} bytes that are no whole picture",
    "a PNG file",
    "draw the figure again, or take the file out of the folder",
  )
  return image


def _smaller(data: bytes, image: Image.Image) -> bytes:
  """The same picture in 256 colours, on white, if that is smaller."""
  image = image.convert("RGBA")
  white = Image.new("RGBA", image.size, "white")
  flat = Image.alpha_composite(white, image).convert("RGB")
  made = io.BytesIO()
  flat.quantize(256, dither=Image.Dither.NONE).save(made, "png", optimize=True)
  return min(data, made.getvalue(), key=len)
