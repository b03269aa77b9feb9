"""What happens on SIGTERM and Ctrl-C? The run saves, or has nothing to save.

A handler of Python's waits until the interpreter is asked again, which is not
while XLA compiles. So a thread reads the signals too, and on SIGTERM ends the
process at once as long as nothing would be lost.
"""

import os
import signal
import sys
import threading
from typing import Self

_HANDLED = (signal.SIGTERM, signal.SIGINT)


class Signals:
  """Notices signals while the `with` block runs, in the main thread.

  Attributes:
    received: the first signal, or 0.
    nothing_to_lose: whether the disk has all that there is.
  """

  def __init__(self):
    """Nothing is noticed yet; `with` begins."""
    self.received = 0
    self.nothing_to_lose = True
    self._before = {}

  def __enter__(self) -> Self:
    """Takes over both signals; in another thread there are none."""
    if threading.current_thread() is not threading.main_thread():
      return self
    self._read, self._write = os.pipe()
    os.set_blocking(self._write, False)
    self._before = {s: signal.signal(s, self._notice) for s in _HANDLED}
    self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
    self._thread = threading.Thread(target=self._watch, daemon=True)
    self._thread.start()
    return self

  def __exit__(self, *exc) -> None:
    """Gives them back."""
    if not self._before:
      return
    signal.set_wakeup_fd(self._wakeup)
    for number, handler in self._before.items():
      signal.signal(number, handler)
    os.close(self._write)
    self._thread.join()
    os.close(self._read)

  def _notice(self, number, frame):
    if number == signal.SIGINT and (self.received or self.nothing_to_lose):
      raise KeyboardInterrupt  # the second Ctrl-C does not wait
    self.received = self.received or number

  def _watch(self):
    while numbers := os.read(self._read, 64):
      if signal.SIGTERM in numbers and self.nothing_to_lose:
        print("stopped by SIGTERM; nothing was lost", file=sys.stderr)
        sys.stderr.flush()
        os._exit(128 + signal.SIGTERM)
