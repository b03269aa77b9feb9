"""Does a head raise the tokens that it reads? The eigenvalues of its circuit.

From a token that a head attends to, to the logits, the head is the linear map
W_E W_V W_O W_U, `[vocab, vocab]`, with norms and biases left out. Eigenvalues
with positive real parts are tokens that make themselves likelier: copying.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from headjax.models import weights
from headjax.models.decoder import Decoder
from headjax.models.load import LoadedModel


def copying_scores(model: LoadedModel) -> np.ndarray:
  """The sum of the circuit's eigenvalues over the sum of their moduli.

  The map has the rank of the head, and the eigenvalues of a product are those
  of its factors in another order: those of W_O (W_U W_E) W_V, which is only as
  wide as the head. Gates of screening heads, adapters and norms, also those of
  the attention output, are left out; scales of the embedding do not matter.

  Args:
    model: from `load_model`.

  Returns:
    `[layer, head]`, from -1 to 1; 1 if every eigenvalue is positive. NaN for
    a head without any.

  Source: Elhage et al. (2021), A Mathematical Framework for Transformer
    Circuits, "Copying / primarily positive eigenvalues".
  """
  with jax.default_matmul_precision("highest"):
    small = np.asarray(_small(model.model, model.params), np.float64)
  values = np.linalg.eigvals(small)
  with np.errstate(invalid="ignore"):
    return values.sum(-1).real / np.abs(values).sum(-1)


@functools.partial(jax.jit, static_argnames=("model",))
def _small(model: Decoder, params) -> jax.Array:
  """`[layer, head, d_head, d_head]`, with the circuit's eigenvalues."""
  config = model.config
  out = model.apply({"params": params}, method=Decoder.directions)
  # Screening embeds with the rows of its tied unembedding, but for a scale.
  embedding = out if config.tied else weights.get(params, "W_E")
  through = out.T @ embedding

  def of_layer(matrices):
    W_V, W_O = matrices
    return jnp.einsum("hed,dD,hDf->hef", W_O, through, W_V)

  names = ("W_V", "W_O")
  matrices = [weights.per_query_head(params, config, name) for name in names]
  return jax.lax.map(of_layer, tuple(matrices))
