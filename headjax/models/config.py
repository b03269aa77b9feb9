"""What is the shape of a model? One frozen value, checked on construction."""

import dataclasses

from headjax.geometry.designs import ReadDesign, Sizes, WriteDesign
from headjax.models.consistency import check_config
from headjax.models.rotary import Scaling
from headjax.outline import of_fields, table_of_fields


@dataclasses.dataclass(frozen=True)
class ModelConfig:
  """The architecture of a decoder; hashable, so it may be a static argument.

  Query heads are the unit: with grouped K/V heads, query head `h` reads K/V
  head `h // (n_heads // n_kv_heads)`. Fields left None are settled when the
  value is made; `dataclasses.replace` keeps what was settled.

  Attributes:
    n_layers: blocks.
    n_heads: query heads per layer.
    d_model: width of the residual stream.
    d_head: width of a head; `n_heads * d_head` need not equal `d_model`.
    d_mlp: hidden width of the MLP; 0 iff `mlp` is "none".
    d_vocab: rows of the embedding.
    n_ctx: longest sequence, in tokens.
    n_kv_heads: K/V heads per layer; None means `n_heads`.
    norm: of a block's halves and before the unembedding; "layernorm_bare" has
      no gain and no bias, the gain of "rmsnorm_offset" is 1 more than stored.
    norm_eps: added to the variance (layernorm) or mean square (rmsnorm).
    norm_at: whether a half's "input", its "output" or "both" are normed, or
      the "stream" after it; then there is no norm before the unembedding.
    parallel: whether the MLP reads the stream before the heads wrote to it.
    positions: a learned table, rotary angles in half-rotation form, or none.
    rotary_theta: base of the rotary frequencies.
    rotary_fraction: share of a head's coordinates, the first ones, that turn.
    rotary_scaling: how the frequencies are slowed down for long contexts.
    mlp: the nonlinearity ("swiglu" and "geglu", with the tanh form of GELU,
      are gated), or "none".
    n_experts: MLPs of a layer that a router chooses from; 0: one, no router.
    experts_per_token: how many of them a token uses; 0 without a router.
    experts_normed: whether the weights of the chosen ones sum to 1.
    qkv_bias: whether q, k and v have biases.
    qk_norm: whether q and k of all heads together pass a norm, after the bias.
    qkv_clip: largest absolute value of q, k and v, after that; None: no limit.
    out_bias: whether the attention output has a bias.
    mlp_bias: whether the MLP's matrices have biases.
    score_dim: scores are products over the root of it; None means `d_head`.
    score_cap: scores are bent to stay below it, by tanh; None: they are not.
    logit_cap: the same for logits.
    embed_scale: factor of the token embedding, not of a tied unembedding.
    tied: whether the unembedding is the transposed token embedding.
    causal: False lets every position attend to every valid one.
    windows: per layer, how many tokens a query sees, itself included; 0 means
      all of them. None means 0 in every layer.
    write: where heads write; W_O is a parameter only if it is learned.
    read: what heads read of the stream.
    value_adapter: hidden width of a second, nonlinear path from the
      normalised stream to the values, or 0.
    attention: how queries weigh keys: by softmax, or by screening, where each
      key passes or fails by itself (`headjax.models.screening`).
    d_key: width of q and k; None means `d_head`, the only choice in softmax.
    screening_window: of a screening model: heads whose window is narrower,
      in tokens, also see where a key stands.
  """

  n_layers: int
  n_heads: int
  d_model: int
  d_head: int
  d_mlp: int
  d_vocab: int
  n_ctx: int
  n_kv_heads: int | None = None
  norm: str = "layernorm"
  norm_eps: float = 1e-5
  norm_at: str = "input"
  parallel: bool = False
  positions: str = "learned"
  rotary_theta: float = 10_000.0
  rotary_fraction: float = 1.0
  rotary_scaling: Scaling = Scaling()
  mlp: str = "gelu_tanh"
  n_experts: int = 0
  experts_per_token: int = 0
  experts_normed: bool = False
  qkv_bias: bool = True
  qk_norm: bool = False
  qkv_clip: float | None = None
  score_dim: float | None = None
  score_cap: float | None = None
  logit_cap: float | None = None
  embed_scale: float = 1.0
  out_bias: bool = True
  mlp_bias: bool = True
  tied: bool = True
  causal: bool = True
  windows: tuple[int, ...] | None = None
  write: WriteDesign = WriteDesign()
  read: ReadDesign = ReadDesign()
  value_adapter: int = 0
  attention: str = "softmax"
  d_key: int | None = None
  screening_window: int = 256

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __post_init__(self):
    if self.n_kv_heads is None:
      object.__setattr__(self, "n_kv_heads", self.n_heads)
    if self.windows is None:
      object.__setattr__(self, "windows", (0,) * self.n_layers)
    if self.d_key is None:
      object.__setattr__(self, "d_key", self.d_head)
    check_config(self)

  @property
  def sizes(self) -> Sizes:
    """The sizes that designs have to fit."""
    return Sizes(self.n_layers, self.n_heads, self.d_head, self.d_model)

  @property
  def group_size(self) -> int:
    """Query heads per K/V head."""
    return self.n_heads // self.n_kv_heads

  @property
  def rotary_width(self) -> int:
    """Coordinates of a head that turn with the position."""
    return int(self.d_head * self.rotary_fraction)

  @property
  def score_scale(self) -> float:
    """The factor of a query's product with a key."""
    return (self.score_dim or self.d_head) ** -0.5

  @property
  def gated(self) -> bool:
    """Whether the MLP has a gate."""
    return self.mlp in ("geglu", "swiglu")

  @property
  def norms_input(self) -> bool:
    """Whether the halves of a block norm what they read."""
    return self.norm_at in ("both", "input")

  @property
  def norms_output(self) -> bool:
    """Whether the halves of a block norm what they write."""
    return self.norm_at in ("both", "output")

  @property
  def norms_stream(self) -> bool:
    """Whether the sum of the stream and what a half writes is normed."""
    return self.norm_at == "stream"
