"""How fast could this machine multiply matrices?"""

import statistics
import time

import jax
import jax.numpy as jnp

from headjax.models.compiling import fast_jit

# Dense bfloat16 products, in 1e12 floating-point operations a second, by a part
# of the device's kind. Source: the manufacturers' data sheets.
_KNOWN = {
  "A100": 312,
  "H100": 989,
  "H200": 989,
  "TPU v4": 275,
  "TPU v5 lite": 197,
  "TPU v5e": 197,
  "TPU v5p": 459,
  "TPU v5": 459,
  "TPU v6 lite": 918,
  "TPU v6e": 918,
}
_SIZE = 1024
_REPEATS = 9


def peak_flops() -> float | None:
  """Floating-point operations a second of all devices of all processes.

  That of a CPU is measured, in float32, in about 0.2 s; that of an accelerator
  is its maker's, in bfloat16.

  Returns:
    The rate; None for a device that is not in the table.
  """
  device = jax.devices()[0]
  if device.platform == "cpu":  # its virtual devices share it
    return jax.process_count() * _measured()
  for kind, tera in _KNOWN.items():
    if kind.lower() in device.device_kind.lower():
      return tera * 1e12 * jax.device_count()
  return None


def _measured() -> float:
  here = jax.local_devices()[0]
  x = jax.device_put(jnp.ones((_SIZE, _SIZE), jnp.float32), here)
  product = fast_jit(jnp.matmul)
  product(x, x).block_until_ready()
  times = []
  for _ in range(_REPEATS):
    start = time.perf_counter()
    product(x, x).block_until_ready()
    times.append(time.perf_counter() - start)
  return 2 * _SIZE**3 / statistics.median(times)
