"""Does a flipped cue say nothing of the answer, and is the rest kept?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.data.tasks import load_task
from headjax.data.toy import Toy
from headjax.studies.writers.cue_prompts import (
  CUE_TASKS,
  flip_cues,
  load_cue_cell,
)

TOY = Toy().tokenizer


def test_each_prompt_or_its_reference_is_shown():
  pairs = load_task("sva", TOY, split="discovery")
  chosen = []
  for seed in range(10):
    found = flip_cues(pairs, seed)
    same = (found.clean == pairs.clean).all(axis=1)
    other = (found.clean == pairs.reference).all(axis=1)
    assert (same != other).all()
    chosen.append(other)
    for name in ("answer", "foil", "lengths", "group", "condition"):
      np.testing.assert_array_equal(getattr(found, name), getattr(pairs, name))
    np.testing.assert_array_equal(found.reference, pairs.clean)
  assert np.mean(chosen) == pytest.approx(0.5, abs=0.05)
  assert np.std(np.mean(chosen, axis=0)) > 0.1  # other choices for each seed


def test_a_cell_has_a_split_for_every_step():
  assert set(CUE_TASKS) == {"sva", "quote", "plural"}
  found = load_cue_cell("plural", TOY, examples=12, n_shuffles=3)
  splits = [
    x.pairs.split for x in (found.discovery, found.paths, found.evaluation)
  ]
  assert splits == ["discovery", "validation", "evaluation"]
  assert len(found.shuffled) == 3
  pairs = found.discovery.pairs
  assert len(pairs) == len(found.shuffled[0]) == 12
  inside = np.arange(pairs.clean.shape[1]) < pairs.lengths[:, None]
  assert (found.discovery.buckets[inside] == 4).all()
  assert (found.discovery.buckets[~inside] == -1).all()
  whole = load_cue_cell("sva", TOY, n_shuffles=2)
  assert len(whole.discovery.pairs) == 300


def test_what_there_is_not_is_refused():
  with refusal("task: got 'antonym'"):
    load_cue_cell("antonym", TOY)
  with refusal("n_shuffles: got 1"):
    load_cue_cell("sva", TOY, n_shuffles=1)
