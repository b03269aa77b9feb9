"""What the benchmarks measure with: matrix rate, compile time, memory."""

import pathlib
import time

import jax
import jax.numpy as jnp

from headjax.models.compiling import fast_jit

_COMPILE_EVENTS = (
  "/jax/core/compile/jaxpr_trace_duration",
  "/jax/core/compile/jaxpr_to_mlir_module_duration",
  "/jax/core/compile/backend_compile_duration",
)


class MatrixRate:
  """The rate of a large matrix product, in multiply-adds a second.

  Of float32, unless told otherwise, it is that of the full precision.
  """

  def __init__(self, size: int = 2048, dtype: str = "float32"):
    self.size = size
    with jax.default_matmul_precision("highest"):
      self.product = fast_jit(jnp.matmul)
      self.matrix = jnp.ones((size, size), dtype) / size
      self.product(self.matrix, self.matrix).block_until_ready()

  def measure(self, seconds: float = 1.5) -> float:
    """The rate over about that many seconds of products."""
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
      self.product(self.matrix, self.matrix).block_until_ready()
      n += 1
    return n * self.size**3 / (time.perf_counter() - start)


class Compilations:
  """The programs compiled inside a `with` block."""

  def __init__(self):
    self.events = []

  def __enter__(self):
    jax.monitoring.register_event_duration_secs_listener(self._listen)
    return self

  def __exit__(self, *exc):
    jax.monitoring.unregister_event_duration_listener(self._listen)

  def _listen(self, event: str, duration: float, **labels):
    if event in _COMPILE_EVENTS:
      self.events.append((event, labels.get("fun_name", ""), duration))

  def seconds(self, name: str = "") -> float:
    """Tracing, lowering and compiling of the programs of that name."""
    return sum(s for _, fun, s in self.events if name in str(fun))

  def count(self, name: str) -> int:
    """How often a program of that name was compiled."""
    last = _COMPILE_EVENTS[-1]
    return sum(e == last and name in str(fun) for e, fun, _ in self.events)


class PeakMemory:
  """How far the resident memory rose inside a `with` block (Linux)."""

  def __enter__(self):
    # Writing 5 makes the kernel forget the peak so far.
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    self.before = _status("VmRSS")
    return self

  def __exit__(self, *exc):
    self.n_bytes = _status("VmHWM") - self.before


def _status(field: str) -> int:
  """A field of the process's status, in bytes."""
  for line in pathlib.Path("/proc/self/status").read_text().splitlines():
    if line.startswith(field + ":"):
      return int(line.split()[1]) * 1024
  raise OSError(f"/proc/self/status has no {field}")
