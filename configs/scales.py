"""How does a row keep its meaning in a small model?

Widths shrink with the width that they belong to; a width that was chosen to
match another row's parameters is chosen anew.
"""

from ml_collections import ConfigDict

from configs import base

# Scale -> sizes. The shift leads to bases with which the tiny model's heads
# share no directions; member n_layers + l would.
SCALES = {
  "tiny": {
    "model.n_layers": 4,
    "model.n_heads": 8,
    "model.d_model": 128,
    "model.d_head": 16,
    "model.d_vocab": 512,
    "model.n_ctx": 128,
    "model.screening_window": 64,
    "model.read.shift": 8,
    "data.corpus": "toy",
    "train.steps": 800,
    "train.batch_size": 16,
    "train.unroll": 4,
    "train.evaluate_every": 100,
    "train.checkpoint_steps": (0, 100, 200, 400, 800),
    "optimizer.peak": 3e-3,
    "optimizer.final": 3e-4,
    "optimizer.warmup": 50,
  },
  "small": {
    "model.n_layers": 6,
    "model.n_heads": 12,
    "model.d_model": 192,
    "model.d_head": 16,
    "model.read.shift": 6,
    "train.steps": 1400,
    "train.batch_size": 4,
    "train.unroll": 6,
    "train.evaluate_every": 100,
    "train.evaluate_sequences": 32,
    "train.checkpoint_steps": (0, 100, 350, 700, 1400),
    "train.checkpoint_minutes": 5.0,
    "optimizer.peak": 1e-3,
    "optimizer.final": 1e-4,
    "optimizer.warmup": 50,
  },
}


# The same, but a layer sees no further than the token before: what stands apart
# is handed on from layer to layer, where one layer would do all the work.
SCALES["relay"] = SCALES["tiny"] | {"model.windows": (2, 2, 2, 2)}


def shrink(config: ConfigDict, scale: str) -> None:
  """Turns a config at full size into one of its small models, in place.

  Args:
    config: at full size.
    scale: "tiny", "small" or "relay".

  Raises:
    ValueError: there is no such scale, or the design does not exist at it.
  """
  if scale not in SCALES:
    known = ", ".join(SCALES)
    raise ValueError(f"scale: got {scale!r}; expected one of {known}")
  model = config.model
  if scale == "relay" and model.attention == "screening":
    raise ValueError(
      f"variant: got {config.name!r}; screening heads have windows of their"
      " own; use @tiny or @small"
    )
  full = model.copy_and_resolve_references()
  base.override(config, SCALES[scale])
  if model.write.kind == "routed":
    model.n_heads = _routed_heads(config.name, full.n_heads, model)
  if full.d_mlp == 4 * full.d_model:
    model.d_mlp = 4 * model.d_model
  elif full.d_mlp:
    model.d_mlp = matched_d_mlp(model)
  model.value_adapter = full.value_adapter * model.d_model // full.d_model
  if full.write.live is not None:
    model.write.live = full.write.live * model.d_head // full.d_head


def matched_d_mlp(model: ConfigDict) -> int:
  """The MLP that makes up for the parameters that a design saves.

  A free head has 4 maps of d_model x d_head, biases aside; a block reader's are
  d_head x d_head and a frozen write is no parameter. A hidden unit of the MLP
  has 2 d_model + 1 parameters.

  Args:
    model: the `model` section, with its designs and with heads that tile
      d_model.

  Returns:
    The hidden width whose parameters come closest to those of free, learned
    heads with a hidden width of 4 d_model.
  """
  blocks = model.read.restricted if model.read.kind == "block" else ""
  whole = model.d_model**2
  saved = len(blocks) * (whole - model.n_heads * model.d_head**2)
  if model.write.kind != "learned":
    saved += whole
  return 4 * model.d_model + round(saved / (2 * model.d_model + 1))


def _routed_heads(variant: str, full_heads: int, model: ConfigDict) -> int:
  """As many heads for a block of the stream as at full size."""
  blocks = model.d_model // model.d_head
  heads, rest = divmod(full_heads * blocks, 12)
  if rest:
    raise ValueError(
      f"variant: got {variant!r}; {full_heads} heads share 12 blocks, and"
      f" nothing like it fits {blocks}; use @small or the full size"
    )
  return heads
