"""Are a head's spaces those of the map that the forward applies?"""

import dataclasses

import numpy as np
import pytest
from helpers import GPT2, LLAMA, PUBLIC, SCREENING, random_model
from one_line import refusal

from headjax.geometry.designs import ReadDesign, WriteDesign
from headjax.models import spaces

BASE = dataclasses.replace(GPT2, d_model=32, d_head=8, d_key=None)
LAYERS = (3, 4, 5)
CONFIGS = {
  "gpt2": GPT2,
  "llama": LLAMA,
  "screening": SCREENING,
  "gain from 1": PUBLIC["gemma2"],
  "bare norm": PUBLIC["olmo"],
  "norm behind": PUBLIC["olmo2"],
  "block": dataclasses.replace(BASE, read=ReadDesign("block")),
  "rotated block": dataclasses.replace(BASE, read=ReadDesign("block", LAYERS)),
  "one block": dataclasses.replace(BASE, read=ReadDesign("block", (), "K")),
  "block norm": dataclasses.replace(BASE, read=ReadDesign("block_norm")),
  "rotated norm": dataclasses.replace(
    BASE, read=ReadDesign("block_norm", LAYERS)
  ),
}
CASES = [
  (name, letter, folded)
  for name, config in CONFIGS.items()
  for letter in spaces.inputs(config)
  for folded in (False, True)
]


def slow_map(config, raw, letter, layer, head, folded):
  """`[d_head, d_model]`: the input as a linear map of the stream, by columns.

  The norm's scale is taken as 1, in all blocks alike.
  """
  read, frames = config.read, None
  if read.kind != "free":
    frames = read.dense(config.sizes)[layer]
  columns = []
  for x in np.eye(config.d_model):
    if letter in read.blocks:
      y = normed(config, raw, frames[head].T @ x, layer, head, folded)
      columns.append(y @ raw[f"W_{letter}"][layer, head])
      continue
    if read.kind == "block_norm":
      parts = [
        normed(config, raw, frame.T @ x, layer, block, folded)
        for block, frame in enumerate(frames)
      ]
      y = np.concatenate(parts)
    else:
      y = normed(config, raw, x, layer, None, folded)
    W = raw[f"W_{letter}"]
    group = config.n_heads // W.shape[2]
    columns.append(y @ W[layer, :, head // group])
  return np.array(columns).T


def normed(config, raw, x, layer, block, folded):
  if not folded or config.norm == "none" or config.norm_at == "output":
    return x
  if config.norm in ("layernorm", "layernorm_bare"):
    x = x - x.mean()
  if config.norm == "layernorm_bare":
    return x
  if block is None:
    one = config.norm == "rmsnorm_offset"
    return x * (one + raw["attn_norm_gain"][layer])
  return x * raw["block_norm_gain"][layer, block]


def projector(rows):
  """Onto the space of the rows; independent of the package's decomposition."""
  return np.linalg.pinv(rows, rcond=1e-9) @ rows


@pytest.mark.parametrize(("name", "letter", "folded"), CASES)
def test_a_read_space_is_that_of_the_map_from_the_stream(
  name, letter, folded, x64
):
  config = CONFIGS[name]
  model, raw = random_model(config)
  found = spaces.read_spaces(model.params, config, letter, folded=folded)
  assert found.rank.shape == (config.n_layers, config.n_heads)
  for layer in range(config.n_layers):
    for head in range(config.n_heads):
      rows = slow_map(config, raw, letter, layer, head, folded)
      columns = np.asarray(found.columns)[layer, head]
      np.testing.assert_allclose(
        columns @ columns.T, projector(rows), atol=1e-9, rtol=0
      )
      assert found.rank[layer, head] == np.linalg.matrix_rank(rows, 1e-9)


def test_centring_takes_a_dimension_from_a_block_reader(x64):
  model, _ = random_model(CONFIGS["block"])
  args = model.params, model.config, "Q"
  assert (spaces.read_spaces(*args, folded=True).rank == 7).all()
  assert (spaces.read_spaces(*args, folded=False).rank == 8).all()


def test_a_write_space_is_that_of_the_rows_of_the_output_matrix(x64):
  rotated = WriteDesign("rotated", 0.3, LAYERS, live=5)
  for config in (GPT2, dataclasses.replace(BASE, write=rotated)):
    model, raw = random_model(config)
    dense = raw.get("W_O")
    if dense is None:
      dense = config.write.dense(config.sizes)
    found = np.asarray(spaces.write_spaces(model.params, config).columns)
    for at in np.ndindex(config.n_layers, config.n_heads):
      np.testing.assert_allclose(
        found[at] @ found[at].T, projector(dense[at]), atol=1e-9, rtol=0
      )


def test_an_input_that_the_model_lacks_is_refused():
  model, _ = random_model(GPT2, dtype="float32")
  with refusal("letter: got 'G'", "K, Q, V"):
    spaces.read_spaces(model.params, GPT2, "G", folded=True)
