"""Where do the study's measurements lie, and which are there already?

OUT/MODEL/heads.nc of steps 1 and 2, ablations.nc and exchange.nc of step 3, and
OUT/MODEL/groups, the ablated groups as they are done. Tables and figures are
made from the three files alone.
"""

import pathlib

import xarray as xr

from headjax import results
from headjax.checks import check

KEY = "measured_with"
HEADS, ABLATIONS, EXCHANGE = "heads", "ablations", "exchange"


class Store:
  """The folder of the study's measurements.

  Attributes:
    folder: OUT.
  """

  def __init__(self, folder: pathlib.Path):
    """Looks at nothing yet.

    Args:
      folder: OUT, which need not exist.
    """
    self.folder = folder

  @property
  def names(self) -> list[str]:
    """The models whose heads are measured, in the order of their names."""
    found = self.folder.glob(f"*/{HEADS}.nc")
    return sorted(path.parent.name for path in found)

  def groups(self, name: str) -> pathlib.Path:
    """The folder of the ablated groups of a model."""
    return self.folder / name / "groups"

  def find(self, name: str, part: str) -> xr.Dataset | None:
    """A measurement of a model, or None where there is none."""
    path = self._path(name, part)
    return results.load(path) if path.is_file() else None

  def measured(self, name: str, key: str) -> xr.Dataset | None:
    """The heads of a model, if measured with the same things."""
    found = self.find(name, HEADS)
    return found if found is not None and found.attrs.get(KEY) == key else None

  def save(self, name: str, part: str, data: xr.Dataset) -> None:
    """Writes a measurement, whole or not at all.

    With other heads, what was ablated because of the former ones is removed.
    """
    if part == HEADS:
      for other in (ABLATIONS, EXCHANGE):
        self._path(name, other).unlink(missing_ok=True)
    results.save(data, self._path(name, part))

  def every(self, part: str) -> dict[str, xr.Dataset]:
    """Name -> measurement of all models that have one.

    Raises:
      ValueError: there are no measurements of heads at all.
    """
    check(
      bool(self.names), "--out", f"no results in {self.folder}",
      "the folder of an earlier call", "measure some models: --models",
    )  # fmt: skip
    found = {name: self.find(name, part) for name in self.names}
    return {name: data for name, data in found.items() if data is not None}

  def _path(self, name: str, part: str) -> pathlib.Path:
    return self.folder / name / f"{part}.nc"
