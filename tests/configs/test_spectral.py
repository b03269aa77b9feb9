"""Do the configs of the spectral study name corpora and models that fit?"""

import numpy as np
import pytest
from one_line import refusal

from configs.spectral import VARIANTS, get_config
from headjax.data.keys import Keys
from headjax.models.weights import shapes
from headjax.training import from_config

SMALL = ("mini", "tiny", "small", "medium", "shift")


@pytest.mark.parametrize("variant", SMALL)
def test_a_sequence_holds_the_lines(variant):
  config = get_config(variant)
  settings = from_config.settings(config)
  corpus = from_config.corpus(config)
  length, steps = settings.model.n_ctx + 1, settings.schedule.steps
  corpus.check(length, steps * settings.arithmetic.batch_size, 64)
  assert corpus.d_vocab <= settings.model.d_vocab
  rows = corpus.sequences(0, np.arange(4), length)
  assert (rows == Keys().lines.asks[1]).any(axis=1).all()


def test_sizes_grow_and_the_largest_is_the_sources():
  models = [from_config.settings(get_config(v)).model for v in SMALL[:4]]
  assert [m.n_layers for m in models] == [2, 3, 4, 6]
  sizes = [sum(np.prod(s) for s in shapes(m).values()) for m in models]
  assert sizes == sorted(sizes)
  model = from_config.settings(get_config("ts-51m")).model
  total = sum(np.prod(s) for s in shapes(model).values())
  assert round(total / 1e6) == 51


def test_the_circuit_has_many_checkpoints_and_the_shift_one_of_its_own():
  for variant in VARIANTS:
    schedule = from_config.settings(get_config(variant)).schedule
    steps = schedule.checkpoint_steps
    assert list(steps) == sorted(set(steps)) and steps[-1] == schedule.steps
  corpus = from_config.corpus(get_config("shift"))
  assert corpus.change / 16 in get_config("shift").train.checkpoint_steps


def test_what_is_not_there_is_refused():
  with refusal("variant: got 'x'; expected one of mini, tiny, small, medium"):
    get_config("x")
  config = get_config("tiny")
  config.data.code_share = 0.5
  with refusal("data.code_share: got 0.5; expected 0 for corpus keys"):
    from_config.corpus(config)
