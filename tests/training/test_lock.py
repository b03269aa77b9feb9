import json
import os
import subprocess
import sys

from one_line import refusal

from headjax.training import lock
from headjax.training.lock import Lock

HOLD = (
  "import sys, time; from headjax.training.lock import Lock;"
  "lock = Lock(sys.argv[1]).__enter__(); print('held', flush=True);"
  "time.sleep(60)"
)


def test_a_second_run_is_refused_and_told_who_holds_it(tmp_path):
  with Lock(tmp_path):
    with refusal(f"workdir {tmp_path}", f'"pid": {os.getpid()}'):
      with Lock(tmp_path):
        pass
  with Lock(tmp_path):
    pass


def test_the_lock_of_a_killed_process_is_free(tmp_path):
  holder = subprocess.Popen(
    [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE
  )
  assert holder.stdout.readline() == b"held\n"
  with refusal("another run holds", f'"pid": {holder.pid}'):
    with Lock(tmp_path):
      pass
  holder.kill()
  holder.communicate()
  with Lock(tmp_path) as held:
    held.check()
    assert json.loads((tmp_path / "run.lock").read_text())["pid"] == os.getpid()


def test_the_folder_is_made(tmp_path):
  with Lock(tmp_path / "a" / "b"):
    assert (tmp_path / "a" / "b").is_dir()


def test_in_a_store_the_last_one_holds_it(tmp_path, monkeypatch):
  monkeypatch.setattr(lock, "is_remote", lambda path: True)
  with Lock(tmp_path) as first:
    first.check()
    with Lock(tmp_path) as second:
      second.check()
      with refusal("another run holds"):
        first.check()
