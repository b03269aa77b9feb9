"""Trains as `headjax.train` does, and keeps what every device was given.

  python tests/placed_batches.py OUT.npz [flags of headjax.train]

OUT.npz gets, under "STEP ROW", the tokens of that row of that step's batch, of
the rows that devices of this process held.
"""

import sys

import numpy as np

from headjax import train
from headjax.training import loop


def main(argv):
  """Trains, then writes the file."""
  out, *arguments = argv
  held, make = {}, loop._Run._batch

  def keep(run, step):
    batch = make(run, step)
    for shard in batch.addressable_shards:
      rows = range(*shard.index[0].indices(len(batch)))
      for row, tokens in zip(rows, np.asarray(shard.data), strict=True):
        # Devices that share a row must agree on it.
        known = held.setdefault(f"{step} {row}", tokens)
        np.testing.assert_array_equal(known, tokens)
    return batch

  loop._Run._batch = keep
  train.main(arguments)
  np.savez(out, **held)


if __name__ == "__main__":
  main(sys.argv[1:])
