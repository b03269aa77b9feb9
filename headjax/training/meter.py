"""How fast does a run go? Between two lines of metrics, pauses left out."""

import contextlib
import time
from collections.abc import Iterator

from headjax.models.config import ModelConfig
from headjax.training.peak import peak_flops
from headjax.training.utilisation import step_madds


class Meter:
  """Rates since the last time that it was asked for them.

  The first time there are none: what came before is mostly compilation.
  """

  def __init__(self, config: ModelConfig, batch_size: int):
    """Takes the sizes of a step; measures the rate of a CPU, in 0.2 s."""
    self._tokens = batch_size * config.n_ctx
    self._flops = 2 * step_madds(config, batch_size)
    self._peak = peak_flops()
    self._start: float | None = None
    self._step, self._waited_s, self._paused_s = 0, 0.0, 0.0

  @contextlib.contextmanager
  def pause(self) -> Iterator[None]:
    """Leaves the time of the block out: evaluations and checkpoints."""
    start = time.perf_counter()
    yield
    self._paused_s += time.perf_counter() - start

  def rates(self, step: int, waited_s: float) -> dict[str, float | None]:
    """What was reached since the last call.

    Args:
      step: of which the result is there by now.
      waited_s: seconds that the run has waited for batches, in total.

    Returns:
      `tokens_per_s`; `mfu`, the share of the machine's floating-point
      operations that the model needed; `input_share`, that of the time in which
      the run waited for batches. None where it is not known.
    """
    now = time.perf_counter()
    names = ("tokens_per_s", "mfu", "input_share")
    rates = dict.fromkeys(names)
    if self._start is not None:
      elapsed = now - self._start - self._paused_s
      per_s = (step - self._step) / elapsed
      rates["tokens_per_s"] = round(per_s * self._tokens, 1)
      if self._peak:
        rates["mfu"] = round(per_s * self._flops / self._peak, 4)
      rates["input_share"] = round((waited_s - self._waited_s) / elapsed, 4)
    self._start, self._step, self._waited_s = now, step, waited_s
    self._paused_s = 0.0
    return rates
