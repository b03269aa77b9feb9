"""What is the shape of a model? One frozen value, checked on construction."""

import dataclasses

from headjax.checks import check, check_choice, fail
from headjax.geometry.designs import ReadDesign, Sizes, WriteDesign

ATTENTIONS = ("screening", "softmax")
NORMS = ("layernorm", "none", "rmsnorm")
POSITIONS = ("learned", "none", "rotary")
MLPS = ("gelu", "gelu_tanh", "none", "relu", "swiglu")
# What a screening model does without, or settles in its own way.
SCREENING = {
  "norm": "none", "positions": "none", "mlp": "none", "qkv_bias": False,
  "out_bias": False, "tied": True, "causal": True, "value_adapter": 0,
}  # fmt: skip


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
    norm: pre-norm of both halves of a block and before the unembedding.
    norm_eps: added to the variance (layernorm) or mean square (rmsnorm).
    positions: a learned table, rotary angles in half-rotation form, or none.
    rotary_theta: base of the rotary frequencies.
    mlp: the nonlinearity ("swiglu" is gated), or "none".
    qkv_bias: whether q, k and v have biases.
    out_bias: whether the attention output has a bias.
    mlp_bias: whether the MLP's matrices have biases.
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
  positions: str = "learned"
  rotary_theta: float = 10_000.0
  mlp: str = "gelu_tanh"
  qkv_bias: bool = True
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

  def __post_init__(self):
    if self.n_kv_heads is None:
      object.__setattr__(self, "n_kv_heads", self.n_heads)
    if self.windows is None:
      object.__setattr__(self, "windows", (0,) * self.n_layers)
    if self.d_key is None:
      object.__setattr__(self, "d_key", self.d_head)
    for field in (
        "n_layers", "n_heads", "n_kv_heads", "d_model", "d_head", "d_vocab",
        "n_ctx", "d_key", "screening_window",
    ):  # fmt: skip
      got = getattr(self, field)
      check(got >= 1, field, got, "at least 1", "set it to a positive integer")
    check_choice("norm", self.norm, NORMS)
    check_choice("positions", self.positions, POSITIONS)
    check_choice("mlp", self.mlp, MLPS)
    check_choice("attention", self.attention, ATTENTIONS)
    self._check_sizes()
    self._check_designs()
    self._check_attention()

  def _check_sizes(self):
    check(
      (self.d_mlp == 0) == (self.mlp == "none") and self.d_mlp >= 0,
      "d_mlp",
      f"{self.d_mlp} with mlp={self.mlp!r}",
      "0 exactly when mlp is 'none'",
      "set both or neither",
    )
    if self.n_heads % self.n_kv_heads:
      fail(
        "n_kv_heads",
        self.n_kv_heads,
        f"a divisor of n_heads={self.n_heads}",
        "let every K/V head serve the same number of query heads",
      )
    if self.positions == "rotary" and self.d_head % 2:
      fail(
        "d_head",
        self.d_head,
        "an even width with rotary positions",
        "use positions='learned' or an even d_head",
      )
    check(
      len(self.windows) == self.n_layers and min(self.windows) >= 0,
      "windows",
      self.windows,
      f"{self.n_layers} non-negative lengths",
      "give one window a layer, 0 for full attention",
    )

  def _check_designs(self):
    self.write.check(self.sizes)
    self.read.check(self.sizes)
    check(
      self.read.kind == "free" or self.n_kv_heads == self.n_heads,
      "read",
      f"{self.read.kind} readers with {self.n_kv_heads} K/V heads",
      f"n_kv_heads = n_heads = {self.n_heads}",
      "give every head its own keys and values",
    )
    check(
      self.value_adapter >= 0
      and (not self.value_adapter or "V" not in self.read.blocks),
      "value_adapter",
      f"{self.value_adapter} with {self.read.kind} readers",
      "0, or a width with values that read the whole stream",
      "use free readers, or no adapter",
    )

  def _check_attention(self):
    if self.attention == "softmax":
      check(
        self.d_key == self.d_head,
        "d_key",
        self.d_key,
        f"d_head = {self.d_head} in softmax attention",
        "set d_key with d_head, or to None",
      )
      return
    wanted = SCREENING | {
      "n_kv_heads": self.n_heads,
      "windows": (0,) * self.n_layers,
      "read": ReadDesign(),
    }
    for field, value in wanted.items():
      got = getattr(self, field)
      expected = f"{value!r} with attention='screening'"
      check(got == value, field, repr(got), expected, "set it so")
    check(
      self.d_key >= 2,
      "d_key",
      self.d_key,
      "at least 2 with attention='screening'",
      "leave room for the plane that turns with the position",
    )

  @property
  def sizes(self) -> Sizes:
    """The sizes that designs have to fit."""
    return Sizes(self.n_layers, self.n_heads, self.d_head, self.d_model)

  @property
  def group_size(self) -> int:
    """Query heads per K/V head."""
    return self.n_heads // self.n_kv_heads
