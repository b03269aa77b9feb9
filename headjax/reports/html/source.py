"""Where does a number of the page come from, and which call gives it again?"""

import dataclasses
import json
import pathlib
from typing import Any

import xarray as xr

from headjax.reports.html import heads


@dataclasses.dataclass(frozen=True)
class Source:
  """A netCDF file of a result.

  Attributes:
    path: as it is opened.
    name: as it is shown, from the folder that was named on.
    attrs: its provenance.
  """

  path: pathlib.Path
  name: str
  attrs: dict[str, Any]

  @property
  def model(self) -> str:
    """The run, where a study says one, else the model."""
    return str(self.attrs.get("run") or self.attrs.get("model", ""))

  @property
  def task(self) -> str:
    """What the model was asked."""
    return str(self.attrs.get("task", ""))

  @property
  def prompts(self) -> str:
    """The digest of the prompts; the same ones have the same labels."""
    return str(self.attrs.get("pairs_digest", ""))

  @property
  def part(self) -> str:
    """The name of the file, without the task, which has a switch of its own."""
    return self.path.stem.removesuffix(f"-{self.task}") or self.path.stem

  def labels(self, array: str) -> dict[str, str]:
    """How the page finds an array, and what belongs to it."""
    return {
      "model": self.model,
      "task": self.task,
      "quantity": f"{self.part}: {array}",
      "array": array,
      "file": self.name,
      "weights": str(self.attrs.get("model_digest", "")),
      "prompts": self.prompts,
    }

  def code(self, name: str, array: xr.DataArray) -> dict[str, Any]:
    """The parts of the calls that give the numbers of a map again.

    Args:
      name: of the array in the file.
      array: from `heads.placed`.

    Returns:
      `load`, the array; `axes`, the names of the axes of a head, or `listed`,
      the dimension of a list of heads, and `list`, these heads; `mean`, what
      is averaged beside examples; and `interval`, with {x} for the array.
    """
    dim = array.attrs.get("listed")
    x = '{x}.transpose("example", ...).values[:, None]' if dim else "{x}"
    grouped = array.attrs.get("grouped")
    load = f"headjax.results.load({quoted(self.path)})"
    if grouped:
      own = name.rpartition(" by ")[0]
      load += f"[{quoted(own)}].groupby({json.dumps(grouped)}).mean()"
    else:
      load += f"[{quoted(name)}]"
    return {
      "load": load,
      "axes": list(array.attrs.get("axes", heads.HEAD)),
      "listed": dim,
      "list": array.attrs.get("list"),
      "mean": heads.averaged(array),
      "interval": f"headjax.statistics.head_intervals({x})",
    }


def quoted(text: Any) -> str:
  """A string of Python, with double quotes as ours have."""
  if isinstance(text, pathlib.Path):
    text = text.as_posix()
  return json.dumps(text, ensure_ascii=False)
