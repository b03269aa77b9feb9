"""Does every member have its own order, and its own name?"""

import dataclasses

import jax
import numpy as np
import pytest

from configs.cores import VARIANTS, get_config
from headjax.models.decoder import Decoder
from headjax.studies.cores.members import epoch_rows, setup


def test_an_epoch_takes_each_row_at_most_once():
  rows = epoch_rows((3, 4), range(2), 10, 3)
  assert rows.shape == (2, 6, 3)
  for member in rows:
    for epoch in np.split(member, 2):
      assert len(np.unique(epoch)) == 9
  assert not np.array_equal(rows[0], rows[1])
  later = epoch_rows((3, 4), range(1, 2), 10, 3)
  np.testing.assert_array_equal(later, rows[:, 3:])


def test_a_batch_larger_than_the_data_is_the_data():
  rows = epoch_rows((0,), range(1), 5, 512)
  assert sorted(rows[0, 0].tolist()) == list(range(5))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_is_a_model(variant):
  config = get_config(variant)
  own = {} if config.model.d_vocab else {"d_vocab": config.p}
  found = setup(config, **own)
  assert found.model.norms_stream  # as the paper's
  assert not found.model.tied
  shapes = jax.eval_shape(
    Decoder(found.model).init, jax.random.key(0), np.zeros((1, 1), np.int32)
  )
  assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) > 10_000
  assert len(set(found.seeds)) == len(found.seeds)


def test_unknown_variants_and_changing_rates_are_refused():
  with pytest.raises(ValueError, match="variant: got 'chain'"):
    get_config("chain")
  found = setup(get_config("markov"))
  slower = dataclasses.replace(found.optimizer, final=0.0)
  with pytest.raises(ValueError, match="optimizer.final: got 0.0"):
    dataclasses.replace(found, optimizer=slower)
  with pytest.raises(ValueError, match="epochs: got 0"):
    dataclasses.replace(found, epochs=0)
