"""How does the `model` section of a config become a ModelConfig?

The one place where a section's plain values turn into designs. A section is
whatever has the fields of `configs/base.py` as attributes, with `write` and
`read` inside; nothing else in the package sees one.
"""

import dataclasses
import math
from typing import Any

from headjax.checks import check_choice
from headjax.geometry.designs import (
  ReadDesign,
  WriteDesign,
  output_scale,
  routing,
)
from headjax.models.config import ModelConfig

_DESIGNS = ("write", "read")
# What public models have and no training config names: left at its default.
_PUBLIC = (
  "norm_at", "parallel", "rotary_fraction", "rotary_scaling", "n_experts",
  "experts_per_token", "experts_normed", "qk_norm", "qkv_clip", "score_dim",
  "score_cap", "logit_cap", "embed_scale",
)  # fmt: skip


def model_config(section: Any) -> ModelConfig:
  """The architecture that a `model` section describes.

  Args:
    section: the section; rules such as members "layer" are settled here.

  Raises:
    ValueError: a value is not among its choices, or the architecture is
      impossible.
  """
  plain = {
    field.name: getattr(section, field.name)
    for field in dataclasses.fields(ModelConfig)
    if field.name not in _DESIGNS + _PUBLIC
  }
  return ModelConfig(**plain, write=_write(section), read=_read(section))


def _write(section: Any) -> WriteDesign:
  write, n_layers = section.write, section.n_layers
  members = {
    "none": (),
    "common": (0,) * n_layers,
    "layer": tuple(range(n_layers)),
  }
  check_choice("write.members", write.members, members)
  return WriteDesign(
    kind=write.kind,
    scale=_scale(section),
    members=members[write.members],
    live=write.live,
    routing=_routing(section),
  )


def _scale(section: Any) -> float:
  """The scale given, else that of a learned write, shared by live ones."""
  write = section.write
  if write.scale is not None or write.kind == "learned":
    return 1.0 if write.scale is None else write.scale
  live = section.d_head if write.live is None else write.live
  share = live / section.d_head
  return output_scale(section.d_model, section.n_layers) / math.sqrt(share)


def _routing(section: Any) -> tuple[tuple[float, ...], ...]:
  if section.write.routing == "none":
    return ()
  blocks = section.d_model // section.d_head
  return routing(section.write.routing, section.n_heads, blocks)


def _read(section: Any) -> ReadDesign:
  read, n_layers = section.read, section.n_layers
  members = {
    "axis": (),
    "layer": tuple(range(n_layers)),
    "shifted": tuple(range(read.shift, read.shift + n_layers)),
  }
  check_choice("read.members", read.members, members)
  return ReadDesign(read.kind, members[read.members], read.restricted)
