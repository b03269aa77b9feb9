"""How does a result plot itself? One call for each kind, for notebooks.

What these functions return draws itself where it is the last line of a cell,
without pyplot and without a magic line.
"""

import dataclasses
import io
import os
import pathlib

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headjax.checks import check
from headjax.reports.figures import STYLE, head_heatmap, save_figure


@dataclasses.dataclass(frozen=True, repr=False)
class Plot:
  """A figure that a notebook draws.

  Attributes:
    figure: of matplotlib, to change or to combine.
    about: what it shows, in words.
  """

  figure: Figure
  about: str

  def __repr__(self) -> str:
    return f"Plot({self.about})"

  def _repr_png_(self) -> bytes:
    """The picture, for a notebook."""
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
      self.figure.savefig(buffer, dpi=110, format="png")
    return buffer.getvalue()

  def save(self, path: str | os.PathLike) -> list[pathlib.Path]:
    """Writes `path.png` and `path.pdf`, and returns their paths."""
    return save_figure(self.figure, path)


def heatmap(result: xr.Dataset, *, circles: int = 5) -> Plot:
  """The heat map of what every head does, from a result of a sweep.

  Args:
    result: with `effect` or `attribution` `[example, layer, head]` and
      `base[example]`, in logits (nats), as `patch_heads` gives.
    circles: how many of the largest heads to name.

  Returns:
    A plot: red heads help, blue ones hurt, layer 0 is at the bottom.

  Raises:
    ValueError: the result has no such array.
  """
  name = next((n for n in ("effect", "attribution") if n in result), None)
  check(
    name is not None
    and "base" in result
    and result[name].dims == ("example", "layer", "head"),
    "result",
    f"arrays {', '.join(map(str, result))}",
    "base, and effect or attribution [example, layer, head]",
    "pass what patch_heads or attribute_heads returned",
  )
  values, about = result[name].values, result.attrs
  title = f"{about.get('model', 'model')}, {about.get('task', 'task')}"
  figure = head_heatmap(
    values, title=title, base=result.base.values, circles=circles
  )
  layers, heads = values.shape[1:]
  about = f"{title}: {name} of {layers} x {heads} heads"
  return Plot(figure, f"{about}, {len(values)} prompts")


def attention(
  patterns: xr.DataArray, layer: int, head: int, *, example: int = 0
) -> Plot:
  """Where one head looks in one prompt, with tokens on both sides.

  Args:
    patterns: `[layer, head, example, query, key]`, shares of attention, as
      `headjax.interventions.patterns.patterns` gives.
    layer: from 0.
    head: from 0.
    example: which prompt.

  Returns:
    A plot: a row a query, its keys from left to right.

  Raises:
    ValueError: other axes, or an index that there is not.
  """
  wanted = ("layer", "head", "example", "query", "key")
  check(
    patterns.dims == wanted,
    "patterns",
    f"axes {patterns.dims}",
    f"axes {wanted}",
    "pass what interventions.patterns.patterns returned",
  )
  for name, index in (("layer", layer), ("head", head), ("example", example)):
    size = patterns.sizes[name]
    inside = 0 <= index < size
    check(inside, name, index, f"0 to {size - 1}", "count from 0")
  found = patterns[layer, head, example]
  labels = _labels(found)
  with matplotlib.rc_context(STYLE):
    figure = _draw(found.values, labels, f"L{layer}H{head}")
  return Plot(figure, f"attention of L{layer}H{head} in prompt {example}")


def _labels(found: xr.DataArray) -> list[str]:
  """`[pos]`: each token with its id, or the position alone."""
  if "token" in found.coords:
    ids = found["id"].values
    texts = (repr(str(text))[1:-1] for text in found["token"].values)
    # Open boxes for spaces: most tokens begin with one.
    shown = (text.replace(" ", "\u2423") for text in texts)
    return [f"{text}  {i}" for text, i in zip(shown, ids, strict=True)]
  return [str(pos) for pos in range(found.sizes["key"])]


def _draw(values: np.ndarray, labels: list[str], title: str) -> Figure:
  n = len(values)
  side = float(np.clip(0.3 * n, 1.6, 7))
  left, right, top, bottom = 1.3, 0.9, 1.35, 0.3
  size = (left + side + right, top + side + bottom)
  figure = Figure(figsize=size, facecolor="white")
  box = (left / size[0], bottom / size[1], side / size[0], side / size[1])
  ax = figure.add_axes(box)
  mesh = ax.pcolormesh(
    values, cmap="Greys", vmin=0, vmax=1, edgecolors="white", linewidth=0.7
  )
  ax.invert_yaxis()
  step = -(-n // 32)
  shown = np.arange(0, n, step)
  names = [labels[i] for i in shown]
  ax.set_yticks(shown + 0.5, names)
  ax.set_xticks(shown + 0.5, names, rotation=90)
  ax.xaxis.tick_top()
  ax.tick_params(length=0)
  ax.spines[:].set_visible(False)
  ax.set_xlabel(f"{title}: query downwards, key to the right", loc="right")
  bar = figure.colorbar(
    mesh, cax=figure.add_axes((box[0] + box[2] + 0.15 / size[0], box[1],
                               0.12 / size[0], box[3])),
  )  # fmt: skip
  bar.set_label("share of attention")
  bar.outline.set_visible(False)
  return figure
