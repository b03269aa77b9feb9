import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from headjax.training.signals import Signals

# A process whose main thread does not come back to Python, as in compiling.
BUSY = """
import hashlib, sys
from headjax.training.signals import Signals
with Signals() as signals:
  signals.nothing_to_lose = sys.argv[1] == "nothing"
  print("ready", flush=True)
  hashlib.pbkdf2_hmac("sha256", b"", b"", int(sys.argv[2]))
  print("received", signals.received, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noticed_and_handlers_come_back(number):
  before = signal.getsignal(number)
  with Signals() as signals:
    signals.nothing_to_lose = False
    assert signals.received == 0
    os.kill(os.getpid(), number)
    assert signals.received == number
  assert signal.getsignal(number) is before


def test_the_first_signal_counts():
  with Signals() as signals:
    signals.nothing_to_lose = False
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.received == signal.SIGTERM


def test_the_second_interrupt_does_not_wait():
  with pytest.raises(KeyboardInterrupt), Signals() as signals:
    signals.nothing_to_lose = False
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def test_in_another_thread_nothing_is_taken_over():
  before = signal.getsignal(signal.SIGTERM)

  def body():
    with Signals() as signals:
      found.append((signals.received, signal.getsignal(signal.SIGTERM)))

  found = []
  thread = threading.Thread(target=body)
  thread.start()
  thread.join()
  assert found == [(0, before)]


def test_no_thread_is_left_behind():
  before = threading.active_count()
  with Signals():
    pass
  assert threading.active_count() == before


def test_an_interrupt_does_not_wait_while_nothing_can_be_lost():
  with pytest.raises(KeyboardInterrupt), Signals():
    os.kill(os.getpid(), signal.SIGINT)


def test_while_nothing_can_be_lost_a_busy_process_ends_at_once():
  process = subprocess.Popen(
    [sys.executable, "-c", BUSY, "nothing", "40000000"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  assert process.stdout.readline() == "ready\n"
  start = time.monotonic()
  process.send_signal(signal.SIGTERM)
  out, err = process.communicate()
  assert time.monotonic() - start < 10
  assert process.returncode == 143
  assert (out, err) == ("", "stopped by SIGTERM; nothing was lost\n")


def test_else_it_is_told_when_it_comes_back():
  process = subprocess.Popen(
    [sys.executable, "-c", BUSY, "something", "1000000"],
    stdout=subprocess.PIPE,
    text=True,
  )
  assert process.stdout.readline() == "ready\n"
  process.send_signal(signal.SIGTERM)
  assert process.communicate()[0] == f"received {signal.SIGTERM.value}\n"
  assert process.returncode == 0
