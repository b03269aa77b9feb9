"""Does a saved folder hold the same bits in the same layout as the original?"""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny_folder
from fixture_folders import COMPUTED, FIXTURES
from helpers import GPT2, LLAMA, PUBLIC, SCREENING, random_model
from one_line import refusal
from safetensors import safe_open

from headjax.geometry.designs import WriteDesign
from headjax.models.load import load_model
from headjax.models.saving import save_model

# Heads that together are as wide as the stream, as GPT-2 wants them.
SQUARE = dataclasses.replace(GPT2, d_model=20)


def tensors(folder):
  found = {}
  for path in folder.glob("*.safetensors"):
    with safe_open(path, framework="np") as file:
      found |= {name: file.get_tensor(name) for name in file.keys()}
  return found


def assert_same_bits(a, b):
  for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
    assert x.dtype == y.dtype
    assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.parametrize("name", COMPUTED)
def test_tensors_and_config_come_back(name, tmp_path):
  loaded = load_model(FIXTURES / name)
  save_model(loaded, tmp_path / "saved")
  before, after = tensors(FIXTURES / name), tensors(tmp_path / "saved")
  assert before.keys() == after.keys()
  for tensor, array in before.items():
    np.testing.assert_array_equal(array, after[tensor])
  again = load_model(tmp_path / "saved")
  assert again.config == loaded.config
  assert_same_bits(again.params, loaded.params)
  first, second = (
    json.loads((folder / "config.json").read_text())
    for folder in (FIXTURES / name, tmp_path / "saved")
  )
  for field in ("architectures", "model_type"):
    assert first[field] == second[field]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_family_of_the_other_tests_can_be_saved(name, tmp_path):
  """Shapes whose heads are not as wide as the stream, where that may be."""
  config = PUBLIC[name]
  if "olmo" in name or name == "neox":
    width = config.d_head * config.n_heads
    config = dataclasses.replace(config, d_model=width)
  if name == "neox":
    config = dataclasses.replace(config, norm_eps=1e-6)
  if name == "gemma2":
    config = dataclasses.replace(config, embed_scale=16**0.5)
  if name == "olmo":
    config = dataclasses.replace(config, norm_eps=1e-5)
  model, _ = random_model(config, dtype="float32")
  save_model(model, tmp_path)
  again = load_model(tmp_path)
  assert again.config == config
  assert_same_bits(again.params, model.params)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_other_types_keep_their_bits(dtype, tmp_path):
  model, _ = random_model(LLAMA, dtype=dtype)
  save_model(model, tmp_path)
  assert_same_bits(load_model(tmp_path, dtype=dtype).params, model.params)
  config = json.loads((tmp_path / "config.json").read_text())
  assert config["torch_dtype"] == dtype


def test_float64_keeps_its_bits(x64, tmp_path):
  model, _ = random_model(SQUARE)
  save_model(model, tmp_path)
  assert_same_bits(load_model(tmp_path, dtype="float64").params, model.params)


def test_weights_are_split_at_a_size(tmp_path):
  model, _ = random_model(LLAMA, dtype="float32")
  save_model(model, tmp_path, shard_bytes=9000)
  shards = sorted(tmp_path.glob("*.safetensors"))
  assert [shard.name for shard in shards] == [
    f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
    for i in range(len(shards))
  ]
  sizes = [sum(x.nbytes for x in tensors_of(shard)) for shard in shards]
  assert len(shards) > 3 and max(sizes) <= 9000
  index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
  assert index["metadata"]["total_size"] == sum(sizes) == 4 * model.n_params
  assert_same_bits(load_model(tmp_path).params, model.params)


def tensors_of(shard):
  with safe_open(shard, framework="np") as file:
    return [file.get_tensor(name) for name in file.keys()]


def test_a_tensor_larger_than_a_shard_has_one_of_its_own(tmp_path):
  model, _ = random_model(SQUARE, dtype="float32")
  save_model(model, tmp_path, shard_bytes=1)
  assert all(len(tensors_of(p)) == 1 for p in tmp_path.glob("*.safetensors"))
  assert_same_bits(load_model(tmp_path).params, model.params)


def test_the_tokenizer_goes_along(tmp_path):
  loaded = load_model(tiny_folder.write(tmp_path / "tiny"))
  given = dataclasses.replace(loaded.tokenizer, bos=3)
  model = dataclasses.replace(loaded, tokenizer=given)
  save_model(model, tmp_path / "saved")
  again = load_model(tmp_path / "saved").tokenizer
  assert again.digest == given.digest and again.bos == 3


def test_the_architecture_can_be_chosen(tmp_path):
  """Mistral without a window is Llama; both say the same."""
  model, _ = random_model(LLAMA, dtype="float32")
  save_model(model, tmp_path, architecture="MistralForCausalLM")
  config = json.loads((tmp_path / "config.json").read_text())
  assert config["model_type"] == "mistral" and config["sliding_window"] is None
  assert load_model(tmp_path).config == LLAMA


@pytest.mark.parametrize(
  ("config", "parts"),
  [
    (SCREENING, ()),
    (GPT2, ("GPT2LMHeadModel", "d_head = 5, there 4")),
    (
      dataclasses.replace(SQUARE, causal=False),
      ("GPT2LMHeadModel", "causal = False, there True"),
    ),
    (
      dataclasses.replace(LLAMA, windows=(3, 5, 0)),
      ("windows = (3, 5, 0), there ",),
    ),
    (
      dataclasses.replace(SQUARE, write=WriteDesign("axis", 0.5)),
      ("GPT2LMHeadModel", "write = WriteDesign(kind='axis'"),
    ),
  ],
)
def test_a_model_that_no_family_has_is_refused(config, parts, tmp_path):
  model, _ = random_model(config, dtype="float32")
  with refusal("config: got none of", *parts):
    save_model(model, tmp_path / "saved")
  assert not (tmp_path / "saved").exists()


def test_an_unknown_architecture_and_a_full_folder_are_refused(tmp_path):
  model, _ = random_model(SQUARE, dtype="float32")
  with refusal("architecture", "'BertModel'", "GPTNeoXForCausalLM"):
    save_model(model, tmp_path, architecture="BertModel")
  with refusal("shard_bytes: got 0"):
    save_model(model, tmp_path, shard_bytes=0)
  (tmp_path / "config.json").write_text("{}")
  with refusal(f"folder {tmp_path}", "config.json", "empty"):
    save_model(model, tmp_path)
  mixed = jax.tree.map(lambda x: x, model.params)
  mixed["embed"]["W_E"] = mixed["embed"]["W_E"].astype(jnp.bfloat16)
  mixed = dataclasses.replace(model, params=mixed)
  with refusal("params", "bfloat16", "one type"):
    save_model(mixed, tmp_path / "other")
