"""Where does a stopped training go on? At its last saved state, bit for bit.

A file holds the arrays of all members and a few facts. It is replaced as a
whole, so that a run which is killed at any time leaves one that can be read;
what is trained afterwards depends on nothing else. A run of other settings is
refused.
"""

import json
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headjax.array_files import read_arrays, write_arrays
from headjax.checks import check

FACTS = "facts"


class Progress:
  """The file of one training.

  Attributes:
    path: of the file, which need not exist.
    settings: what the training is.
  """

  def __init__(self, path: str | os.PathLike, settings: str):
    """Reads nothing yet.

    Args:
      path: of the file, `.npz`.
      settings: all that shapes the numbers, as text.
    """
    self.path, self.settings = pathlib.Path(path), settings

  def save(self, state: Any, **facts: Any) -> None:
    """Replaces what was saved.

    Args:
      state: a tree of arrays.
      **facts: JSON values.
    """
    leaves = {
      str(i): np.asarray(x) for i, x in enumerate(jax.tree.leaves(state))
    }
    content = json.dumps({"settings": self.settings} | facts)
    write_arrays(self.path, leaves | {FACTS: np.array(content)})

  def load(self, like: Any) -> tuple[Any, dict[str, Any]] | None:
    """The state and the facts that were saved; None if nothing was.

    Args:
      like: a state of the same structure, of which only the shapes are used.

    Raises:
      ValueError: the file is damaged, or of other settings.
    """
    said = "a saved training", "remove the file to start anew"
    arrays = read_arrays(self.path, *said)
    if arrays is None:
      return None
    check(FACTS in arrays, self.path, "no facts", *said)
    facts = json.loads(str(arrays.pop(FACTS)))
    check(
      facts.pop("settings", None) == self.settings,
      self.path,
      "a training of other settings",
      "the same command as before",
      "choose another --out",
    )
    wanted, tree = jax.tree.flatten(like)
    found = [arrays.get(str(i)) for i in range(len(wanted))]
    fits = len(arrays) == len(wanted) and all(
      x is not None and (x.shape, x.dtype) == (y.shape, y.dtype)
      for x, y in zip(found, wanted, strict=True)
    )
    check(fits, self.path, "other arrays", *said)
    return tree.unflatten([jnp.asarray(x) for x in found]), facts
