"""What does one look at beside a head's effect? Attention, and other heads.

Both are small: attention on the first prompts that are short enough, and how
much of what a head writes lies in what each later head reads.
"""

import time

import jax
import numpy as np
import xarray as xr

from headjax import results
from headjax.data.pairs import PromptPairs
from headjax.geometry.energy import gram_basis
from headjax.geometry.survey import kernel_of_all_pairs
from headjax.interventions.patterns import patterns
from headjax.interventions.sweep import PRECISION
from headjax.models import weights
from headjax.models.load import LoadedModel
from headjax.models.spaces import inputs, read_spaces

MIB = 2**20
_FOUR = 4  # bytes of a float32


def head_details(
  model: LoadedModel,
  pairs: PromptPairs,
  *,
  prompts: int = 2,
  most_bytes: int = 64 * MIB,
) -> xr.Dataset:
  """Attention on a few prompts, and overlaps of all pairs of heads.

  Args:
    model: from `load_model`.
    pairs: whose clean prompts are taken, in their order.
    prompts: how many patterns to keep.
    most_bytes: of one prompt's patterns, and of the overlaps; what is larger
      is left out.

  Returns:
    A dataset with `pattern[prompt, layer, head, query, key]`, in shares of
    attention, with `prompt` the number of the example and `token[prompt, key]`;
    with `pk[input, source_layer, source_head, layer, head]`, the projection
    kernels of write and read spaces without the gain of the norm, in
    dimensions, NaN unless the reader is in a later layer; and, if the model
    has a tokenizer, with the texts `clean`, `answer` and `foil[example]`.

  Source: paper A, section 3 (PK).
  """
  began = time.perf_counter()
  found = xr.Dataset()
  chosen = _short_enough(model, pairs, most_bytes)[:prompts]
  if len(chosen):
    found["pattern"] = _patterns(model, pairs, chosen)
  letters = inputs(model.config)
  n_heads = model.config.n_layers * model.config.n_heads
  if _FOUR * len(letters) * n_heads**2 <= most_bytes:
    found["pk"] = _overlaps(model, letters)
  if model.tokenizer is not None:
    found = found.assign_coords(_texts(model.tokenizer, pairs))
  return found.assign_attrs(
    results.provenance(
      model=model,
      pairs=pairs,
      wall_s=time.perf_counter() - began,
      chunk=max(1, len(chosen)),
      method="details",
    )
  )


def _short_enough(model, pairs, most_bytes: int) -> np.ndarray:
  """The examples whose patterns fit."""
  n_heads = model.config.n_layers * model.config.n_heads
  sizes = _FOUR * n_heads * pairs.lengths.astype(np.int64) ** 2
  return np.flatnonzero(sizes <= most_bytes)


def _patterns(model, pairs, chosen: np.ndarray) -> xr.DataArray:
  lengths = pairs.lengths[chosen]
  tokens = pairs.clean[chosen, : lengths.max()]
  array = patterns(model, tokens, lengths=lengths).astype(np.float32)
  array = array.rename(example="prompt")
  array = array.transpose("prompt", "layer", "head", "query", "key")
  array.attrs |= {"long_name": "attention", "units": "1"}
  return array.assign_coords(prompt=chosen)


def _overlaps(model, letters: str) -> xr.DataArray:
  params, config = model.params, model.config
  with jax.default_matmul_precision(PRECISION):
    # The write spaces, by the fast way to a basis that readers use as well.
    write = gram_basis(weights.per_query_head(params, config, "W_O").mT)
    values = [
      kernel_of_all_pairs(
        write, read_spaces(params, config, x, folded=False, basis=gram_basis)
      )
      for x in letters
    ]
  layer = np.arange(config.n_layers)
  later = layer[:, None, None, None] < layer[:, None]
  return xr.DataArray(
    np.where(later, np.asarray(values, np.float32), np.float32(np.nan)),
    {"input": list(letters)},
    ("input", "source_layer", "source_head", "layer", "head"),
    attrs={"long_name": "projection kernel", "units": "dimensions"},
  )


def _texts(tokenizer, pairs) -> dict[str, tuple[str, np.ndarray]]:
  """What the prompts and answers say."""
  rows = zip(pairs.clean, pairs.lengths, strict=True)
  texts = {
    "clean": [tokenizer.decode(row[:n].tolist()) for row, n in rows],
    "answer": [tokenizer.decode([i]) for i in pairs.answer.tolist()],
    "foil": [tokenizer.decode([i]) for i in pairs.foil.tolist()],
  }
  return {name: ("example", np.array(text)) for name, text in texts.items()}
