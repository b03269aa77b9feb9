"""Can there be such a model? Each impossible ModelConfig is refused by field.

Apart from the config itself, so that a reader of its fields is not delayed by
them.
"""

from headjax.checks import check, check_choice, fail
from headjax.geometry.designs import ReadDesign

CHOICES = {
  "attention": ("screening", "softmax"),
  "norm": ("layernorm", "layernorm_bare", "none", "rmsnorm", "rmsnorm_offset"),
  "norm_at": ("both", "input", "output", "stream"),
  "positions": ("learned", "none", "rotary"),
  "mlp": ("geglu", "gelu", "gelu_tanh", "none", "relu", "swiglu"),
}
_COUNTS = (
  "n_layers", "n_heads", "n_kv_heads", "d_model", "d_head", "d_vocab", "n_ctx",
  "d_key", "screening_window",
)  # fmt: skip
_LARGEST = 2**31 - 1  # that an array's index can hold
_POSITIVE = (
  "rotary_theta", "embed_scale", "qkv_clip", "score_dim", "score_cap",
  "logit_cap",
)  # fmt: skip
# What a screening model does without, or settles in its own way.
_SCREENING = {
  "norm": "none", "norm_at": "input", "parallel": False, "positions": "none",
  "mlp": "none", "qkv_bias": False, "qk_norm": False, "qkv_clip": None,
  "score_dim": None, "score_cap": None, "logit_cap": None, "embed_scale": 1.0,
  "out_bias": False, "tied": True, "causal": True, "value_adapter": 0,
}  # fmt: skip


def check_config(config) -> None:
  """Fails unless a ModelConfig describes a model.

  Raises:
    ValueError: naming the field.
  """
  for field in _COUNTS:
    got = getattr(config, field)
    check(1 <= got <= _LARGEST, field, got, f"1 to {_LARGEST}", "correct it")
  for field, choices in CHOICES.items():
    check_choice(field, getattr(config, field), choices)
  for field in _POSITIVE:
    got = getattr(config, field)
    check(got is None or got > 0, field, got, "a positive number", "correct it")
  _check_sizes(config)
  _check_positions(config)
  _check_block(config)
  _check_experts(config)
  _check_designs(config)
  _check_attention(config)


def _check_sizes(config):
  check(
    (config.d_mlp == 0) == (config.mlp == "none")
    and 0 <= config.d_mlp <= _LARGEST,
    "d_mlp",
    f"{config.d_mlp} with mlp={config.mlp!r}",
    f"0 when mlp is 'none', else 1 to {_LARGEST}",
    "set both or neither",
  )
  if config.n_heads % config.n_kv_heads:
    fail(
      "n_kv_heads",
      config.n_kv_heads,
      f"a divisor of n_heads={config.n_heads}",
      "let every K/V head serve the same number of query heads",
    )
  check(
    len(config.windows) == config.n_layers
    and 0 <= min(config.windows) <= max(config.windows) <= _LARGEST,
    "windows",
    config.windows,
    f"{config.n_layers} lengths of 0 to {_LARGEST}",
    "give one window a layer, 0 for full attention",
  )


def _check_positions(config):
  whole = config.rotary_fraction == 1
  if config.positions != "rotary":
    for field, plain in (
      ("rotary_fraction", whole),
      ("rotary_scaling", config.rotary_scaling.kind == "none"),
    ):
      check(
        plain,
        field,
        f"{getattr(config, field)} with positions={config.positions!r}",
        "its default, or positions='rotary'",
        "leave it out",
      )
    return
  check(
    0 < config.rotary_fraction <= 1,
    "rotary_fraction",
    config.rotary_fraction,
    "above 0, at most 1",
    "give the share of a head's coordinates that turn",
  )
  width = config.rotary_width
  check(
    width >= 2 and width % 2 == 0,
    "d_head" if whole else "rotary_fraction",
    config.d_head if whole else f"{width} of {config.d_head} coordinates",
    "an even width with rotary positions",
    "use another width, or positions='learned'",
  )


def _check_block(config):
  plain = config.mlp != "none" and config.norm_at == "input"
  check(
    plain or not config.parallel,
    "parallel",
    f"True with mlp={config.mlp!r} and norm_at={config.norm_at!r}",
    "an MLP, and norms at the input",
    "set parallel=False",
  )
  check(
    config.norm_at == "input" or config.norm not in ("none", "layernorm_bare"),
    "norm_at",
    f"{config.norm_at!r} with norm={config.norm!r}",
    "'input', or a norm with a gain",
    "set norm_at='input'",
  )


def _check_experts(config):
  n, some = config.n_experts, config.experts_per_token
  check(
    0 < some <= n if n else n == some == 0,
    "experts_per_token",
    f"{some} of n_experts={n}",
    "1 to n_experts, or 0 of 0",
    "correct one of them",
  )
  for field, right, expected in (
    ("experts_normed", n or not config.experts_normed, "False"),
    ("mlp", not n or config.gated, "'swiglu' or 'geglu'"),
    ("mlp_bias", not (n and config.mlp_bias), "False"),
  ):
    check(
      right,
      field,
      f"{getattr(config, field)!r} with n_experts={n}",
      expected,
      "set it so",
    )


def _check_designs(config):
  config.write.check(config.sizes)
  config.read.check(config.sizes)
  free = config.read.kind == "free"
  check(
    free or config.n_kv_heads == config.n_heads,
    "read",
    f"{config.read.kind} readers with {config.n_kv_heads} K/V heads",
    f"n_kv_heads = n_heads = {config.n_heads}",
    "give every head its own keys and values",
  )
  check(
    free or config.norms_input,
    "read",
    f"{config.read.kind} readers with norm_at={config.norm_at!r}",
    "norms at the input",
    "use free readers",
  )
  check(
    config.value_adapter >= 0
    and (not config.value_adapter or "V" not in config.read.blocks),
    "value_adapter",
    f"{config.value_adapter} with {config.read.kind} readers",
    "0, or a width with values that read the whole stream",
    "use free readers, or no adapter",
  )


def _check_attention(config):
  if config.attention == "softmax":
    check(
      config.d_key == config.d_head,
      "d_key",
      config.d_key,
      f"d_head = {config.d_head} in softmax attention",
      "set d_key with d_head, or to None",
    )
    return
  wanted = _SCREENING | {
    "n_kv_heads": config.n_heads,
    "windows": (0,) * config.n_layers,
    "read": ReadDesign(),
  }
  for field, value in wanted.items():
    got = getattr(config, field)
    expected = f"{value!r} with attention='screening'"
    check(got == value, field, repr(got), expected, "set it so")
  check(
    config.d_key >= 2,
    "d_key",
    config.d_key,
    "at least 2 with attention='screening'",
    "leave room for the plane that turns with the position",
  )
