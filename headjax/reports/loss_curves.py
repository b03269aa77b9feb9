"""How did the losses of some runs fall? Curves over the tokens seen."""

import dataclasses

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headjax.checks import check
from headjax.reports.figures import FAINT, STYLE

COLOURS = ("#1f62a8", "#cf4a26", "#3c8d5a", "#8a5fb0", "#b0832a", "#4b5563")


@dataclasses.dataclass(frozen=True)
class Curve:
  """The losses of a run.

  Attributes:
    name: of the run.
    tokens: `[step]` tokens seen.
    loss: `[step]` of the batches, in nats a token.
    validation_tokens: `[evaluation]` tokens seen.
    validation_loss: `[evaluation]`, in nats a token.
  """

  name: str
  tokens: np.ndarray
  loss: np.ndarray
  validation_tokens: np.ndarray
  validation_loss: np.ndarray

  def __post_init__(self):
    check(
      len(self.loss) > 0 and len(self.validation_loss) > 0,
      f"metrics of {self.name}",
      f"{len(self.loss)} losses, {len(self.validation_loss)} validation losses",
      "at least one of each",
      "let the run go on, with train.evaluate_every above 0",
    )


def loss_figure(curves: list[Curve], title: str) -> Figure:
  """Training losses as thin lines, validation losses as thick ones.

  Args:
    curves: one a run, at most six.
    title: of the figure.

  Returns:
    A figure for `save_figure`.
  """
  check(
    1 <= len(curves) <= len(COLOURS),
    "curves",
    len(curves),
    f"1 to {len(COLOURS)}",
    "draw several figures",
  )
  with matplotlib.rc_context(STYLE):
    figure = Figure(figsize=(7.2, 4.3))
    ax = figure.add_axes((0.09, 0.13, 0.7, 0.7))
    for curve, colour in zip(curves, COLOURS, strict=False):
      million = curve.validation_tokens / 1e6
      ax.plot(curve.tokens / 1e6, curve.loss, color=colour, lw=0.7, alpha=0.4)
      ax.plot(million, curve.validation_loss, color=colour, lw=1.8)
    _label_ends(ax, curves)
    ax.set_xlabel("tokens seen (millions)")
    ax.set_ylabel("loss (nats a token)")
    ax.set_xlim(0, max(curve.tokens[-1] for curve in curves) / 1e6)
    ax.grid(axis="y", color=FAINT, alpha=0.2, lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    figure.text(0.09, 0.93, title, size=12, weight="bold")
    about = "thick: validation text; thin: the batches trained on"
    figure.text(0.09, 0.875, about, color=FAINT)
  return figure


def _label_ends(ax: Axes, curves: list[Curve]) -> None:
  """Names every run at its end, labels at least a line apart."""
  losses = np.array([curve.validation_loss[-1] for curve in curves])
  low, high = ax.get_ylim()
  gap, below = 0.09 * (high - low), -np.inf
  for i in np.argsort(losses):
    below = max(losses[i], below + gap)
    ax.annotate(
      f"{curves[i].name}\n{losses[i]:.3f}",
      (1.015, below),
      xycoords=("axes fraction", "data"),
      color=COLOURS[i],
      va="center",
      linespacing=1.1,
      annotation_clip=False,
    )
