"""A slow float64 NumPy screening model, written apart from the package's own.

The same two functions as `oracle`: one forward, and one head of one sequence.
"""

import numpy as np


def _unit(x):
  length = np.sqrt(sum(c * c for c in x))
  return x / length if length > 0 else x


def window_of(w, layer, head):
  """In tokens."""
  return np.exp(w["s_w"][layer, head]) + 1


def _turned(config, x, position, window):
  """Coordinates 0 and 1 as one complex number, times a phase."""
  speed = 0.0
  if window < config.screening_window:
    speed = np.pi / window
    speed *= 0.5 * (np.cos(np.pi * window / config.screening_window) + 1)
  plane = (x[0] + 1j * x[1]) * np.exp(1j * position * speed)
  return np.array([plane.real, plane.imag, *x[2:]])


def attend(config, w, layer, head, resid, q, k, v, positions, valid):
  """Scores, pattern and z of one head, a query and a key at a time."""
  window = window_of(w, layer, head)
  accept = 1 / (1 + np.exp(-w["s_r"][layer, head]))
  scores = np.zeros((len(q), len(k)))
  pattern, z = np.zeros_like(scores), np.zeros((len(q), config.d_head))
  for i in range(len(q)):
    mixed = np.zeros(config.d_head)
    for j in range(len(k)):
      a = _turned(config, _unit(q[i]), positions[i], window)
      b = _turned(config, _unit(k[j]), positions[j], window)
      scores[i, j] = sum(a * b)
      ahead = positions[j] - positions[i]
      if valid[j] and -window < ahead <= 0:
        trimmed = max(1 - (1 - scores[i, j]) / accept, 0) ** 2
        pattern[i, j] = trimmed * 0.5 * (np.cos(np.pi * ahead / window) + 1)
      mixed += pattern[i, j] * _unit(v[j])
    length = np.sqrt(mixed @ mixed)
    gate = resid[i] @ w["W_G"][layer][:, head]
    gate = np.tanh(gate / (1 + np.exp(-gate)))
    if length > 0:
      mixed = np.tanh(length) / length * mixed
    z[i] = np.exp(w["s_O"][layer, head]) * mixed * gate
  return scores, pattern, z


def forward(config, w, tokens, positions=None, valid=None, z_patch=None):
  """Final stream, logits and activations of one sequence; see `oracle`."""
  n = len(tokens)
  positions = np.arange(n) if positions is None else positions
  valid = np.ones(n, bool) if valid is None else valid
  rows = np.stack([_unit(row) for row in w["W_E"]])
  if config.write.frozen:
    w = w | {"W_O": config.write.dense(config.sizes)}
  x = np.exp(w["s_E"]) * rows[tokens]
  names = ("resid_pre", "q", "k", "v", "scores", "pattern", "z", "attn_out")
  record = {name: [] for name in names}
  for layer in range(config.n_layers):
    out, heads = np.zeros_like(x), {name: [] for name in names[1:7]}
    for h in range(config.n_heads):
      q, k, v = (x @ w[f"W_{letter}"][layer][:, h] for letter in "QKV")
      found = attend(config, w, layer, h, x, q, k, v, positions, valid)
      scores, pattern, z = found
      if z_patch and (layer, h) in z_patch:
        z = z_patch[layer, h]
      out = out + z @ w["W_O"][layer][h]
      for name, value in zip(heads, (q, k, v, scores, pattern, z), strict=True):
        heads[name].append(value)
    for name, values in heads.items():
      axis = 0 if name in ("scores", "pattern") else 1
      record[name].append(np.stack(values, axis))
    record["resid_pre"].append(x)
    record["attn_out"].append(out)
    x = x + out
  logits = np.exp(w["s_F"]) * x @ rows.T
  return x, logits, {name: np.stack(v) for name, v in record.items()}
