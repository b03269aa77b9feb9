"""How are the heavy programs compiled? With the fastest matrix products.

On CPUs, XLA now hands matrix products to a library of microkernels (YNN) by
default. At the shapes of a sweep, a few thousand rows of a few hundred
coordinates, its older product (Eigen) was 1.2 to 1.4 times as fast, and a whole
sweep layer 1.05 times, measured side by side on two cores with jaxlib 0.10:
only the many tiny products of attention within a window are slower. Sums stay
with the microkernels.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

_OPTIONS = {
  "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE"
}


@functools.cache
def product_options() -> dict[str, str] | None:
  """Compiler options for the backend in use; None where none are needed."""
  if jax.default_backend() != "cpu":
    return None
  try:
    jax.jit(lambda: 0, compiler_options=_OPTIONS).lower().compile()
  except jax.errors.JaxRuntimeError:  # an XLA without this option
    return None
  return _OPTIONS


class fast_jit:  # noqa: N801, used like jax.jit
  """`jax.jit` with `product_options`, settled at the first call.

  For programs that are called from the host; under another `jit` the outer
  one decides.
  """

  def __init__(
    self, function: Callable[..., Any], static_argnames: Sequence[str] = ()
  ):
    """Wraps a function; nothing is compiled and no backend started yet."""
    functools.update_wrapper(self, function)
    self.function, self.static_argnames = function, tuple(static_argnames)

  @functools.cached_property
  def jitted(self):
    """The jitted function."""
    return jax.jit(
      self.function,
      static_argnames=self.static_argnames,
      compiler_options=product_options(),
    )

  def __call__(self, *args, **kwargs):
    """Calls the compiled program."""
    return self.jitted(*args, **kwargs)
