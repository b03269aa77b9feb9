"""Random models for clamps and responses, which run no forward in NumPy."""

import dataclasses

from helpers import GPT2, random_model

from headjax.geometry.designs import ReadDesign, WriteDesign

# Heads write and read blocks of coordinates.
BLOCKS = dataclasses.replace(
  GPT2, d_model=20, write=WriteDesign("axis", scale=0.5),
  read=ReadDesign("block"),
)  # fmt: skip


def held_model(config, scale=None, dtype="float64"):
  """A model and its weights; without norms the stream must stay small."""
  if scale is None:
    scale = 0.15 if config.norm == "none" and config.mlp != "none" else 0.4
  return random_model(config, scale=scale, dtype=dtype)
