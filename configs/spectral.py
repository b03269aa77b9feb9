"""Small models in which a circuit forms while one looks: retrieval of a key.

  get_config("mini")      2 layers of 4 heads, 64 wide
  get_config("tiny")      3 layers of 8 heads, 128 wide
  get_config("small")     4 layers of 8 heads, 192 wide
  get_config("medium")    6 layers of 12 heads, 192 wide
  get_config("shift")     tiny; from step 1000 on text without keys
  get_config("ts-51m")    the source's model on TinyStories

The text is the toy language with a code in every sequence, which is asked for
later (headjax/data/keys.py). Checkpoints are dense where the circuit forms. A
tiny run takes about six minutes of a core. Three seeds of each size, then what
they are for:

  python experiments/train_all.py --config configs/spectral.py \
    --variants mini,tiny,small,medium --seeds 0,1,2 --out runs/spectral
  python experiments/spectral_probe.py --probe keys --length 128 --series \
    --models runs/spectral/* --rows 256 --out results/spectral-series

Whether the circuit outlives other data:

  python -m headjax.train --config=configs/spectral.py:shift \
    --workdir=runs/spectral-shift
  python experiments/spectral_probe.py --probe keys --length 128 --series \
    --models runs/spectral-shift --shift 1000 --rows 256 \
    --out results/spectral-shift

At full size, `runs/ts-51m` needs an accelerator, and the stories as a folder
of tokens (experiments/prepare_corpus.py) with GPT-2's vocabulary.

Source: paper B, for "ts-51m": sizes, batch, optimiser, and a code in a tenth of
  the sequences. Its steps, context and warm-up are ours; it counts the loss of
  the answers twice, which is not done here.
"""

from ml_collections import ConfigDict

from configs import base

TINY = {
  "model.n_layers": 3,
  "model.n_heads": 8,
  "model.d_model": 128,
  "model.d_head": 16,
  "model.d_mlp": 512,
  "model.d_vocab": 512,
  "model.n_ctx": 128,
  "model.positions": "rotary",
  "data.corpus": "keys",
  "train.steps": 2000,
  "train.batch_size": 16,
  "train.unroll": 3,
  "train.evaluate_every": 100,
  "train.evaluate_sequences": 64,
  "train.checkpoint_steps": (
    0, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400, 500, 600, 700, 800, 1000,
    1250, 1500, 1750, 2000,
  ),
  "optimizer.peak": 3e-3,
  "optimizer.final": 3e-4,
  "optimizer.warmup": 50,
}  # fmt: skip
WIDE = TINY | {"model.d_model": 192, "model.d_mlp": 768}
VARIANTS = {
  "mini": TINY
  | {
    "model.n_layers": 2,
    "model.n_heads": 4,
    "model.d_model": 64,
    "model.d_mlp": 256,
    "train.unroll": 2,
  },
  "tiny": TINY,
  "small": WIDE
  | {"model.n_layers": 4, "model.d_head": 24, "train.unroll": 4},
  "medium": WIDE
  | {"model.n_layers": 6, "model.n_heads": 12, "train.unroll": 6},
  "shift": TINY | {"data.corpus": "keys-then-toy"},
  # Seeds 42, 271, 149, 256, 123 and 314 in the source.
  "ts-51m": {
    "model.n_layers": 8,
    "model.n_heads": 16,
    "model.d_model": 512,
    "model.d_head": 32,
    "model.d_mlp": 2048,
    "model.n_ctx": 256,
    "data.corpus": "tinystories",
    "data.code_share": 0.1,
    "train.steps": 10_000,
    "train.batch_size": 64,
    "train.evaluate_every": 500,
    "train.checkpoint_steps": (
      0, 50, 100, 200, 400, 600, 800, 1000, 1500, 2000, 3000, 4000, 6000, 8000,
      10_000,
    ),
    "optimizer.peak": 1e-3,
    "optimizer.final": 1e-4,
    "optimizer.warmup": 200,
    "optimizer.weight_decay": 0.5,
  },
}  # fmt: skip


def get_config(variant: str = "tiny") -> ConfigDict:
  """The config of one model.

  Args:
    variant: one of VARIANTS.

  Raises:
    ValueError: there is no such model.
  """
  if variant not in VARIANTS:
    known = ", ".join(VARIANTS)
    raise ValueError(f"variant: got {variant!r}; expected one of {known}")
  config = base.get_config()
  base.override(config, VARIANTS[variant])
  config.name = variant
  return config
