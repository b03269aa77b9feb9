"""The models of the core experiments: small, many, and trained in memory.

These are not launched by `headjax.train`: an experiment's script trains all its
models in one program and measures them.

  python experiments/cores_markov.py --out results/markov
  python experiments/cores_modular.py --config modular --out results/modular

Source: paper D and its code: blocks that norm the stream after every half and
  no norm at the end, sizes, data, seeds, batches and weight decay. Unlike the
  paper's, weights start as GPT-2's. The chain is learned without dropout; that
  of the sums is on what attention and MLPs add to the stream, not inside them.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import base

# Sums: the core grows after grokking only where the gains decay as well and
# there is dropout, as in the paper (docs/cores.md).
SUMS = {
  "optimizer.weight_decay": 1.0,
  "train.decaying": "all",
  "train.dropout": 0.1,
}

VARIANTS: dict[str, dict[str, Any]] = {
  # The paper: accuracy 0.75, rank 3, overlap at chance (0.047), correlations
  # above 0.93, eigenvalues within 1% of 0.75 +- 0.25i and 0.5.
  "markov": {
    "seeds": (0, 100, 200),
    "model.n_layers": 1,
    "model.d_model": 64,
    "model.d_head": 16,
    "model.d_mlp": 256,
    "model.d_vocab": 4,
    "model.n_ctx": 31,
    "model.embed_scale": 50.0,
    "optimizer.peak": 1e-3,
    "optimizer.final": 1e-3,
    "train.batch_size": 64,
    "train.epochs": 40,
  },
  "modular": SUMS
  | {
    "seeds": (1031, 1032, 1033),
    "p": 53,
    "train.epochs": 20_000,
    "train.branch": 900,
  },
  # Smaller in modulus, depth and width, for minutes on two cores.
  "modular-small": SUMS
  | {
    "seeds": (1031, 1032, 1033),
    "p": 31,
    "model.n_layers": 1,
    "model.d_model": 64,
    "model.d_head": 16,
    "model.d_mlp": 256,
    "train.batch_size": 160,
    "train.epochs": 6000,
    "train.branch": 2000,
    "train.every": 200,
  },
  # Grokking times, one layer: every p at weight decay 1 with the whole
  # training part as the batch, every weight decay at p = 53. Some delays are
  # shorter than 300 epochs, so there is a look every 20.
  "sweep": SUMS
  | {
    "seeds": tuple(range(42, 54)),
    "model.n_layers": 1,
    "sweep.p": (31, 43, 53, 61, 79, 89, 101),
    "sweep.weight_decay": (0.3, 0.5, 1.0, 1.5, 2.0, 3.0),
    "train.epochs": 30_000,
    "train.every": 20,
  },
  "sweep-cpu": SUMS
  | {
    "seeds": (42, 43, 44),
    "model.n_layers": 1,
    "sweep.p": (31, 43, 53, 61),
    "sweep.weight_decay": (0.5, 1.0, 2.0, 3.0),
    "train.epochs": 30_000,
    "train.every": 20,
  },
}


def get_config(variant: str = "markov") -> ConfigDict:
  """The config of one experiment, locked.

  Raises:
    ValueError: there is no such experiment.
  """
  if variant not in VARIANTS:
    known = ", ".join(VARIANTS)
    raise ValueError(f"variant: got {variant!r}; expected one of {known}")
  config = ConfigDict()
  config.name = variant
  config.seeds = (0,)  # one a model; any integers
  config.p = 53  # modulus; the sweep has its own
  config.model = _model()
  config.optimizer = _optimizer()
  config.train = _train()
  config.sweep = ConfigDict()
  config.sweep.p = ()  # moduli
  config.sweep.weight_decay = ()  # at p
  config.lock()
  base.override(config, VARIANTS[variant])
  return config


def _model() -> ConfigDict:
  """Fields of a ModelConfig that are not at their default."""
  model = ConfigDict()
  model.n_layers = 2
  model.n_heads = 4
  model.d_model = 128
  model.d_head = 32
  model.d_mlp = 512
  model.d_vocab = 0  # 0: the modulus
  model.n_ctx = 2
  model.norm_at = "stream"
  model.embed_scale = 1.0  # 50 is a token embedding of size 1 at the start
  model.mlp = "relu"
  model.tied = False
  return model


def _optimizer() -> ConfigDict:
  """AdamW at a constant rate, without clipping."""
  optimizer = ConfigDict()
  optimizer.peak = 1e-3
  optimizer.final = 1e-3  # equal to the peak
  optimizer.warmup = 0
  optimizer.weight_decay = 0.0
  optimizer.beta_2 = 0.999
  optimizer.clip = 0.0
  return optimizer


def _train() -> ConfigDict:
  """How long, and in which portions."""
  train = ConfigDict()
  # Sequences a step, at most: a third of what p = 53 is trained on.
  train.batch_size = 468
  train.epochs = 20_000  # at most
  train.decaying = "matrices"  # that weight decay is for, or "all" parameters
  train.dropout = 0.0  # of what attention and MLPs add to the stream
  train.branch = 0  # epoch from which a copy goes on without weight decay
  train.every = 100  # epochs between measurements, up to `train.early`
  train.early = 2000
  train.late = 500  # epochs between measurements, afterwards
  return train
