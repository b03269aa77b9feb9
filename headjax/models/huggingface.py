"""How is a Hugging Face folder read and written? config.json, safetensors."""

import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from headjax import files
from headjax.checks import check
from headjax.models import families, layouts, tensor_files
from headjax.models.config import ModelConfig
from headjax.models.config_fields import Fields
from headjax.models.family import Family

# Constants that old files store beside the weights: masks and frequencies.
_BUFFERS = re.compile(
  r"h\.\d+\.attn\.(bias|masked_bias)"
  r"|gpt_neox\.layers\.\d+\.attention\."
  r"(bias|masked_bias|rotary_emb\.inv_freq)"
  r"|model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq"
)
_UNEMBEDDINGS = ("embed_out.weight", "lm_head.weight")


@dataclasses.dataclass(frozen=True)
class Opened:
  """A folder whose config and headers fit each other; no tensor is read.

  Attributes:
    config: the architecture.
    layout: what the tensors hold, by their names there.
    found: where the tensors are, by their names in the files.
    stored: name in the layout -> name in the files.
  """

  config: ModelConfig
  layout: layouts.Layout
  found: Mapping[str, tensor_files.StoredTensor]
  stored: Mapping[str, str]


def read_folder(
  folder: str | os.PathLike[str], dtype: np.dtype | str = "float32"
) -> tuple[ModelConfig, dict[str, np.ndarray]]:
  """Reads a model of a public family from a Hugging Face folder.

  Args:
    folder: holds `config.json` and `model.safetensors`, or shards of it with
      `model.safetensors.index.json`. Tensors are F16, BF16, F32 or F64.
    dtype: float type of the result.

  Returns:
    The config, and weight -> array in the stored shapes of `weights.py`.

  Raises:
    ValueError: if a file is missing, damaged or unsupported, or if config and
      weights disagree.
  """
  opened = open_folder(folder)
  config, layout = opened.config, opened.layout
  short = {name: short for short, name in opened.stored.items()}
  tensors = tensor_files.read(opened.found, short)
  renamed = ((short[name], array) for name, array in tensors)
  return config, layouts.assemble(config, layout, renamed, np.dtype(dtype))


def open_folder(folder: str | os.PathLike[str]) -> Opened:
  """What a folder holds, checked; for the errors see `read_folder`."""
  folder = pathlib.Path(folder)
  fields = Fields.of_file(folder / "config.json")
  family = families.named(fields)
  found = tensor_files.catalogue(folder)
  config = family.read(fields, len(found))
  stored = _known(family, config, found, str(folder))
  shapes = {short: found[name].shape for short, name in stored.items()}
  layouts.check_heads(config, shapes.values(), str(folder))
  layout = family.layout(config)
  layouts.check_layout(layout, shapes, str(folder))
  return Opened(config, layout, found, stored)


def _known(family, config, found, source: str) -> dict[str, str]:
  """Name in the layout -> name in the files, without what is not needed."""
  stored = {}
  for name in found:
    short = name.removeprefix(family.prefix)
    short = family.aliases.get(short, short)
    check(
      short not in stored,
      f"{source}: tensors",
      f"names both with and without the prefix {family.prefix!r}: "
      f"{name} and {stored.get(short)}",
      "one of the two",
      "use an undamaged checkpoint",
    )
    stored[short] = name
  return {
    short: name
    for short, name in stored.items()
    if not (config.tied and short in _UNEMBEDDINGS)
    and not _BUFFERS.fullmatch(short)
  }


def write_folder(
  folder: pathlib.Path,
  config: ModelConfig,
  weights: Mapping[str, np.ndarray],
  *,
  family: Family,
  extra: Mapping[str, Any],
  shard_bytes: int,
) -> None:
  """Writes the weights in one file or in shards, and then config.json.

  Args:
    folder: where to; files there are replaced one by one.
    config: the architecture.
    weights: weight -> array in the stored shapes of `weights.py`, of one type.
    family: whose layout it is to be.
    extra: fields of config.json that do not belong to the architecture.
    shard_bytes: a file with more is split, tensors are not.
  """
  layout = family.layout(config)
  itemsize = next(iter(weights.values())).itemsize
  sizes = {
    name: itemsize * int(np.prod(source.shape))
    for name, source in layout.items()
  }
  shards = _shards(sizes, shard_bytes)
  places = {}
  for number, names in enumerate(shards, start=1):
    file = tensor_files.SINGLE
    if len(shards) > 1:
      file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
    tensors = {
      _long(family, name): layouts.disassemble(layout[name], weights)
      for name in names
    }
    with files.atomic(folder / file) as part:
      save_file(tensors, part, metadata={"format": "pt"})
    places |= dict.fromkeys(tensors, file)
  if len(shards) > 1:
    index = {"metadata": {"total_size": sum(sizes.values())}}
    _write_json(folder / tensor_files.INDEX, index | {"weight_map": places})
  _write_json(folder / "config.json", family.write(config) | dict(extra))


def _shards(sizes: Mapping[str, int], most: int) -> list[list[str]]:
  """Names in files of at most `most` bytes, in order."""
  shards, room = [], 0
  for name, size in sizes.items():
    if not shards or size > room:
      shards.append([])
      room = most
    shards[-1].append(name)
    room -= size
  return shards


def _long(family: Family, name: str) -> str:
  return name if name in _UNEMBEDDINGS else family.prefix + name


def _write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
  files.write_text(path, json.dumps(content, indent=2) + "\n")
