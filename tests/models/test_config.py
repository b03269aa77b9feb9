"""Is every impossible architecture refused in one line that names the field?"""

import dataclasses

import pytest
from helpers import GPT2, LLAMA, PUBLIC, SCREENING

from headjax.models.config import ModelConfig
from headjax.models.rotary import Scaling


@pytest.mark.parametrize(
  "config, field, value",
  [
    (GPT2, "n_layers", 0),
    (GPT2, "n_heads", 0),
    (GPT2, "d_model", -1),
    (GPT2, "d_head", 0),
    (GPT2, "d_vocab", 0),
    (GPT2, "d_vocab", 2**31),
    (GPT2, "d_mlp", 2**31),
    (GPT2, "windows", (0, 0, 2**31)),
    (GPT2, "n_ctx", 0),
    (GPT2, "n_kv_heads", 0),
    (GPT2, "n_kv_heads", 3),
    (GPT2, "n_kv_heads", 8),
    (GPT2, "d_mlp", 0),
    (GPT2, "d_mlp", -4),
    (GPT2, "norm", "batchnorm"),
    (GPT2, "positions", "alibi"),
    (GPT2, "mlp", "tanh"),
    (LLAMA, "d_head", 5),
    (LLAMA, "windows", (3, 3)),
    (LLAMA, "windows", (0, -1, 0)),
    (LLAMA, "windows", ()),
    (GPT2, "norm_at", "post"),
    (GPT2, "rotary_fraction", 0.5),
    (LLAMA, "rotary_fraction", 0.0),
    (LLAMA, "rotary_fraction", 1.5),
    (LLAMA, "rotary_fraction", 0.5),  # 3 of 6 coordinates
    (LLAMA, "score_cap", 0.0),
    (LLAMA, "logit_cap", -1.0),
    (LLAMA, "score_dim", 0),
    (LLAMA, "qkv_clip", -1.0),
    (LLAMA, "embed_scale", 0.0),
    (LLAMA, "experts_per_token", 2),
    (LLAMA, "experts_normed", True),
    (PUBLIC["olmoe"], "experts_per_token", 6),
    (PUBLIC["olmoe"], "experts_per_token", 0),
    (PUBLIC["olmoe"], "mlp", "gelu"),
    (PUBLIC["olmoe"], "mlp_bias", True),
    (PUBLIC["gemma2"], "parallel", True),
    (PUBLIC["olmo"], "norm_at", "both"),
    (GPT2, "rotary_scaling", Scaling("linear", 2.0)),
    (SCREENING, "logit_cap", 30.0),
    (SCREENING, "qk_norm", True),
  ],
)
def test_bad_field_is_refused_by_name(config, field, value):
  with pytest.raises(ValueError, match=f"^{field}: got ") as error:
    dataclasses.replace(config, **{field: value})
  assert "\n" not in str(error.value)
  assert "expected" in str(error.value)


def test_mlp_without_width_and_width_without_mlp_are_refused():
  with pytest.raises(ValueError, match="^d_mlp: "):
    dataclasses.replace(GPT2, mlp="none")
  assert dataclasses.replace(GPT2, mlp="none", d_mlp=0).d_mlp == 0


def test_config_is_hashable_and_equal_by_value():
  assert hash(GPT2) == hash(dataclasses.replace(GPT2))
  assert GPT2 != LLAMA


def test_unset_fields_mean_full_attention_and_one_kv_head_a_query_head():
  config = ModelConfig(2, 6, 8, 4, 8, 10, 5)
  assert config.n_kv_heads == 6
  assert config.windows == (0, 0)
  assert config.group_size == 1
  assert dataclasses.replace(config, n_kv_heads=2).group_size == 3
