"""Who makes the next batch while a step runs? One thread, a few steps ahead."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Self

import jax

_AHEAD = 2  # batches that wait, beside the one that is made


class Batches:
  """Batches of consecutive steps, made in the background.

  Attributes:
    waited_s: seconds that `get` has waited, in total.
  """

  def __init__(self, make: Callable[[int], jax.Array], first: int, end: int):
    """Starts nothing yet; `with` does.

    Args:
      make: step -> its batch, on the devices.
      first: the first step.
      end: the step after the last one.
    """
    self.waited_s = 0.0
    self._make, self._steps = make, range(first, end)
    self._ready = queue.Queue(_AHEAD)
    self._stopped = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)

  def __enter__(self) -> Self:
    """Begins with the first batch."""
    self._thread.start()
    return self

  def __exit__(self, *exc) -> None:
    """Stops, whatever was made."""
    self._stopped.set()
    while self._thread.is_alive():
      self._drop()
      self._thread.join(0.01)

  def get(self) -> jax.Array:
    """The batch of the next step; raises what its making raised."""
    start = time.perf_counter()
    batch = self._ready.get()
    self.waited_s += time.perf_counter() - start
    if isinstance(batch, BaseException):
      raise batch
    return batch

  def _run(self):
    try:
      for step in self._steps:
        if self._stopped.is_set():
          return
        self._ready.put(self._make(step))
    except BaseException as error:  # it belongs to whoever calls get
      self._ready.put(error)

  def _drop(self):
    try:
      self._ready.get_nowait()
    except queue.Empty:
      pass
