"""How does a training state get onto the disk? Whole, and in the background.

Nothing is read back: the arrays are described, with checksums computed where
they are, before Orbax copies them, so what goes wrong on the way to the disk is
found when they are read (`headjax.models.checkpoints`).
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Self

import jax
import orbax.checkpoint as ocp
from etils import epath

from headjax.files import is_remote
from headjax.models.checkpoints import (
  META,
  DamagedCheckpointError,
  Meta,
  brief,
  describe,
  read_meta,
  steps,
)
from headjax.models.checksums import named_leaves

_UNFINISHED = "*" + ocp.utils.TMP_DIR_SUFFIX + "*"
_COMMIT = "commit_success.txt"  # of Orbax: what is complete in a store
_MARGIN = 1 << 20  # bytes of a checkpoint beside its arrays
# What Orbax and TensorStore raise when a file cannot be written.
_UNWRITABLE = (OSError, RuntimeError, ValueError)


class Writer:
  """Writes checkpoints in the background, one at a time.

  In a run of several processes each has a writer, and all call it alike.
  """

  def __init__(self, folder: epath.PathLike):
    """Takes a folder, and removes what an interrupted writer left there."""
    self.folder = epath.Path(folder)
    self._checkpointer = ocp.AsyncCheckpointer(ocp.CompositeCheckpointHandler())
    self._step: int | None = None
    self._remove_unfinished()

  def save(
    self, step: int, parts: Mapping[str, Any], *, kept: bool = True
  ) -> None:
    """Begins to write the state after `step` steps.

    Waits for the checkpoint before, and then removes all that were not to be
    kept but the newest. When this returns, the arrays may be donated.

    Args:
      step: number of the checkpoint; a damaged one of this number is replaced.
      parts: name -> tree of arrays.
      kept: False if it may go once there is a newer one.

    Raises:
      OSError: this one or the one before could not be written, say for want of
        space; complete ones are as they were.
    """
    self.wait()
    self._remove_replaced()
    self._step = step
    self._check_room(parts)
    meta = Meta(step, kept, {name: describe(t) for name, t in parts.items()})
    items = {
      name: ocp.args.StandardSave(named_leaves(tree))
      for name, tree in parts.items()
    }
    items[META] = ocp.args.JsonSave(meta.sealed())
    with self._one_line():
      self._checkpointer.save(
        self.folder / str(step), ocp.args.Composite(**items), force=True
      )

  def check(self) -> None:
    """Raises the OSError of a checkpoint that could not be written."""
    with self._one_line():
      self._checkpointer.check_for_errors()

  def wait(self) -> None:
    """Waits until the checkpoint is complete; raises like `check`."""
    with self._one_line():
      self._checkpointer.wait_until_finished()

  def __enter__(self) -> Self:
    """Nothing happens before `save`."""
    return self

  def __exit__(self, *exc) -> None:
    """Waits, and removes what the newest checkpoint replaces."""
    self.wait()
    self._remove_replaced()
    self._checkpointer.close()

  @contextlib.contextmanager
  def _one_line(self) -> Iterator[None]:
    try:
      yield
    except _UNWRITABLE as error:
      self._fail(brief(error))

  def _check_room(self, parts: Mapping[str, Any]) -> None:
    """Fails before Orbax does, which would say much more."""
    if is_remote(self.folder):
      return
    self.folder.mkdir(parents=True, exist_ok=True)
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(parts)) + _MARGIN
    free = shutil.disk_usage(self.folder).free
    if free < needed:
      self._fail(f"needs {needed / 1e6:.1f} MB, {free / 1e6:.1f} MB are free")

  def _fail(self, reason: str) -> NoReturn:
    there = steps(self.folder)
    newest = f"step {there[-1]} is the newest" if there else "there is none"
    raise OSError(
      f"checkpoint {self.folder / str(self._step)}: not written ({reason});"
      f" {newest}; check the disk and run the same command again"
    )

  def _remove_replaced(self) -> None:
    if jax.process_index() != 0:
      return
    for step in steps(self.folder)[:-1]:
      # One whose meta is damaged is left for somebody to look at.
      with contextlib.suppress(DamagedCheckpointError):
        if not read_meta(self.folder, step).kept:
          self._remove(self.folder / str(step))

  def _remove(self, path: epath.Path) -> None:
    """Removes a checkpoint, which is none from the first moment on."""
    if is_remote(path):
      (path / _COMMIT).unlink()
    else:
      path = path.rename(path.with_name(path.name + ocp.utils.TMP_DIR_SUFFIX))
    path.rmtree()

  def _remove_unfinished(self) -> None:
    if jax.process_index() == 0 and self.folder.exists():
      for path in self.folder.glob(_UNFINISHED):
        # Not while an earlier writer of this process still fails in it.
        with contextlib.suppress(OSError):
          path.rmtree()


def set_aside(folder: epath.PathLike, step: int) -> epath.Path:
  """Gives a damaged checkpoint another name, so that its number is free."""
  path = epath.Path(folder) / str(step)
  aside = path.with_name(f"{step}.damaged")
  if aside.exists():
    aside.rmtree()
  return path.rename(aside)
