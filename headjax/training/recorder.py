"""Where do the numbers of a run go? Into lines of JSON, events and a bar.

`metrics.jsonl` has an object a line, of a step or of an evaluation; the event
files hold the same for TensorBoard. A run that resumes first drops what was
written after the checkpoint that it goes on from, so that in the end the file
says what that of an undisturbed run does, but for times.
"""

import json
import os
import pathlib
import tempfile
import time
from typing import Any, Self

from etils import epath
from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tqdm.auto import tqdm

from headjax.files import is_remote, write_text

METRICS = "metrics.jsonl"


def read_metrics(folder: epath.PathLike) -> list[dict[str, Any]]:
  """The metrics of a run so far, an object a line; none before it begins."""
  path = epath.Path(folder) / METRICS
  lines = []
  for text in path.read_text().splitlines() if path.exists() else ():
    try:
      lines.append(json.loads(text))
    except ValueError:  # cut off when the run was
      break
  return lines


class Recorder:
  """Writes the metrics of one run; see `Silence`."""

  def __init__(self, folder: epath.PathLike, resumed: int | None, steps: int):
    """Writes nothing yet; `with` begins.

    Args:
      folder: of the run.
      resumed: the step of the checkpoint that it goes on from, or None.
      steps: of the whole run.
    """
    self.folder = epath.Path(folder)
    self._resumed, self._steps = resumed, steps
    self._latest: dict[str, str] = {}

  def __enter__(self) -> Self:
    """Opens the files, without the lines of steps that will be done again."""
    kept = self._kept()
    self._start = time.time() - (kept[-1]["wall_s"] if kept else 0.0)
    text = "".join(json.dumps(line) + "\n" for line in kept)
    write_text(self.folder / METRICS, text)
    # Stores cannot append: there, files are kept here and copied by `flush`.
    self._temporary = tempfile.TemporaryDirectory()
    remote = is_remote(self.folder)
    self._here = pathlib.Path(self._temporary.name if remote else self.folder)
    if remote:
      (self._here / METRICS).write_text(text)
    self._lines = open(self._here / METRICS, "a")
    self._events = EventsWriter(
      str(self._here / "events"), filename_suffix=f".{os.getpid()}"
    )
    first = 0 if self._resumed is None else self._resumed + 1
    self._event(first, session_log=SessionLog(status=SessionLog.START))
    self._bar = tqdm(
      total=self._steps, initial=max(0, first - 1), unit="step", disable=None
    )
    return self

  def __exit__(self, *exc) -> None:
    """Closes the files."""
    self._bar.close()
    self._events.close()
    self._lines.close()
    self._copy()
    self._temporary.cleanup()

  def write(self, step: int, **values: float | None) -> None:
    """Adds a line.

    Args:
      step: updates made.
      **values: what was measured; None where it is not known.
    """
    line = {"step": step} | values
    line["wall_s"] = round(time.time() - self._start, 3)
    self._lines.write(json.dumps(line) + "\n")
    self._lines.flush()
    for name, value in values.items():
      if value is not None:
        self._event(step, summary=summary.scalar(name, value))
    self._events.flush()
    self._show(values)

  def advance(self, step: int) -> None:
    """Moves the bar to a step."""
    self._bar.update(step - self._bar.n)

  def flush(self) -> None:
    """Sees to it that all lines are where the run's folder is."""
    self._copy()

  def _kept(self) -> list[dict[str, Any]]:
    if self._resumed is None:
      return []
    lines = read_metrics(self.folder)
    return [line for line in lines if line["step"] <= self._resumed]

  def _event(self, step: int, **content: Any) -> None:
    self._events.write_event(Event(wall_time=time.time(), step=step, **content))

  def _show(self, values: dict[str, float | None]) -> None:
    names = ("loss", "validation_loss", "tokens_per_s", "mfu")
    for name in names:
      if values.get(name) is not None:
        self._latest[name] = f"{values[name]:.4g}"
    self._bar.set_postfix(self._latest, refresh=False)

  def _copy(self) -> None:
    if is_remote(self.folder):
      for file in self._here.iterdir():
        (self.folder / file.name).write_bytes(file.read_bytes())


class Silence:
  """A recorder for the processes beside the first one: it writes nothing."""

  def __enter__(self) -> Self:
    """Opens nothing."""
    return self

  def __exit__(self, *exc) -> None:
    """Closes nothing."""

  def write(self, step: int, **values: float | None) -> None:
    """Forgets the values."""

  def advance(self, step: int) -> None:
    """Moves nothing."""

  def flush(self) -> None:
    """Has nothing to copy."""
