import json
import pathlib

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.record_writer import crc32c

from headjax.training import recorder
from headjax.training.recorder import Recorder, Silence


def lines(folder):
  text = (folder / "metrics.jsonl").read_text()
  return [json.loads(line) for line in text.splitlines()]


def events(folder):
  """All events of a folder, read byte by byte."""
  found = []
  for path in sorted(pathlib.Path(folder).glob("events.*")):
    raw = path.read_bytes()
    while raw:
      length, check = np.frombuffer(raw[:12], "<u8,<u4")[0]
      assert check == masked(raw[:8])
      content = raw[12 : 12 + length]
      assert np.frombuffer(raw[12 + length : 16 + length], "<u4") == masked(
        content
      )
      found.append(Event.FromString(content))
      raw = raw[16 + length :]
  return found


def masked(raw):
  value = crc32c(raw)
  return ((value >> 15 | value << 17) + 0xA282EAD8) % 2**32


def write(folder, resumed, steps):
  with Recorder(folder, resumed, 100) as record:
    for step in steps:
      record.advance(step)
      record.write(step, loss=step / 3, mfu=None)


def test_a_line_is_there_as_soon_as_it_is_written(tmp_path):
  with Recorder(tmp_path, None, 10) as record:
    record.write(1, loss=0.5, mfu=None)
    [line] = lines(tmp_path)
    assert line.pop("wall_s") >= 0
    assert line == {"step": 1, "loss": 0.5, "mfu": None}


def test_lines_after_the_checkpoint_are_dropped_when_a_run_resumes(tmp_path):
  write(tmp_path, None, [1, 4, 8])
  write(tmp_path, 4, [8, 12])
  assert [line["step"] for line in lines(tmp_path)] == [1, 4, 8, 12]
  assert lines(tmp_path)[3]["loss"] == 4.0


def test_a_run_that_begins_again_drops_all_lines(tmp_path):
  write(tmp_path, None, [1, 4])
  write(tmp_path, None, [1])
  assert [line["step"] for line in lines(tmp_path)] == [1]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_is_dropped(tmp_path, cut):
  write(tmp_path, None, [1, 2, 3])
  path = tmp_path / "metrics.jsonl"
  path.write_bytes(path.read_bytes()[:-cut])
  write(tmp_path, 2, [3])
  assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]


def test_wall_time_goes_on_when_a_run_resumes(tmp_path):
  write(tmp_path, None, [1])
  first = lines(tmp_path)[0] | {"wall_s": 1000.0}
  (tmp_path / "metrics.jsonl").write_text(json.dumps(first) + "\n")
  write(tmp_path, 1, [2])
  assert 1000 <= lines(tmp_path)[1]["wall_s"] < 1010


def test_tensorboard_gets_the_same_numbers_and_none_that_are_unknown(tmp_path):
  write(tmp_path, None, [1, 4])
  values = [
    (event.step, value.tag, value.simple_value)
    for event in events(tmp_path)
    for value in event.summary.value
  ]
  assert values == [
    (1, "loss", np.float32(1 / 3)),
    (4, "loss", np.float32(4 / 3)),
  ]


def test_tensorboard_is_told_from_where_a_run_goes_on(tmp_path):
  with Recorder(tmp_path, 4, 100):
    pass
  starts = [
    event.step
    for event in events(tmp_path)
    if event.session_log.status == SessionLog.START
  ]
  assert starts == [5]


def test_in_a_store_files_are_copied_by_flush(tmp_path, monkeypatch):
  monkeypatch.setattr(recorder, "is_remote", lambda path: True)
  with Recorder(tmp_path, None, 10) as record:
    record.write(1, loss=0.5)
    assert lines(tmp_path) == [] and not list(tmp_path.glob("events.*"))
    record.flush()
    assert len(lines(tmp_path)) == 1
    record.write(2, loss=0.5)
  assert [line["step"] for line in lines(tmp_path)] == [1, 2]
  assert len(list(tmp_path.glob("events.*"))) == 1
  write(tmp_path, 1, [3])
  assert [line["step"] for line in lines(tmp_path)] == [1, 3]


def test_other_processes_write_nothing():
  with Silence() as record:
    record.write(1, loss=0.5)
    record.advance(1)
    record.flush()
