"""Clamps as plain Python: one full forward a patch, edited at every layer.

Nothing of the sweeps is used here, only `run` with `Edits`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from headjax.interventions.metrics import LogitDifference
from headjax.interventions.sweep import at_answer
from headjax.models.decoder import run
from headjax.models.sites import Edit, Edits


def prompts(pairs, i):
  """One pair without its padding, `[1, pos]` each."""
  stop = pairs.lengths[i]
  return jnp.asarray(pairs.clean[i : i + 1, :stop]), jnp.asarray(
    pairs.reference[i : i + 1, :stop]
  )


@functools.partial(jax.jit, static_argnames="model")
def forward(model, params, tokens, edits, answer, foil):
  """The logit difference at the last position, and all activations."""
  resid, acts = run(model, params, tokens, edits)
  last = jnp.array([tokens.shape[1] - 1])
  metric = LogitDifference(answer[None], foil[None])
  return metric(model, params, at_answer(resid, last))[0], acts


def idle(config, n_pos):
  """Edits like those of `patched`, all closed."""
  empty = np.zeros((config.n_layers, 1, n_pos, config.n_heads, config.d_head))
  z = Edit(jnp.zeros((config.n_layers, 1, 1, config.n_heads, 1)), empty)
  stream = np.zeros((config.n_layers, 1, n_pos, config.d_model))
  mlp = Edit(jnp.zeros((config.n_layers, 1, 1, 1)), stream)
  return Edits(z=(z, z), mlp_out=() if config.mlp == "none" else (mlp,))


def patched(config, clean, reference, source, hold):
  """Edits of one head towards the reference, and of others towards clean."""
  gate = np.zeros((config.n_layers, 1, 1, config.n_heads, 1))
  gate[source[0], ..., source[1], :] = 1
  heads = np.asarray(hold.heads)[source][:, None, None, :, None]
  z = (
    Edit(jnp.asarray(gate), reference.z),
    Edit(jnp.asarray(heads * 1.0), clean.z),
  )
  if config.mlp == "none":
    return Edits(z=z)
  mlps = np.asarray(hold.mlps)[source][:, None, None, None]
  return Edits(z=z, mlp_out=(Edit(jnp.asarray(mlps * 1.0), clean.mlp_out),))


def effects(loaded, pairs, *holds):
  """`[layer, head, example]` effects of every head, for each of the holds."""
  config = loaded.config
  shape = (config.n_layers, config.n_heads, len(pairs))
  found = [np.zeros(shape) for _ in holds]
  for i in range(len(pairs)):
    ids = (jnp.asarray(pairs.answer[i]), jnp.asarray(pairs.foil[i]))
    see = functools.partial(forward, loaded.model, loaded.params)
    tokens = prompts(pairs, i)
    closed = idle(config, tokens[0].shape[1])
    (base, clean), (_, reference) = (see(t, closed, *ids) for t in tokens)
    for effect, hold in zip(found, holds, strict=True):
      for source in np.ndindex(*effect.shape[:2]):
        edits = patched(config, clean, reference, source, hold)
        effect[(*source, i)] = base - see(tokens[0], edits, *ids)[0]
  return found
