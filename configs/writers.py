"""Small models that learn to find a rule in their context, to be studied.

  get_config("hierarchical")   lines labelled by one of four rules of a text
  get_config("modular")        the same with other rules

Half an hour of two cores each:

  python -m headjax.train --config=configs/writers.py:hierarchical \
    --workdir=runs/rules-hierarchical
  python experiments/writers_cancellers.py --model runs/rules-hierarchical \
    --task hierarchical --out results/writers/rules-hierarchical
"""

from ml_collections import ConfigDict

from configs import base

FAMILIES = ("hierarchical", "modular")
# Ten lines of six tokens, of which the study's prompts have four and a query.
SIZES = {
  "model.n_layers": 4,
  "model.n_heads": 8,
  "model.d_model": 128,
  "model.d_head": 16,
  "model.d_mlp": 512,
  "model.d_vocab": 14,
  "model.n_ctx": 60,
  "train.steps": 6000,
  "train.batch_size": 64,
  "train.unroll": 4,
  "train.evaluate_every": 500,
  "train.checkpoint_steps": (0, 500, 1000, 2000, 4000, 6000),
  "optimizer.peak": 1e-3,
  "optimizer.final": 1e-4,
  "optimizer.warmup": 200,
}


def get_config(variant: str = "hierarchical") -> ConfigDict:
  """The config of one family of rules.

  Args:
    variant: one of FAMILIES.

  Raises:
    ValueError: there is no such family.
  """
  if variant not in FAMILIES:
    raise ValueError(
      f"variant: got {variant!r}; expected one of {', '.join(FAMILIES)}"
    )
  config = base.get_config()
  base.override(config, SIZES)
  config.name = f"rules-{variant}"
  config.data.corpus = f"rules-{variant}"
  return config
