"""The head sweep as plain Python: one oracle forward a patch."""

import numpy as np
import oracle
import screening_oracle


def metric_value(metric, logits, clean_logits, answer, foil):
  """One of the three metrics from the logits at the answer position."""
  log_p = _log_softmax(logits)
  if metric == "logit_difference":
    return logits[answer] - logits[foil]
  if metric == "log_probability":
    return log_p[answer]
  clean = _log_softmax(clean_logits)
  return -np.sum(np.exp(clean) * (clean - log_p))


def _log_softmax(x):
  x = x - x.max()
  return x - np.log(np.exp(x).sum())


def sweep(
  config, w, pairs, site="z", position="all", ablation="reference",
  metric="logit_difference",
):  # fmt: skip
  """`effect[example, layer, head]` and `base[example]`."""
  n, (L, H) = len(pairs), (config.n_layers, config.n_heads)
  screens = config.attention == "screening"
  forward = (screening_oracle if screens else oracle).forward
  prompts = [_prompt(pairs, i) for i in range(n)]
  runs = [forward(config, w, clean) for clean, _ in prompts]
  means = np.concatenate([acts[site] for *_, acts in runs], 1).mean(1)
  effect, base = np.zeros((n, L, H)), np.zeros(n)
  for i, (clean, reference) in enumerate(prompts):
    _, clean_logits, acts = runs[i]
    if ablation == "reference":
      value = forward(config, w, reference)[2][site]
    else:
      value = np.broadcast_to(means[:, None], acts[site].shape)
      value = value * (ablation == "mean")
    where = np.arange(len(clean)) >= (
      len(clean) - 1 if position == "last" else 0
    )

    def score(logits, i=i, clean_logits=clean_logits):
      return metric_value(
        metric, logits[-1], clean_logits[-1], pairs.answer[i], pairs.foil[i]
      )

    base[i] = score(clean_logits)
    for layer in range(L):
      for head in range(H):
        z = _edited_z(config, w, acts, layer, head, site, value, where)
        logits = forward(config, w, clean, z_patch={(layer, head): z})[1]
        effect[i, layer, head] = base[i] - score(logits)
  return effect, base


def _prompt(pairs, i):
  stop = pairs.lengths[i]
  return pairs.clean[i, :stop], pairs.reference[i, :stop]


def _edited_z(config, w, acts, layer, head, site, value, where):
  """What the head outputs once its site has the value at some positions."""
  own = {name: acts[name][layer, :, head] for name in ("q", "k", "v", "z")}
  own[site] = np.where(where[:, None], value[layer, :, head], own[site])
  if site == "z":
    return own["z"]
  n = len(where)
  qkv = own["q"], own["k"], own["v"]
  rows = np.arange(n), np.ones(n, bool)
  if config.attention == "screening":
    resid = acts["resid_pre"][layer]
    return screening_oracle.attend(config, w, layer, head, resid, *qkv, *rows)[
      -1
    ]
  return oracle.attend(config, config.windows[layer], *qkv, *rows)[-1]
