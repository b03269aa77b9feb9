"""A slow float64 NumPy transformer, written apart from the package's own."""

import numpy as np
from scipy.special import erf


def _norm(config, x, gain, bias):
  if config.norm == "none":
    return x
  if config.norm == "layernorm":
    x = x - x.mean(-1, keepdims=True)
  y = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + config.norm_eps) * gain
  return y if bias is None else y + bias


def _act(name, x):
  if name == "relu":
    return np.maximum(x, 0)
  if name == "gelu":
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))
  if name == "gelu_tanh":
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
  return x / (1 + np.exp(-x))


def _turn(x, position, theta):
  half = len(x) // 2
  pairs = x[:half] + 1j * x[half:]
  pairs = pairs * np.exp(1j * position * theta ** (-np.arange(half) / half))
  return np.concatenate([pairs.real, pairs.imag])


def attend(config, window, q, k, v, positions, valid):
  """One head of one sequence: pattern and z, a query at a time."""
  n = len(q)
  pattern = np.zeros((n, n))
  if config.positions == "rotary":
    q = np.stack(
      [
        _turn(x, p, config.rotary_theta)
        for x, p in zip(q, positions, strict=True)
      ]
    )
    k = np.stack(
      [
        _turn(x, p, config.rotary_theta)
        for x, p in zip(k, positions, strict=True)
      ]
    )
  for i in range(n):
    seen = [
      j
      for j in range(n)
      if valid[j]
      and (not config.causal or positions[j] <= positions[i])
      and (not window or positions[i] - positions[j] < window)
    ]
    if seen:
      s = np.array([q[i] @ k[j] for j in seen]) / np.sqrt(config.d_head)
      e = np.exp(s - s.max())
      pattern[i, seen] = e / e.sum()
  return pattern, pattern @ v


def forward(config, w, tokens, positions=None, valid=None, z_patch=None):
  """Final stream, logits and activations of one sequence.

  `w` maps field names to float64 arrays in the stored shapes; `z_patch` is a
  dict (layer, head) -> [pos, d_head] that replaces head outputs.
  """
  n = len(tokens)
  positions = np.arange(n) if positions is None else positions
  valid = np.ones(n, bool) if valid is None else valid
  x = w["W_E"][tokens]
  if config.positions == "learned":
    x = x + w["W_pos"][positions]
  names = ("resid_pre", "q", "k", "v", "pattern", "z", "attn_out")
  record = {name: [] for name in names}

  def at(name, layer):
    return w[name][layer] if name in w else None

  for layer in range(config.n_layers):
    record["resid_pre"].append(x)
    y = _norm(
      config, x, at("attn_norm_gain", layer), at("attn_norm_bias", layer)
    )
    out = np.zeros_like(x)
    heads = {name: [] for name in ("q", "k", "v", "z")}
    patterns = []
    for h in range(config.n_heads):
      g = h // (config.n_heads // config.n_kv_heads)
      q = y @ at("W_Q", layer)[:, h]
      k = y @ at("W_K", layer)[:, g]
      v = y @ at("W_V", layer)[:, g]
      if config.qkv_bias:
        q = q + at("b_Q", layer)[h]
        k = k + at("b_K", layer)[g]
        v = v + at("b_V", layer)[g]
      pattern, z = attend(
        config, config.windows[layer], q, k, v, positions, valid
      )
      if z_patch and (layer, h) in z_patch:
        z = z_patch[layer, h]
      out = out + z @ at("W_O", layer)[h]
      for name, value in zip("qkvz", (q, k, v, z), strict=True):
        heads[name].append(value)
      patterns.append(pattern)
    if config.out_bias:
      out = out + at("b_O", layer)
    for name, values in heads.items():
      record[name].append(np.stack(values, 1))
    record["pattern"].append(np.stack(patterns))
    record["attn_out"].append(out)
    x = x + out
    if config.mlp != "none":
      y = _norm(
        config, x, at("mlp_norm_gain", layer), at("mlp_norm_bias", layer)
      )
      hidden = y @ at("W_in", layer)
      if config.mlp_bias:
        hidden = hidden + at("b_in", layer)
      if config.mlp == "swiglu":
        hidden = hidden * _act("silu", y @ at("W_gate", layer))
      else:
        hidden = _act(config.mlp, hidden)
      y = hidden @ at("W_out", layer)
      if config.mlp_bias:
        y = y + at("b_out", layer)
      x = x + y
  y = _norm(config, x, w.get("final_norm_gain"), w.get("final_norm_bias"))
  W_U = w["W_E"].T if config.tied else w["W_U"]
  return x, y @ W_U, {name: np.stack(v) for name, v in record.items()}
