"""Which public architectures are there? One row each."""

from headjax.checks import check
from headjax.models import family_windows, layout_tables
from headjax.models.config import ModelConfig
from headjax.models.config_fields import Fields
from headjax.models.family import Family
from headjax.models.family_parts import (
  EMBED_SCALE,
  GROUPED,
  GROUPED_HEADS,
  WHOLE_HEADS,
  Entry,
  Part,
  activation,
  attention_bias,
  rotary,
)

_GELU = {
  "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
  "relu": "relu",
}  # fmt: skip
_GATED = {"silu": "swiglu", "gelu_pytorch_tanh": "geglu", "gelu_new": "geglu"}
_SILU = activation("hidden_act", _GATED, "silu")
_RMS = {"norm": "rmsnorm", "positions": "rotary"}
_NO_BIAS = {"out_bias": False, "mlp_bias": False}


def _sizes(n_ctx: int, *, tied: bool = False) -> tuple[Entry, ...]:
  """What the configs since Llama have in common."""
  return (
    Entry("n_layers", "num_hidden_layers", int),
    Entry("n_heads", "num_attention_heads", int),
    Entry("d_model", "hidden_size", int),
    Entry("d_mlp", "intermediate_size", int),
    Entry("d_vocab", "vocab_size", int),
    Entry("n_ctx", "max_position_embeddings", int, n_ctx),
    Entry("tied", "tie_word_embeddings", bool, tied),
  )


def _eps(default: float, name: str = "rms_norm_eps") -> Entry:
  return Entry("norm_eps", name, float, default)


_CLIP = Entry("qkv_clip", "clip_qkv", float, None, null=True)
_ALL = (
  Family(
    "GPT2LMHeadModel", "gpt2",
    (
      Entry("n_layers", "n_layer", int), Entry("n_heads", "n_head", int),
      Entry("d_model", "n_embd", int), Entry("d_vocab", "vocab_size", int),
      Entry("n_ctx", "n_positions", int), _eps(1e-5, "layer_norm_epsilon"),
      Entry("tied", "tie_word_embeddings", bool, True),
    ),
    (
      activation("activation_function", _GELU, "gelu_new"), WHOLE_HEADS,
      Part(
        lambda fields, found: {
          "d_mlp": fields.get("n_inner", int, 4 * found["d_model"])
        },
        lambda config: {"n_inner": config.d_mlp},
      ),
    ),
    {},
    layout_tables.gpt2,
    refused={
      "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
      "add_cross_attention": False,
    },
    prefix="transformer.",
  ),
  Family(
    "GPTNeoXForCausalLM", "gpt_neox",
    _sizes(2048)
    + (
      _eps(1e-5, "layer_norm_eps"),
      Entry("parallel", "use_parallel_residual", bool, True),
    ),
    (
      activation("hidden_act", _GELU, "gelu"), WHOLE_HEADS,
      attention_bias(True), rotary("rotary_emb_base", "rotary_pct", 0.25),
    ),
    {"positions": "rotary"},
    layout_tables.neox,
    aliases={"lm_head.weight": "embed_out.weight"},
  ),
  Family(
    "LlamaForCausalLM", "llama",
    _sizes(2048) + (_eps(1e-6), Entry("mlp_bias", "mlp_bias", bool, False)),
    (_SILU, GROUPED_HEADS, attention_bias(False), rotary()),
    _RMS,
    layout_tables.llama,
  ),
  Family(
    "Qwen2ForCausalLM", "qwen2",
    _sizes(32768) + (_eps(1e-6),),
    (_SILU, GROUPED_HEADS, rotary(), family_windows.UPPER),
    _RMS | _NO_BIAS,
    layout_tables.llama,
  ),
  Family(
    "MistralForCausalLM", "mistral",
    _sizes(131072) + (_eps(1e-6),),
    (_SILU, GROUPED_HEADS, rotary(), family_windows.EVERY),
    _RMS | _NO_BIAS | {"qkv_bias": False},
    layout_tables.llama,
    refused={"layer_types": None},
  ),
  Family(
    "Gemma2ForCausalLM", "gemma2",
    _sizes(8192, tied=True)
    + (
      _eps(1e-6), Entry("score_dim", "query_pre_attn_scalar", int, 256),
      Entry("score_cap", "attn_logit_softcapping", float, 50.0, null=True),
      Entry("logit_cap", "final_logit_softcapping", float, 30.0, null=True),
    ),
    (
      activation("hidden_activation", _GATED, "gelu_pytorch_tanh"),
      GROUPED_HEADS, attention_bias(False), rotary(), EMBED_SCALE,
      family_windows.ALTERNATING,
    ),
    {
      "norm": "rmsnorm_offset", "norm_at": "both", "positions": "rotary",
      "mlp_bias": False,
    },
    layout_tables.gemma2,
    refused={"use_bidirectional_attention": False},
  ),
  Family(
    "OlmoForCausalLM", "olmo",
    _sizes(2048) + (_CLIP,),
    (_SILU, WHOLE_HEADS, GROUPED, attention_bias(False), rotary()),
    {
      "norm": "layernorm_bare", "norm_eps": 1e-5, "positions": "rotary",
      "mlp_bias": False,
    },
    layout_tables.llama,
  ),
  Family(
    "Olmo2ForCausalLM", "olmo2",
    _sizes(2048) + (_eps(1e-5),),
    (_SILU, WHOLE_HEADS, GROUPED, attention_bias(False), rotary()),
    _RMS | {"norm_at": "output", "qk_norm": True, "mlp_bias": False},
    layout_tables.olmo2,
  ),
  Family(
    "OlmoeForCausalLM", "olmoe",
    _sizes(4096)
    + (
      _eps(1e-5), _CLIP, Entry("n_experts", "num_experts", int, 64),
      Entry("experts_per_token", "num_experts_per_tok", int, 8),
      Entry("experts_normed", "norm_topk_prob", bool, False),
    ),
    (_SILU, WHOLE_HEADS, GROUPED, attention_bias(False), rotary()),
    _RMS | {"qk_norm": True, "mlp_bias": False},
    layout_tables.olmoe,
  ),
)  # fmt: skip
FAMILIES = {family.architecture: family for family in _ALL}


def named(fields: Fields) -> Family:
  """The family that a config.json names.

  Raises:
    ValueError: it names none of them, or several.
  """
  names = [str(name) for name in fields.get("architectures", list, [])]
  check(
    len(names) == 1 and names[0] in FAMILIES,
    fields.label("architectures"),
    ", ".join(names) or "none",
    "one of " + ", ".join(FAMILIES),
    "use a model of a supported architecture",
  )
  return FAMILIES[names[0]]


def fitting(config: ModelConfig, architecture: str | None = None) -> Family:
  """A family whose config.json says exactly what a config has.

  Args:
    config: of the model.
    architecture: of the family; None takes the first that fits.

  Raises:
    ValueError: there is none, saying what is different in the nearest.
  """
  if architecture is not None:
    check(
      architecture in FAMILIES,
      "architecture",
      repr(architecture),
      "one of " + ", ".join(FAMILIES),
      "choose one of them",
    )
  names = FAMILIES if architecture is None else (architecture,)
  found = {name: FAMILIES[name].differences(config) for name in names}
  nearest = min(found, key=lambda name: ("" in found[name], len(found[name])))
  check(
    not found[nearest],
    "config",
    f"none of {nearest}, the nearest: {'; '.join(found[nearest].values())}",
    "one that a public architecture has",
    "save it as a checkpoint of a run instead",
  )
  return FAMILIES[nearest]
