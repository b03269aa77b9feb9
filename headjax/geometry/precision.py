"""How accurate are the products that geometry rests on?"""

import jax
import jax.numpy as jnp


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
  """A product at the full precision of its dtype on every device.

  Accelerators otherwise round the factors of a float32 product.

  Args:
    a: `[..., rows, inner]`.
    b: `[..., inner, columns]`.

  Returns:
    `[..., rows, columns]`.
  """
  return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
