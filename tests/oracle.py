"""A slow float64 NumPy transformer, written apart from the package's own."""

import numpy as np
from scipy.special import erf


def _norm(config, x, gain, bias):
  if config.norm == "none":
    return x
  if config.norm.startswith("layernorm"):
    x = x - x.mean(-1, keepdims=True)
  y = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + config.norm_eps)
  if config.norm == "layernorm_bare":
    return y
  y = y * (gain + 1 if config.norm == "rmsnorm_offset" else gain)
  return y if bias is None else y + bias


def _act(name, x):
  if name == "relu":
    return np.maximum(x, 0)
  if name == "gelu":
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))
  if name in ("gelu_tanh", "geglu"):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
  return x / (1 + np.exp(-x))


def _cap(x, cap):
  return x if cap is None else cap * np.tanh(x / cap)


def _speed(config, plane, planes):
  """Radians per token of one plane."""
  speed, scaling = config.rotary_theta ** (-plane / planes), (
    config.rotary_scaling
  )  # fmt: skip
  if scaling.kind == "none":
    return speed
  if scaling.kind == "linear":
    return speed / scaling.factor
  wavelength = 2 * np.pi / speed
  if wavelength < scaling.context / scaling.high:
    return speed
  if wavelength > scaling.context / scaling.low:
    return speed / scaling.factor
  share = scaling.context / wavelength - scaling.low
  share = share / (scaling.high - scaling.low)
  return (1 - share) * speed / scaling.factor + share * speed


def _turn(config, x, position):
  planes = int(len(x) * config.rotary_fraction) // 2
  x = np.array(x, float)
  for i in range(planes):
    turned = x[i] + 1j * x[planes + i]
    turned = turned * np.exp(1j * position * _speed(config, i, planes))
    x[i], x[planes + i] = turned.real, turned.imag
  return x


def attend(config, window, q, k, v, positions, valid):
  """One head of one sequence: pattern and z, a query at a time."""
  n = len(q)
  pattern = np.zeros((n, n))
  if config.positions == "rotary":
    q, k = (
      np.stack(
        [_turn(config, x, p) for x, p in zip(rows, positions, strict=True)]
      )
      for rows in (q, k)
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
      s = np.array([q[i] @ k[j] for j in seen])
      s = _cap(s / np.sqrt(config.score_dim or config.d_head), config.score_cap)
      e = np.exp(s - s.max())
      pattern[i, seen] = e / e.sum()
  return pattern, pattern @ v


def _projected(config, at, y, letter):
  """`[pos, head, d_head]`: q, k or v of the heads that there are."""
  x = np.einsum("pd,dhe->phe", y, at(f"W_{letter}"))
  if config.qkv_bias:
    x = x + at(f"b_{letter}")
  if config.qk_norm and letter in "QK":
    name = f"{letter.lower()}_norm"
    whole = x.reshape(len(x), -1)
    x = _norm(config, whole, at(f"{name}_gain"), at(f"{name}_bias"))
    x = x.reshape(len(x), -1, config.d_head)
  if config.qkv_clip is not None:
    x = np.minimum(np.maximum(x, -config.qkv_clip), config.qkv_clip)
  return x


def route(config, logits):
  """The weights of one token's experts."""
  p = np.exp(logits - logits.max())
  p = p / p.sum()
  best = sorted(range(len(p)), key=lambda e: -p[e])[: config.experts_per_token]
  weights = np.zeros(len(p))
  for e in best:
    weights[e] = p[e] / (p[best].sum() if config.experts_normed else 1)
  return weights


def _hidden(config, y, W_in, W_gate=None, b_in=0, b_gate=0):
  hidden = y @ W_in + b_in
  if W_gate is None:
    return _act(config.mlp, hidden)
  return hidden * _act(config.mlp, y @ W_gate + b_gate)


def _mlp(config, at, y):
  """What the MLP or the experts give, and the router's logits and weights."""
  names = "W_in", "W_gate", "W_out"
  if not config.n_experts:
    W_in, W_gate, W_out = map(at, names)
    if not config.mlp_bias:
      return _hidden(config, y, W_in, W_gate) @ W_out, None, None
    b_gate = 0 if W_gate is None else at("b_gate")
    hidden = _hidden(config, y, W_in, W_gate, at("b_in"), b_gate)
    return hidden @ W_out + at("b_out"), None, None
  logits = y @ at("W_router")
  weights = np.stack([route(config, row) for row in logits])
  out = np.zeros_like(y)
  for i, row in enumerate(weights):
    for e in np.flatnonzero(row):
      W_in, W_gate, W_out = (at(name)[e] for name in names)
      out[i] += row[e] * (_hidden(config, y[i], W_in, W_gate) @ W_out)
  return out, logits, weights


def forward(config, w, tokens, positions=None, valid=None, z_patch=None):
  """Final stream, logits and activations of one sequence.

  `w` maps field names to float64 arrays in the stored shapes; `z_patch` is a
  dict (layer, head) -> [pos, d_head] that replaces head outputs.
  """
  n = len(tokens)
  positions = np.arange(n) if positions is None else positions
  valid = np.ones(n, bool) if valid is None else valid
  x = w["W_E"][tokens] * config.embed_scale
  if config.positions == "learned":
    x = x + w["W_pos"][positions]
  record = {}

  def note(name, value):
    record.setdefault(name, []).append(value)

  for layer in range(config.n_layers):

    def at(name, layer=layer):
      return w[name][layer] if name in w else None

    def normed(name, x, at=at):
      return _norm(config, x, at(f"{name}_gain"), at(f"{name}_bias"))

    note("resid_pre", x)
    reads = config.norm_at in ("input", "both")
    writes = config.norm_at in ("output", "both")
    y = normed("attn_norm", x) if reads else x
    q, k, v = (_projected(config, at, y, letter) for letter in "QKV")
    out = np.zeros_like(x)
    heads = {name: [] for name in ("q", "k", "v", "z", "pattern")}
    for h in range(config.n_heads):
      g = h // (config.n_heads // config.n_kv_heads)
      own = q[:, h], k[:, g], v[:, g]
      pattern, z = attend(config, config.windows[layer], *own, positions, valid)
      if z_patch and (layer, h) in z_patch:
        z = z_patch[layer, h]
      out = out + z @ at("W_O")[h]
      for name, value in zip(heads, (*own, z, pattern), strict=True):
        heads[name].append(value)
    if config.out_bias:
      out = out + at("b_O")
    for name, values in heads.items():
      note(name, np.stack(values, 0 if name == "pattern" else 1))
    if writes:
      out = normed("attn_out_norm", out)
    note("attn_out", out)
    before, x = x, x + out
    if config.norm_at == "stream":
      x = normed("attn_out_norm", x)
    if config.mlp != "none":
      read = before if config.parallel else x
      y = normed("mlp_norm", read) if reads else read
      y, logits, weights = _mlp(config, at, y)
      if writes:
        y = normed("mlp_out_norm", y)
      note("mlp_out", y)
      note("router_logits", logits)
      note("router_weights", weights)
      x = x + y
      if config.norm_at == "stream":
        x = normed("mlp_out_norm", x)
  y = x
  if config.norm_at != "stream":
    y = _norm(config, x, w.get("final_norm_gain"), w.get("final_norm_bias"))
  W_U = w["W_E"].T if config.tied else w["W_U"]
  record = {
    name: np.stack(values)
    for name, values in record.items()
    if values[0] is not None
  }
  return x, _cap(y @ W_U, config.logit_cap), record
