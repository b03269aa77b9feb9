"""Small random models of every family, in float64 and ready for the oracle."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from headjax.data.pairs import PromptPairs
from headjax.models import weights
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel
from headjax.models.rotary import Scaling

GPT2 = ModelConfig(3, 4, 16, 5, 24, 29, 12)
LLAMA = ModelConfig(
  3, 4, 16, 6, 24, 29, 12,
  n_kv_heads=2, norm="rmsnorm", positions="rotary", mlp="swiglu",
  qkv_bias=False, out_bias=False, mlp_bias=False, tied=False,
)  # fmt: skip
TRACR = ModelConfig(
  3, 2, 16, 5, 24, 29, 12,
  norm="none", mlp="relu", causal=False, tied=False,
)  # fmt: skip
# The stream itself is normed after every half, as in paper D.
POST = dataclasses.replace(GPT2, norm_at="stream", mlp="relu", tied=False)
# Some windows are narrower than `screening_window`, some wider.
SCREENING = ModelConfig(
  3, 4, 20, 5, 0, 29, 12,
  norm="none", positions="none", mlp="none", qkv_bias=False, out_bias=False,
  attention="screening", d_key=3, screening_window=6,
)  # fmt: skip
FAMILIES = {
  "gpt2": GPT2,
  "llama_kv1": dataclasses.replace(LLAMA, n_kv_heads=1),
  "llama_kv2": LLAMA,
  "llama_kv4": dataclasses.replace(LLAMA, n_kv_heads=4),
  "llama_windows": dataclasses.replace(LLAMA, windows=(0, 3, 2)),
  "tracr": TRACR,
}


_ROTARY = dataclasses.replace(LLAMA, windows=(3, 0, 3))
_EXPERTS = dataclasses.replace(
  LLAMA, d_mlp=10, n_experts=5, experts_per_token=2, qk_norm=True
)
# The other public families, every field of theirs at a value that matters.
PUBLIC = {
  "neox": dataclasses.replace(
    GPT2, parallel=True, positions="rotary", rotary_fraction=0.8,
    rotary_theta=50.0, mlp="gelu", tied=False,
  ),
  "qwen2": dataclasses.replace(LLAMA, qkv_bias=True, windows=(0, 3, 3)),
  "llama3": dataclasses.replace(
    LLAMA, n_kv_heads=4, mlp_bias=True, rotary_theta=50.0,
    rotary_scaling=Scaling("llama3", 4.0, 0.5, 1.5, 16),
  ),
  "gemma2": dataclasses.replace(
    _ROTARY, norm="rmsnorm_offset", norm_at="both", mlp="geglu", score_dim=9.0,
    score_cap=1.5, logit_cap=3.0, embed_scale=4.0, tied=True,
    rotary_scaling=Scaling("linear", 2.0),
  ),
  "olmo": dataclasses.replace(
    LLAMA, n_kv_heads=1, norm="layernorm_bare", qkv_clip=0.8
  ),
  "olmo2": dataclasses.replace(LLAMA, norm_at="output", qk_norm=True),
  "olmoe": _EXPERTS,
  "olmoe_normed": dataclasses.replace(
    _EXPERTS, n_kv_heads=4, experts_normed=True, qkv_clip=1.2
  ),
}  # fmt: skip


def random_weights(
  config: ModelConfig, seed: int, scale: float = 0.4
) -> dict[str, np.ndarray]:
  """Weights, biases and norm gains, none of them at its initial value."""
  rng = np.random.default_rng(seed)
  # Windows of about 2 to 12 tokens, and widths that let some keys pass.
  level = {"s_w": 1.0, "s_r": 1.5}
  spread = {"s_w": 1.0, "s_r": 1.0}
  offset = config.norm == "rmsnorm_offset"  # gains are 1 more than stored
  return {
    name: rng.normal(size=shape) * spread.get(name, scale)
    + level.get(name, name.endswith("gain") and not offset)
    for name, shape in weights.shapes(config).items()
  }


def random_model(
  config: ModelConfig, seed: int = 0, scale: float = 0.4, dtype: str = "float64"
) -> tuple[LoadedModel, dict[str, np.ndarray]]:
  """A model with random weights, and the weights for the oracle."""
  raw = random_weights(config, seed, scale)
  params = weights.pack(config, raw, "random")
  params = jax.tree.map(lambda x: jnp.asarray(x, dtype), params)
  return LoadedModel(config, params, None, "random", "0" * 64), raw


def random_tokens(config: ModelConfig, shape, seed: int = 0) -> np.ndarray:
  """Token ids of that shape."""
  return np.random.default_rng(seed).integers(0, config.d_vocab, shape)


def random_pairs(
  config: ModelConfig, lengths, first, seed: int = 0
) -> PromptPairs:
  """Pairs that differ in one token.

  Args:
    config: gives the vocabulary.
    lengths: `[example]`, in tokens.
    first: `[example]` position of the differing token; -1 for none.
    seed: of the tokens.
  """
  lengths, first = np.array(lengths), np.array(first)
  clean = random_tokens(config, (len(lengths), lengths.max()), seed)
  reference = clean.copy()
  for i in np.flatnonzero(first >= 0):
    reference[i, first[i]] = (clean[i, first[i]] + 1 + i) % config.d_vocab
  answer = random_tokens(config, len(lengths), seed + 1)
  foil = (answer + 3) % config.d_vocab
  return PromptPairs(clean, reference, answer, foil, lengths)
