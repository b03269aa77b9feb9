"""A graph of heads and MLPs as plain Python: one stream for every receiver."""

import numpy as np
import oracle


def forward(config, w, tokens, mask=None, corrupted=None):
  """What every sender gives and the final stream, of one sequence.

  `mask` is `[receiver, sender]`, `corrupted` a list of what each sender gave in
  another run; without them, every edge is present.
  """
  n, rows = len(tokens), iter(range(10**6))
  sent, biases = [w["W_E"][tokens] * config.embed_scale], []
  if config.positions == "learned":
    sent.append(w["W_pos"][np.arange(n)])

  def read(senders, n_biases):
    row, stream = next(rows), sum(biases[:n_biases], np.zeros_like(sent[0]))
    for s in range(senders):
      share = 1 if mask is None else mask[row, s]
      stream = stream + share * sent[s]
      if share != 1:
        stream = stream + (1 - share) * corrupted[s]
    return stream

  for layer in range(config.n_layers):

    def at(name, layer=layer):
      return w[name][layer] if name in w else None

    def normed(name, x, at=at):
      return oracle._norm(config, x, at(f"{name}_gain"), at(f"{name}_bias"))

    before = len(sent)
    heads = []
    for h in range(config.n_heads):
      g = h // (config.n_heads // config.n_kv_heads)
      q, k, v = (
        oracle._projected(
          config, at, normed("attn_norm", read(before, layer)), letter
        )[:, h if letter == "Q" else g]
        for letter in "QKV"
      )
      z = oracle.attend(
        config, config.windows[layer], q, k, v, np.arange(n), np.ones(n, bool)
      )[1]
      heads.append(z @ at("W_O")[h])
    sent += heads
    biases.append(at("b_O") if config.out_bias else 0)
    if config.mlp != "none":
      seen = before if config.parallel else len(sent)
      stream = read(seen, layer if config.parallel else layer + 1)
      sent.append(oracle._mlp(config, at, normed("mlp_norm", stream))[0])
  return sent, read(len(sent), config.n_layers)
