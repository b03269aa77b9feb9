"""How is the folder of a training run a model? By its config and checkpoints.

A run folder is known by its `run.json`. Training writes it
(`headjax.training.workdir`); here are the names in it, and how it is read.
"""

import contextlib
import json
import pathlib
import tempfile
import types
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from headjax.checks import check, fail
from headjax.files import is_remote
from headjax.models import checkpoints, tokenizers, weights
from headjax.models.checksums import named_leaves
from headjax.models.config import ModelConfig
from headjax.models.from_config import model_config
from headjax.models.tokenizers import Tokenizer

MARK = "headjax_run"  # the key of run.json by which it is known
MANIFEST = "run.json"
CONFIG = "config.json"
CHECKPOINTS = "checkpoints"
PARAMS = "params"  # the part of a checkpoint that is the model
_NEWEST = "newest"


def find(spec: str) -> tuple[epath.Path, str] | None:
  """The run that FOLDER or FOLDER@STEP names, and the step as text."""
  if is_run(spec):
    return epath.Path(spec), _NEWEST
  folder, at, step = spec.rpartition("@")
  return (epath.Path(folder), step) if at and is_run(folder) else None


def is_run(folder: epath.PathLike) -> bool:
  """Whether a folder is that of a run."""
  path = epath.Path(folder) / MANIFEST
  return bool(str(folder)) and path.exists() and MARK in read_json(path)


def read(
  folder: epath.Path, step: str, dtype: str
) -> tuple[ModelConfig, Any, Tokenizer | None, str, str]:
  """Architecture, parameters, tokenizer, name and digest of a run's model.

  Args:
    folder: of the run.
    step: which checkpoint, in digits; "newest" for the last one.
    dtype: of the parameters.

  Raises:
    ValueError: there is no such checkpoint, or it or another file is damaged.
  """
  number = _chosen(folder, step)
  config = model_config(_section(read_json(folder / CONFIG)["model"]))
  name = f"{folder.resolve().name}@{number}"
  saved, meta = checkpoints.restore(
    folder / CHECKPOINTS, number, {PARAMS: _expected(folder, number, config)}
  )
  params = jax.tree.map(lambda x: jnp.asarray(x, dtype), saved[PARAMS])
  for leaf, array in named_leaves(params).items():
    weights.check_finite(np.asarray(array), f"{name}: {leaf}")
  return config, params, read_tokenizer(folder), name, meta.digest(PARAMS)


def read_json(path: epath.Path) -> dict[str, Any]:
  """A JSON object.

  Raises:
    ValueError: the file is missing or is none.
  """
  try:
    content = json.loads(path.read_text())
  except (OSError, ValueError) as error:
    fail(str(path), error, "the JSON file of a run", "restore the file")
  check(
    isinstance(content, dict),
    str(path),
    type(content).__name__,
    "a JSON object",
    "restore the file",
  )
  return content


def read_tokenizer(folder: epath.Path) -> Tokenizer | None:
  """The tokenizer of a run, named after its folder."""
  if not (folder / tokenizers.FILE).exists():
    return None
  with _local(folder) as place:
    read = tokenizers.from_file(place / tokenizers.FILE)
  return Tokenizer(read.backend, folder.resolve().name, read.bos)


@contextlib.contextmanager
def _local(folder: epath.Path) -> Iterator[pathlib.Path]:
  """A folder on the disk with the tokenizer's files."""
  if not is_remote(folder):
    yield pathlib.Path(folder)
    return
  with tempfile.TemporaryDirectory() as place:
    for name in (tokenizers.FILE, tokenizers.CONFIG_FILE):
      if (folder / name).exists():
        pathlib.Path(place, name).write_text((folder / name).read_text())
    yield pathlib.Path(place)


def _chosen(folder: epath.Path, step: str) -> int:
  there = checkpoints.steps(folder / CHECKPOINTS)
  if step == _NEWEST and there:
    return there[-1]
  if not step.isdecimal() or int(step) not in there:
    fail(
      f"checkpoint of {folder}",
      repr(step),
      "one of " + (", ".join(map(str, there)) or "none: nothing is saved yet"),
      "choose FOLDER@STEP, or FOLDER for the newest",
    )
  return int(step)


def _expected(folder: epath.Path, step: int, config: ModelConfig) -> Any:
  """The parameter tree of a config, in the type that was saved."""
  saved = checkpoints.read_meta(folder / CHECKPOINTS, step).parts[PARAMS]
  [dtype] = {leaf["dtype"] for leaf in saved.values()}
  check(
    dtype != "float64" or jax.config.jax_enable_x64,
    f"checkpoint {folder}@{step}",
    "float64 without 64-bit JAX",
    "float32",
    "call jax.config.update('jax_enable_x64', True) first",
  )
  here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  leaves = {
    name: jax.ShapeDtypeStruct(shape, dtype, sharding=here)
    for name, shape in weights.shapes(config).items()
  }
  return weights.nested(leaves)


def _section(plain: Any) -> Any:
  """A section of a config as an object; JSON has lists for tuples."""
  if isinstance(plain, dict):
    inner = {key: _section(value) for key, value in plain.items()}
    return types.SimpleNamespace(**inner)
  return tuple(plain) if isinstance(plain, list) else plain
