"""Are the config.json files of each public family read as they are meant?"""

import dataclasses
import json

import numpy as np
import pytest
from fixture_folders import (
  ABSENT,
  COMPUTED,
  FIXTURES,
  change_config,
  change_tensors,
)
from one_line import refusal

from headjax.models import huggingface
from headjax.models.families import FAMILIES, fitting
from headjax.models.load import load_model
from headjax.models.rotary import Scaling

SLIDING, FULL = "sliding_attention", "full_attention"


def config_of(folder):
  return huggingface.read_folder(folder)[0]


def assert_same(before, after):
  assert before.keys() == after.keys()
  for name, array in before.items():
    np.testing.assert_array_equal(array, after[name])


@pytest.mark.parametrize(
  ("name", "changes", "windows"),
  [
    ("qwen2", {}, (0, 4, 4)),
    ("qwen2", {"use_sliding_window": False}, (0, 0, 0)),
    ("qwen2", {"layer_types": None, "max_window_layers": 2}, (0, 0, 4)),
    ("qwen2", {"layer_types": None, "max_window_layers": 0}, (4, 4, 4)),
    ("qwen2", {"layer_types": None, "max_window_layers": ABSENT}, (0, 0, 0)),
    ("qwen2", {"layer_types": [SLIDING, FULL, SLIDING]}, (4, 0, 4)),
    ("qwen2", {"sliding_window": ABSENT}, (0, 4096, 4096)),
    ("mistral", {}, (3, 3, 3)),
    ("mistral", {"sliding_window": None}, (0, 0, 0)),
    ("mistral", {"sliding_window": ABSENT}, (4096,) * 3),
    ("gemma2", {"layer_types": ABSENT}, (3, 0, 3)),
    ("gemma2", {"layer_types": [FULL] * 3, "sliding_window": None}, (0,) * 3),
  ],
)
def test_windows_are_those_of_the_layers_that_slide(
  copy, name, changes, windows
):
  assert config_of(change_config(copy(name), **changes)).windows == windows


def test_gemma_s_caps_are_absent_only_where_they_are_null(copy):
  folder = copy("gemma2")
  assert config_of(folder).score_cap == 2.0
  change_config(folder, attn_logit_softcapping=None)
  change_config(folder, final_logit_softcapping=ABSENT)
  config = config_of(folder)
  assert config.score_cap is None and config.logit_cap == 30.0
  assert config.score_dim == 7 and config.embed_scale == 24**0.5


def test_old_names_of_neox_rotary_fields_are_read(copy):
  folder = change_config(
    copy("neox"), rope_parameters=ABSENT, rotary_pct=0.4, rotary_emb_base=300
  )
  config = config_of(folder)
  assert (config.rotary_fraction, config.rotary_theta) == (0.4, 300.0)
  assert config.rotary_width == 2
  change_config(folder, rotary_pct=ABSENT, rotary_emb_base=ABSENT)
  with refusal("rotary_fraction: got 1 of 6 coordinates"):  # a quarter
    config_of(folder)


def test_old_and_new_names_of_scaled_rotary_angles_agree(copy):
  folder = copy("llama3")
  found = config_of(folder)
  assert found.rotary_scaling == Scaling("llama3", 4.0, 0.5, 2.0, 16)
  rope = json.loads((folder / "config.json").read_text())["rope_parameters"]
  rope["type"] = rope.pop("rope_type")
  theta = rope.pop("rope_theta")
  change_config(
    folder, rope_parameters=ABSENT, rope_theta=theta, rope_scaling=rope
  )
  assert config_of(folder) == found


def test_either_name_of_neox_unembedding_is_read(copy):
  folder = copy("neox")
  _, before = huggingface.read_folder(folder)

  def rename(tensors):
    tensors["lm_head.weight"] = tensors.pop("embed_out.weight")

  change_tensors(folder, rename)
  assert_same(before, huggingface.read_folder(folder)[1])

  def twice(tensors):
    tensors["embed_out.weight"] = tensors["lm_head.weight"].copy()

  change_tensors(folder, twice)
  with refusal(str(folder), "lm_head.weight", "embed_out.weight"):
    huggingface.read_folder(folder)


def test_buffers_of_old_files_are_ignored(copy):
  folder = copy("neox")
  _, before = huggingface.read_folder(folder)

  def add(tensors):
    start = "gpt_neox.layers.1.attention."
    tensors[start + "bias"] = np.ones((1, 1, 8, 8), bool)
    tensors[start + "masked_bias"] = np.array(-1e9, np.float32)
    tensors[start + "rotary_emb.inv_freq"] = np.ones(2, np.float32)

  change_tensors(folder, add)
  assert_same(before, huggingface.read_folder(folder)[1])


LLAMA3 = {
  "rope_type": "llama3", "rope_theta": 50.0, "factor": 4.0,
  "low_freq_factor": 0.5, "high_freq_factor": 2.0,
  "original_max_position_embeddings": 16,
}  # fmt: skip


@pytest.mark.parametrize(
  ("name", "changes", "parts"),
  [
    ("neox", {"hidden_act": "swish"}, ("hidden_act", "'swish'", "gelu_new")),
    ("neox", {"hidden_size": 25}, ("hidden_size", "got 25", "multiple of 4")),
    ("neox", {"use_parallel_residual": 1}, ("use_parallel_residual", "bool")),
    (
      "neox",
      {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}},
      ("rope_parameters.rope_type", "'dynamic'", "linear, llama3"),
    ),
    (
      "neox",
      {"rope_parameters": {"partial_rotary_factor": 1.5}},
      ("rotary_fraction", "1.5"),
    ),
    ("qwen2", {"layer_types": [FULL] * 2}, ("layer_types", "3 layers")),
    ("qwen2", {"layer_types": ["chunked"] * 3}, ("layer_types", "chunked")),
    ("qwen2", {"sliding_window": None}, ("sliding_window", "None")),
    (
      "qwen2",
      {"max_window_layers": -1, "layer_types": None},
      ("max_window_layers", "-1"),
    ),
    ("mistral", {"layer_types": [FULL] * 3}, ("layer_types", "full_att")),
    ("mistral", {"sliding_window": 0}, ("sliding_window", "got 0")),
    (
      "gemma2",
      {"use_bidirectional_attention": True},
      ("use_bidirectional_attention", "True"),
    ),
    (
      "gemma2",
      {"attn_logit_softcapping": -1.0},
      ("attn_logit_softcapping", "-1.0"),
    ),
    ("gemma2", {"hidden_activation": "relu"}, ("hidden_activation", "'relu'")),
    ("gemma2", {"query_pre_attn_scalar": 0}, ("query_pre_attn_scalar", "0")),
    ("olmo", {"clip_qkv": "8"}, ("clip_qkv", "'8'")),
    ("olmo", {"head_dim": 8}, ("head_dim", "got 8", "expected 6")),
    ("olmoe", {"num_experts_per_tok": 9}, ("experts_per_token", "9 of")),
    ("olmoe", {"norm_topk_prob": "yes"}, ("norm_topk_prob", "'yes'")),
    ("olmoe", {"num_experts": 10**9}, ("all their experts", "3000000000")),
    (
      "llama3",
      {"rope_parameters": LLAMA3 | {"low_freq_factor": 2.0}},
      ("rotary_scaling.low", "2.0"),
    ),
    (
      "llama3",
      {"rope_parameters": LLAMA3 | {"attention_factor": 0.5}},
      ("rope_parameters.attention_factor", "0.5"),
    ),
    (
      "llama3",
      {"rope_parameters": {"full_attention": LLAMA3}},
      ("rope_parameters.full_attention",),
    ),
    (
      "llama3",
      {"rope_parameters": {"partial_rotary_factor": 0.5}},
      ("rope_parameters.partial_rotary_factor", "0.5"),
    ),
    (
      "llama3",
      {"quantization_config": {"bits": 4}},
      ("quantization_config", "bits"),
    ),
  ],
)
def test_unusable_configs_are_refused(copy, name, changes, parts):
  folder = change_config(copy(name), **changes)
  with refusal(*parts):
    huggingface.read_folder(folder)


@pytest.mark.parametrize(
  ("name", "changes", "parts"),
  [
    ("neox", {"attention_bias": False}, ("attention.dense.bias", "none")),
    (
      "neox_sequential",
      {"tie_word_embeddings": False},
      ("embed_out.weight", "no tensor", "(41, 24)"),
    ),
    ("qwen2", {"head_dim": 8}, ("k_proj.bias", "(12,)", "(16,)")),
    (
      "gemma2",
      {"num_key_value_heads": 4},
      ("k_proj.weight", "(20, 24)", "(40, 24)"),
    ),
    (
      "olmo2",
      {"architectures": ["OlmoForCausalLM"]},
      ("post_attention_layernorm.weight", "expected none"),
    ),
    (
      "olmoe",
      {"num_experts": 6},
      ("layers.0.mlp.experts.5.down_proj.weight", "no tensor"),
    ),
    (
      "olmoe",
      {"num_experts": 4},
      ("layers.0.mlp.experts.4.down_proj.weight", "expected none"),
    ),
  ],
)
def test_configs_that_contradict_the_tensors_are_refused(
  copy, name, changes, parts
):
  folder = change_config(copy(name), **changes)
  with refusal(str(folder), *parts):
    huggingface.read_folder(folder)


def test_one_nan_in_one_expert_is_found(copy):
  def spoil(tensors):
    tensors["model.layers.1.mlp.experts.3.up_proj.weight"][2, 3] = np.nan

  folder = change_tensors(copy("olmoe"), spoil)
  with refusal("olmoe: W_in", "1 of", "NaN"):
    load_model(folder)


def test_a_missing_expert_is_named(copy):
  name = "model.layers.2.mlp.experts.1.gate_proj.weight"
  folder = change_tensors(copy("olmoe"), lambda tensors: tensors.pop(name))
  with refusal(str(folder), name, "no tensor", "(28, 24)"):
    huggingface.read_folder(folder)


@pytest.mark.parametrize("name", COMPUTED)
def test_what_a_family_writes_it_reads_again(name):
  config = config_of(FIXTURES / name)
  family = fitting(config)
  assert not family.differences(config)
  # It also says the values that another model of the family may have.
  for field, value in (("norm_eps", 0.3), ("n_layers", config.n_layers)):
    changed = dataclasses.replace(config, **{field: value})
    fits = field == "n_layers" or config.norm != "layernorm_bare"
    assert (not family.differences(changed)) == fits
  assert family.architecture in FAMILIES
