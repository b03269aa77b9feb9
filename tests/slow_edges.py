"""Edges as plain Python: one oracle forward an edge, patched by hand."""

import numpy as np
import oracle
import screening_oracle
from slow_sweep import metric_value

INPUTS = "QKVG"


def divergences(config, w, pairs, edges):
  """`[example, edge]` KL(clean || patched)."""
  found = np.zeros((len(pairs), len(edges)))
  for i, stop in enumerate(pairs.lengths):
    clean, reference = pairs.clean[i, :stop], pairs.reference[i, :stop]
    for j, edge in enumerate(edges):
      found[i, j] = divergence(config, w, clean, reference, edge)
  return found


def divergence(config, w, clean, reference, edge):
  """Of one prompt and one edge."""
  source_layer, source_head, layer, head, letter = edge
  screens = config.attention == "screening"
  forward = (screening_oracle if screens else oracle).forward
  _, logits, acts = forward(config, w, clean)
  other = forward(config, w, reference)[2]["z"][source_layer]
  gain = _gain(config, w, acts, source_layer, source_head, other)
  reader = _screening_z if screens else _softmax_z
  z = reader(config, w, acts, layer, head, INPUTS[letter], gain)
  patched = forward(config, w, clean, z_patch={(layer, head): z})[1]
  return -metric_value("kl", patched[-1], logits[-1], None, None)


def _gain(config, w, acts, layer, head, other):
  """What the stream gains when a head writes something else."""

  def written(z):
    out = sum(z[:, h] @ w["W_O"][layer][h] for h in range(config.n_heads))
    out = out + (w["b_O"][layer] if config.out_bias else 0)
    if config.norm_at == "input":
      return out
    at = [w.get(f"attn_out_norm_{x}") for x in ("gain", "bias")]
    return oracle._norm(
      config, out, *(None if x is None else x[layer] for x in at)
    )

  own = acts["z"][layer]
  changed = own.copy()
  changed[:, head] = other[:, head]
  return written(changed) - written(own)


def _softmax_z(config, w, acts, layer, head, letter, gain):
  def at(name):
    return w[name][layer] if name in w else None

  stream = acts["resid_pre"][layer] + gain
  if config.norm_at != "output":
    stream = oracle._norm(
      config, stream, at("attn_norm_gain"), at("attn_norm_bias")
    )
  group = 1 if letter == "Q" else config.n_heads // config.n_kv_heads
  qkv = {name: acts[name.lower()][layer, :, head] for name in "QKV"}
  qkv[letter] = oracle._projected(config, at, stream, letter)[:, head // group]
  n = len(stream)
  return oracle.attend(
    config, config.windows[layer], *qkv.values(), np.arange(n), np.ones(n, bool)
  )[1]


def _screening_z(config, w, acts, layer, head, letter, gain):
  clean = acts["resid_pre"][layer]
  qkv = {name: acts[name.lower()][layer, :, head] for name in "QKV"}
  if letter in qkv:
    qkv[letter] = (clean + gain) @ w[f"W_{letter}"][layer][:, head]
  stream = clean + gain if letter == "G" else clean
  n = len(stream)
  return screening_oracle.attend(
      config, w, layer, head, stream, *qkv.values(),
      np.arange(n), np.ones(n, bool),
  )[-1]  # fmt: skip
