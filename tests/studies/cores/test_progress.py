"""Does a training go on from what was saved, and from nothing else?"""

import numpy as np
import pytest

from headjax.studies.cores.progress import Progress

STATE = {"a": np.arange(3.0, dtype=np.float32), "step": np.int32(7)}


def test_a_state_comes_back_bit_for_bit(tmp_path):
  keep = Progress(tmp_path / "s.npz", "p=7")
  assert keep.load(STATE) is None
  keep.save(STATE, epoch=3, known=[1.0, float("nan")])
  state, facts = Progress(tmp_path / "s.npz", "p=7").load(STATE)
  np.testing.assert_array_equal(state["a"], STATE["a"])
  assert state["step"] == 7 and state["a"].dtype == np.float32
  assert facts["epoch"] == 3 and np.isnan(facts["known"][1])
  assert [path.name for path in tmp_path.iterdir()] == ["s.npz"]


def test_other_settings_and_damaged_files_are_refused(tmp_path):
  path = tmp_path / "s.npz"
  Progress(path, "p=7").save(STATE, epoch=3)
  with pytest.raises(ValueError, match="a training of other settings"):
    Progress(path, "p=11").load(STATE)
  with pytest.raises(ValueError, match="other arrays"):
    Progress(path, "p=7").load({"a": np.zeros(4, np.float32)})
  path.write_bytes(path.read_bytes()[:40])
  with pytest.raises(ValueError, match="remove the file"):
    Progress(path, "p=7").load(STATE)
