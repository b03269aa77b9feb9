"""Where do the study's results lie, and what is there already?

OUT/RUN/PART-TASK.nc, or OUT/RUN/PART.nc where no task is asked. A result is
there if it was measured with the same weights and prompts; the file itself
says with which. Tables and figures are made from these files alone.
"""

import pathlib
from collections.abc import Iterator, Mapping

import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.studies.exclusivity.subjects import Subject

KEY, PART = "measured_with", "part"
LABELS = ("run", "design", "seed", "corpus", "task")


class Store:
  """The folder of the study's results."""

  def __init__(self, folder: str | pathlib.Path):
    """Looks at nothing yet.

    Args:
      folder: OUT, which need not exist.
    """
    self.folder = pathlib.Path(folder)
    self._read: dict[pathlib.Path, xr.Dataset] = {}

  def path(self, run: str, part: str, task: str | None) -> pathlib.Path:
    """The file of one result."""
    name = part if task is None else f"{part}-{task}"
    return self.folder / run / f"{name}.nc"

  def has(self, run: str, part: str, task: str | None, key: str) -> bool:
    """Whether a result is there that was measured with the same things."""
    path = self.path(run, part, task)
    return path.is_file() and self._load(path).attrs.get(KEY) == key

  def save(
    self, subject: Subject, part: str, task: str | None, key: str, data
  ) -> None:
    """Writes a result with its labels, whole or not at all."""
    path = self.path(subject.name, part, task)
    labels = subject.labels | {PART: part, KEY: key, "task": task or ""}
    self._read[path] = data.assign_attrs(labels)
    results.save(self._read[path], path)

  def load(self, run: str, part: str, task: str | None = None) -> xr.Dataset:
    """One result.

    Raises:
      ValueError: it is not there.
    """
    path = self.path(run, part, task)
    check(
      path.is_file(),
      str(path),
      "no such file",
      "the result of an earlier part",
      f"measure it: --parts {part}",
    )
    return self._load(path)

  def all(self, part: str) -> list[xr.Dataset]:
    """All results of a part, by run and task."""
    found = [self._load(path) for path in self.folder.glob(f"*/{part}*.nc")]
    mine = [data for data in found if data.attrs.get(PART) == part]
    return sorted(mine, key=lambda d: (d.attrs["run"], d.attrs["task"]))

  def together(self, part: str, *others: str) -> Iterator[list[xr.Dataset]]:
    """Results of a part, with those of others for the same run and task.

    Where one of them is missing, nothing is told of that run and task.
    """
    for data in self.all(part):
      run, task = data.attrs["run"], data.attrs["task"] or None
      paths = [self.path(run, other, task) for other in others]
      if all(path.is_file() for path in paths):
        yield [data, *map(self._load, paths)]

  def tasks(self, run: str, part: str) -> list[str]:
    """The tasks that a part was measured on."""
    return [d.attrs["task"] for d in self.all(part) if d.attrs["run"] == run]

  def _load(self, path: pathlib.Path) -> xr.Dataset:
    if path not in self._read:
      self._read[path] = results.load(path)
    return self._read[path]


def labels(data: xr.Dataset) -> Mapping[str, str | int]:
  """Run, design, seed, corpus and task of a result: the head of a row."""
  return {name: data.attrs[name] for name in LABELS}
