"""How is a model trained? Frozen values, checked on construction."""

import dataclasses

from headjax.checks import check, check_choice


@dataclasses.dataclass(frozen=True)
class Optimizer:
  """AdamW with a linear warm-up and a cosine decay.

  Attributes:
    steps: of the whole run; the last has the final rate.
    peak: learning rate after the warm-up.
    final: learning rate of the last step.
    warmup: steps; 0 starts at the peak.
    weight_decay: of matrices and embeddings, not of biases, gains and scales.
    beta_1: decay of the mean gradient.
    beta_2: decay of the mean squared gradient.
    epsilon: added to the root of the mean square.
    clip: largest global norm of a gradient; 0 clips nothing.

  Source: paper A, appendix C, and nanoGPT.
  """

  steps: int
  peak: float = 3e-4
  final: float = 3e-5
  warmup: int = 1000
  weight_decay: float = 0.1
  beta_1: float = 0.9
  beta_2: float = 0.95
  epsilon: float = 1e-8
  clip: float = 1.0

  def __post_init__(self):
    _positive("train.steps", self.steps)
    for field in ("peak", "epsilon"):
      _positive(f"optimizer.{field}", getattr(self, field))
    for field in ("final", "warmup", "weight_decay", "clip"):
      got = getattr(self, field)
      check(got >= 0, f"optimizer.{field}", got, "0 or more", "change it")
    check(
      self.warmup < self.steps - 1 or not self.warmup,
      "optimizer.warmup",
      self.warmup,
      f"at most train.steps - 2 = {self.steps - 2}, or 0",
      "warm up faster or train longer",
    )
    for field in ("beta_1", "beta_2"):
      got = getattr(self, field)
      check(0 <= got < 1, f"optimizer.{field}", got, "0 to 1", "change it")


@dataclasses.dataclass(frozen=True)
class Arithmetic:
  """How a step is computed; but for dtype, no number depends on it.

  Attributes:
    batch_size: sequences in a step.
    accumulate: portions that a batch is worked through in.
    dtype: of activations and products; parameters stay float32.
    remat: "none", or "block", where the backward pass computes each block
      anew.
    unroll: layers in one turn of the scan.
    loss_rows: rows of logits in a device's memory at once.
  """

  batch_size: int
  accumulate: int = 1
  dtype: str = "float32"
  remat: str = "none"
  unroll: int = 1
  loss_rows: int = 2048

  def __post_init__(self):
    for field in ("batch_size", "accumulate", "unroll", "loss_rows"):
      _positive(f"train.{field}", getattr(self, field))
    check_choice("train.dtype", self.dtype, ("bfloat16", "float32", "float64"))
    check_choice("train.remat", self.remat, ("block", "none"))
    check(
      self.batch_size % self.accumulate == 0,
      "train.accumulate",
      self.accumulate,
      f"a divisor of train.batch_size = {self.batch_size}",
      "change one of them",
    )


def _positive(field, got):
  check(got > 0, field, got, "more than 0", "change it")
