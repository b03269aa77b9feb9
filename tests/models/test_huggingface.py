"""Which folders are refused, and does the message name what is wrong?"""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
from fixture_folders import change_config, change_tensors
from one_line import refusal

from headjax.models import huggingface

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def change_index(folder, change):
  path = folder / INDEX
  content = json.loads(path.read_text())
  change(content["weight_map"])
  path.write_text(json.dumps(content))


def raw_file(path, header, n_bytes):
  """A safetensors file with any header, true or not."""
  text = json.dumps(header).encode()
  data = len(text).to_bytes(8, "little") + text + bytes(n_bytes)
  path.write_bytes(data)


def test_prefix_of_gpt2_names_is_optional(copy):
  folder = copy("gpt2_tied")
  _, before = huggingface.read_folder(folder)

  def strip(tensors):
    for name in list(tensors):
      tensors[name.removeprefix("transformer.")] = tensors.pop(name)

  change_tensors(folder, strip)
  _, after = huggingface.read_folder(folder)
  assert before.keys() == after.keys()
  for name, array in before.items():
    np.testing.assert_array_equal(array, after[name])


def test_both_prefixes_at_once_are_refused(copy):
  folder = copy("gpt2_tied")
  change_tensors(
    folder,
    lambda t: t.update({"wte.weight": t["transformer.wte.weight"].copy()}),
  )
  with refusal(str(folder), "both with and without"):
    huggingface.read_folder(folder)


def test_buffers_and_tied_unembeddings_are_ignored(copy):
  folder = copy("gpt2_tied")
  _, before = huggingface.read_folder(folder)

  def add(tensors):
    tensors["transformer.h.0.attn.bias"] = np.ones((1, 1, 16, 16), bool)
    tensors["transformer.h.2.attn.masked_bias"] = np.array(-1e4, np.float32)
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].copy()

  change_tensors(folder, add)
  _, after = huggingface.read_folder(folder)
  assert before.keys() == after.keys()


def test_untied_model_needs_its_unembedding(copy):
  folder = copy("gpt2_untied")
  change_tensors(folder, lambda tensors: tensors.pop("lm_head.weight"))
  with refusal("lm_head.weight", "no tensor", "(61, 24)"):
    huggingface.read_folder(folder)


@pytest.mark.parametrize(
  ("dtype", "tolerance"),
  [
    (np.float64, 0),
    (np.float16, 1e-3),
    (ml_dtypes.bfloat16, 8e-3),
  ],
)
def test_stored_types_are_cast_to_float32(copy, dtype, tolerance):
  folder = copy("llama_kv1")
  _, before = huggingface.read_folder(folder)

  def cast(tensors):
    for name in tensors:
      tensors[name] = tensors[name].astype(dtype)

  change_tensors(folder, cast)
  _, after = huggingface.read_folder(folder)
  for name, array in before.items():
    assert after[name].dtype == np.float32
    np.testing.assert_allclose(after[name], array, rtol=tolerance, atol=1e-7)
  assert tolerance == 0 or any(
    (after[name] != array).any() for name, array in before.items()
  )


def test_float64_weights_keep_their_digits(copy):
  folder = copy("llama_kv1")
  fine = 1 + 2.0**-40

  def refine(tensors):
    gain = tensors["model.norm.weight"]
    tensors["model.norm.weight"] = np.full(gain.shape, fine)

  change_tensors(folder, refine)
  _, weights = huggingface.read_folder(folder, "float64")
  assert (weights["final_norm_gain"] == fine).all()


def test_integer_weights_are_refused_by_name(copy):
  folder = copy("llama_kv1")
  change_tensors(
    folder,
    lambda t: t.update({"model.norm.weight": np.ones(24, np.int32)}),
  )
  with refusal("model.norm.weight", "type I32", "BF16, F16, F32, F64"):
    huggingface.read_folder(folder)


@pytest.mark.parametrize("architectures", [["BertModel"], [], None, [1], "x"])
def test_unsupported_architectures_list_the_supported(copy, architectures):
  folder = copy("llama_kv1")
  change_config(folder, architectures=architectures)
  parts = ("GPT2LMHeadModel, GPTNeoXForCausalLM, LlamaForCausalLM",)
  with refusal("architectures", *(parts if architectures != "x" else ())):
    huggingface.read_folder(folder)


@pytest.mark.parametrize(
  ("name", "changes", "parts"),
  [
    ("llama_kv1", {"hidden_act": "gelu"}, ("hidden_act", "'gelu'", "silu")),
    ("llama_kv1", {"hidden_size": "24"}, ("hidden_size", "'24'")),
    ("llama_kv1", {"hidden_size": -24}, ("hidden_size", "-24", "positive")),
    ("llama_kv1", {"num_attention_heads": 0}, ("num_attention_heads", "0")),
    ("llama_kv1", {"vocab_size": None}, ("vocab_size", "None")),
    ("llama_kv1", {"rms_norm_eps": float("nan")}, ("rms_norm_eps", "nan")),
    ("llama_kv1", {"num_hidden_layers": 10**9}, ("number of layers",)),
    ("llama_kv1", {"num_key_value_heads": 3}, ("n_kv_heads", "got 3")),
    (
      "llama_kv1",
      {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
      ("rope_scaling.low_freq_factor", "None"),
    ),
    (
      "llama_kv1",
      {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}},
      ("rope_parameters", "'yarn'"),
    ),
    (
      "llama_kv1",
      {"rope_scaling": {"type": "linear"}},
      ("rope_scaling.factor",),
    ),
    (
      "llama_kv1",
      {"rope_parameters": {"rope_theta": 10**400}},
      ("rope_theta", "positive"),
    ),
    ("gpt2_tied", {"activation_function": "tanh"}, ("'tanh'", "gelu_new")),
    ("gpt2_tied", {"scale_attn_weights": False}, ("scale_attn_weights",)),
    (
      "gpt2_tied",
      {"scale_attn_by_inverse_layer_idx": True},
      ("scale_attn_by_inverse_layer_idx", "True", "False"),
    ),
    ("gpt2_tied", {"n_head": 5}, ("n_embd", "got 24", "a multiple of 5")),
  ],
)
def test_unusable_configs_are_refused(copy, name, changes, parts):
  folder = copy(name)
  change_config(folder, **changes)
  with refusal(*parts):
    huggingface.read_folder(folder)


@pytest.mark.parametrize(
  ("name", "changes", "parts"),
  [
    (
      "gpt2_tied",
      {"n_positions": 32},
      ("wpe.weight", "got shape (16, 24)", "expected shape (32, 24)"),
    ),
    (
      "gpt2_tied",
      {"n_layer": 4},
      ("h.3.attn.c_attn.bias", "no tensor", "(72,)"),
    ),
    ("gpt2_tied", {"n_layer": 2}, ("h.2.attn.c_attn.bias", "expected none")),
    (
      "llama_kv1",
      {"num_key_value_heads": 2},
      ("layers.0.self_attn.k_proj.weight", "(6, 24)", "(12, 24)"),
    ),
    (
      "llama_kv4",
      {"head_dim": 8},
      ("layers.0.self_attn.k_proj.weight", "(24, 24)", "(32, 24)"),
    ),
    (
      "llama_kv1",
      {"attention_bias": True},
      ("layers.0.self_attn.k_proj.bias", "no tensor"),
    ),
    ("llama_kv1", {"mlp_bias": True}, ("mlp.down_proj.bias", "no tensor")),
    ("llama_kv1", {"tie_word_embeddings": False}, ("lm_head.weight",)),
  ],
)
def test_configs_that_contradict_the_tensors_are_refused(
  copy, name, changes, parts
):
  folder = copy(name)
  change_config(folder, **changes)
  with refusal(str(folder), *parts):
    huggingface.read_folder(folder)


def test_old_and_new_spelling_of_the_rotary_base_agree(copy):
  folder = copy("llama_kv1")
  change_config(folder, rope_parameters=None, rope_theta=777)
  assert huggingface.read_folder(folder)[0].rotary_theta == 777.0
  change_config(folder, rope_theta=None)
  assert huggingface.read_folder(folder)[0].rotary_theta == 10_000.0
  rope = {"rope_type": "default", "rope_theta": 555.0}
  change_config(folder, rope_parameters=rope)
  assert huggingface.read_folder(folder)[0].rotary_theta == 555.0


def test_pickled_weights_are_refused_with_the_way_out(copy):
  folder = copy("llama_kv1")
  (folder / WEIGHTS).rename(folder / "pytorch_model.bin")
  with refusal("pytorch_model.bin", "pickle", "save_pretrained"):
    huggingface.read_folder(folder)


def test_folder_without_weights_is_refused(copy):
  folder = copy("llama_kv1")
  (folder / WEIGHTS).unlink()
  with refusal(str(folder), "no weights", WEIGHTS):
    huggingface.read_folder(folder)


def test_folder_without_config_is_refused(tmp_path):
  with refusal(str(tmp_path), "no config.json"):
    huggingface.read_folder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 10**5])
def test_damaged_config_is_refused(copy, content):
  folder = copy("llama_kv1")
  (folder / "config.json").write_bytes(content)
  with refusal(str(folder / "config.json")):
    huggingface.read_folder(folder)


@pytest.mark.parametrize("keep", [0, 7, 100, 2000, -1])
def test_truncated_weights_are_refused(copy, keep):
  folder = copy("llama_kv1")
  path = folder / WEIGHTS
  path.write_bytes(path.read_bytes()[:keep])
  with refusal(str(path), "safetensors file"):
    huggingface.read_folder(folder)


@pytest.mark.parametrize(
  "entry",
  [
    {"dtype": "F32", "shape": [24], "data_offsets": [0, 48]},
    {"dtype": "F32", "shape": [12], "data_offsets": [0, 96]},
    {"dtype": "F32", "shape": [24], "data_offsets": [0, 2**62]},
    {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 96]},
    {"dtype": "F32", "shape": [24], "data_offsets": [96, 0]},
    {"dtype": "F32", "shape": [-24], "data_offsets": [0, 96]},
    {"dtype": "float", "shape": [24], "data_offsets": [0, 96]},
  ],
)
def test_header_that_lies_is_refused(copy, entry):
  folder = copy("llama_kv1")
  raw_file(folder / WEIGHTS, {"model.norm.weight": entry}, 96)
  with refusal(str(folder / WEIGHTS), "undamaged"):
    huggingface.read_folder(folder)


def test_header_length_beyond_the_file_is_refused(copy):
  folder = copy("llama_kv1")
  path = folder / WEIGHTS
  path.write_bytes((2**40).to_bytes(8, "little") + path.read_bytes()[8:])
  with refusal(str(path)):
    huggingface.read_folder(folder)


def test_missing_shard_is_named(copy):
  folder = copy("llama_kv2")
  shard = "model-00002-of-00003.safetensors"
  (folder / shard).unlink()
  with refusal(INDEX, shard):
    huggingface.read_folder(folder)


@pytest.mark.parametrize("shard", ["../outside.safetensors", "/etc/passwd", ""])
def test_shards_outside_the_folder_are_refused(copy, shard):
  folder = copy("llama_kv2")
  shutil.copy(
    folder / "model-00001-of-00003.safetensors",
    folder.parent / "outside.safetensors",
  )
  change_index(folder, lambda m: m.update({"model.norm.weight": shard}))
  with refusal(INDEX, f"no file {shard}"):
    huggingface.read_folder(folder)


def test_tensor_only_in_the_index_is_named(copy):
  folder = copy("llama_kv2")
  change_index(
    folder,
    lambda m: m.update({"ghost": "model-00001-of-00003.safetensors"}),
  )
  with refusal("tensor ghost", "absent from model-00001"):
    huggingface.read_folder(folder)


def test_tensor_only_in_a_shard_is_named(copy):
  folder = copy("llama_kv2")
  change_index(folder, lambda m: m.pop("model.norm.weight"))
  with refusal("tensor model.norm.weight", "unlisted"):
    huggingface.read_folder(folder)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": {"a": 1}}', "[]"])
def test_malformed_index_is_refused(copy, content):
  folder = copy("llama_kv2")
  (folder / INDEX).write_text(content)
  with refusal(str(folder / INDEX)):
    huggingface.read_folder(folder)
