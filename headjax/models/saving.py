"""How does a model become a Hugging Face folder that others can load?"""

import os
import pathlib

import jax
import numpy as np

from headjax.checks import check
from headjax.models import families, huggingface, tokenizers, weights
from headjax.models.load import LoadedModel


def save_model(
  model: LoadedModel,
  folder: str | os.PathLike[str],
  *,
  architecture: str | None = None,
  shard_bytes: int = 5 * 10**9,
) -> None:
  """Writes config.json, safetensors and, if there is one, the tokenizer.

  The weights are written as they are, in the type of the parameters, so that
  loading them again gives the same bits.

  Args:
    model: from `load_model`, or your own of such a shape.
    folder: where to; empty or not there yet.
    architecture: the class in transformers, for instance "LlamaForCausalLM";
      None takes the first whose config.json can say what the model is.
    shard_bytes: weights with more are split into several files.

  Raises:
    ValueError: no public architecture is such a model, or the folder holds
      something.
  """
  folder = pathlib.Path(folder)
  family = families.fitting(model.config, architecture)
  check(
    shard_bytes > 0,
    "shard_bytes",
    shard_bytes,
    "a positive number of bytes",
    "correct it",
  )
  held = sorted(p.name for p in folder.iterdir()) if folder.exists() else []
  check(
    not held,
    f"folder {folder}",
    f"one that holds {', '.join(held[:3])}",
    "one that is empty or not there",
    "choose another folder",
  )
  dtypes = {str(leaf.dtype) for leaf in jax.tree.leaves(model.params)}
  check(
    len(dtypes) == 1,
    "params",
    f"types {sorted(dtypes)}",
    "one type",
    "cast the parameters",
  )
  tokenizer = model.tokenizer
  extra = {
    "torch_dtype": dtypes.pop(),
    "bos_token_id": None if tokenizer is None else tokenizer.bos,
    "eos_token_id": None,
    "pad_token_id": None,
  }
  if tokenizer is not None:
    tokenizers.write(tokenizer, folder)
  huggingface.write_folder(
    folder,
    model.config,
    {
      name: np.asarray(weights.get(model.params, name))
      for name in weights.shapes(model.config)
    },
    family=family,
    extra=extra,
    shard_bytes=shard_bytes,
  )
