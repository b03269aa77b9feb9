"""Is there a time for every seed at every weight decay?"""

import dataclasses

import numpy as np
import pytest

from configs import base
from configs.cores import get_config
from headjax.studies.cores import grokking, modular
from headjax.studies.cores.grokking import GrokTime, grok_times
from headjax.studies.cores.members import setup

P = 7


def small():
  config = get_config("modular-small")
  base.override(config, {
    "seeds": (0, 1), "p": P, "model.d_model": 32, "model.d_head": 8,
    "model.d_mlp": 64, "train.epochs": 10,
  })  # fmt: skip
  return setup(config, d_vocab=P)


def test_what_never_came_is_longer_than_any():
  assert GrokTime(P, 1.0, 0, 5.0, 25.0, 30).delay == 20
  assert GrokTime(P, 1.0, 0, 5.0, float("nan"), 30).delay == float("inf")


@pytest.mark.slow
def test_times_are_of_every_seed_at_every_decay():
  found = grok_times(small(), P, [0.5, 2.0], 5)
  assert [(t.weight_decay, t.seed) for t in found] == [
    (0.5, 0), (0.5, 1), (2.0, 0), (2.0, 1),
  ]  # fmt: skip
  assert all(np.isnan(t.test_epoch) and t.delay == np.inf for t in found)
  assert {t.epochs for t in found} == {10}


@pytest.mark.slow
def test_times_of_a_stopped_training_are_those_of_a_whole_one(tmp_path):
  whole = grok_times(small(), P, [0.5], 5, tmp_path / "whole.npz")
  short = dataclasses.replace(small(), epochs=10)
  path = tmp_path / "cut.npz"
  with pytest.MonkeyPatch.context() as patch:
    saved = grokking.Progress.save

    def stop(*args, **kwargs):
      saved(*args, **kwargs)
      raise KeyboardInterrupt

    patch.setattr(grokking.Progress, "save", stop)
    with pytest.raises(KeyboardInterrupt):
      grok_times(short, P, [0.5], 5, path)
  assert repr(grok_times(short, P, [0.5], 5, path)) == repr(whole)
  one, two = np.load(tmp_path / "whole.npz"), np.load(path)
  assert all((one[name] == two[name]).all() for name in one.files)


@pytest.mark.slow
def test_the_small_config_groks_and_its_maps_become_rotations():
  config = get_config("modular-small")
  base.override(config, {"seeds": (1032,)})
  whole = setup(config, d_vocab=config.p)
  [found] = grok_times(whole, config.p, [1.0], 200)
  assert found.train_epoch <= 200 and 500 < found.test_epoch <= 4000
  late = int(found.test_epoch)
  early, after = (
    modular.core_row(moment, moment.models[0], config.p)
    for moment in modular.moments(whole, config.p, [200, late])
  )
  assert early["test accuracy"] < 0.2 and after["test accuracy"] >= 0.99
  assert early["distance"] > 0.1 and after["distance"] < 0.02
  assert after["r2 held out"] > 0.95 > early["r2 held out"]
