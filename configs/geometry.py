"""Geometry by design: where heads write and what they read, row by row.

  get_config("write-common-axis")        12 layers, 117 million parameters
  get_config("write-common-axis-S")      the same on the other corpus
  get_config("plain-identity43")         by its repository name: corpus, seed
  get_config("write-common-axis@tiny")   at a small scale: @tiny, @small,
                                         @relay (see configs/scales.py)

`python experiments/geometry_report.py --table` prints all rows with their
parameters, and `--config VARIANT` draws the geometry of one, in about a minute.
"""

from ml_collections import ConfigDict

from configs import base
from configs.scales import SCALES, shrink

S = {"data.corpus": "S"}
AXIS = {"model.write.kind": "axis"}
ROTATED = {"model.write.kind": "rotated", "model.write.members": "layer"}
ROUTED = S | {
  "model.write.kind": "routed",
  "model.n_heads": 16,
  "model.out_bias": False,
}
BLOCKS = S | {"model.read.kind": "block"}
OTHER = BLOCKS | {"model.read.members": "shifted"}
OWN = BLOCKS | {"model.read.members": "layer"}
NORMS = S | {"model.read.kind": "block_norm"}
HALF = {"model.write.kind": "half_shared", "model.write.members": "layer"}
SCREENING = {
  "model.attention": "screening",
  "model.n_layers": 21,
  "model.n_heads": 16,
  "model.d_model": 1024,
  "model.d_key": 16,
  "model.d_mlp": 0,
  "model.mlp": "none",
  "model.norm": "none",
  "model.positions": "none",
  "model.qkv_bias": False,
  "model.out_bias": False,
}
# Widths of the MLP with which a row has as many parameters as `learned`, up to
# half a hidden unit a layer: of frozen writes, of block readers, of both.
FROZEN, BLOCKED, BOTH = ({"model.d_mlp": width} for width in (3456, 4127, 4511))

# Row -> its differences from the base config.
VARIANTS = {
  # The paper's.
  "learned": {},
  "write-common-axis": AXIS,
  "write-common": ROTATED | {"model.write.members": "common"},
  "write-rotated": ROTATED,
  "read-common": BLOCKS,
  "all-common-axis": AXIS | BLOCKS,
  "all-rotated": ROTATED | OTHER,
  "all-rotated-self": ROTATED | OWN,
  "write-routed-sum-hub": ROUTED | {"model.write.routing": "sum-hub"},
  "write-routed-split-cycle": ROUTED | {"model.write.routing": "split-cycle"},
  "write-routed-angle-split": ROUTED | {"model.write.routing": "angle-split"},
  "fixeddiag": AXIS | {"model.write.live": 51},
  "value384": AXIS | S | {"model.value_adapter": 384},
  "mlp3456": AXIS | S | FROZEN,
  "identity-original": AXIS | {"model.write.scale": 1.0},
  "multiscreen-learned": SCREENING,
  # As strong as this architecture's learned W_O at its start.
  "multiscreen-identity": SCREENING | AXIS | {"model.write.scale": 0.1},
  # Even heads share their spaces with all layers, odd heads with none; readers
  # are free, or their values are restricted to a block of the axes, which is
  # what makes lanes in a small model.
  "half-shared": HALF,
  "half-shared-v": HALF | BLOCKS | {"model.read.restricted": "V"},
  # One input restricted to the head's block.
  **{
    f"{name}-{letter.lower()}": row | {"model.read.restricted": letter}
    for name, row in {
      "read-common": BLOCKS,
      "all-common-axis": AXIS | BLOCKS,
    }.items()
    for letter in "QKV"
  },
  # Restricted readers with the parameters of free ones; with rotated writes,
  # the blocks of another basis, of the layer's own and of the axes.
  "read-common-4127": BLOCKS | BLOCKED,
  "all-common-axis-4511": AXIS | BLOCKS | BOTH,
  "all-rotated-4511": ROTATED | OTHER | BOTH,
  "all-rotated-self-4511": ROTATED | OWN | BOTH,
  "all-rotated-axis-4511": ROTATED | BLOCKS | BOTH,
  # Free readers with the norms of restricted ones, and then with their
  # parameters too.
  "learned-block-norm": NORMS,
  "write-common-axis-block-norm": AXIS | NORMS,
  "write-rotated-block-norm": ROTATED | NORMS,
  "write-common-axis-block-norm-3456": AXIS | NORMS | FROZEN,
  "write-rotated-block-norm-3456": ROTATED | NORMS | FROZEN,
}

# Corpus -> how it is read: with replacement, or every token once.
SAMPLING = {"R": "replacement", "S": "once", "toy": "once"}

# Name of the paper's repository -> row, corpus and seed.
REPOSITORY_NAMES = {
  "plain-learned42": ("learned", "R", 42),
  "plain-learned43": ("learned", "R", 43),
  "dense": ("learned", "S", 42),
  "plain-identity42": ("write-common-axis", "R", 42),
  "plain-identity43": ("write-common-axis", "R", 43),
  "common42": ("write-common", "R", 42),
  "layered42": ("write-rotated", "R", 42),
  "rotated-m1-42": ("write-rotated", "S", 42),
  "headblock-learned42": ("read-common", "S", 42),
  "headblock-identity42": ("all-common-axis", "S", 42),
  "rotated-m2-42": ("all-rotated", "S", 42),
  "rotated-m3-42": ("all-rotated-self", "S", 42),
  "fixed-sum-hub42": ("write-routed-sum-hub", "S", 42),
  "fixed-split-cycle42": ("write-routed-split-cycle", "S", 42),
  "fixed-angle-split42": ("write-routed-angle-split", "S", 42),
  "fixeddiag42": ("fixeddiag", "R", 42),
  "value384": ("value384", "S", 42),
  "mlp3456": ("mlp3456", "S", 42),
  "identity-original42": ("identity-original", "R", 42),
  "multiscreen-learned42": ("multiscreen-learned", "R", 42),
  "multiscreen-identity42": ("multiscreen-identity", "R", 42),
}


def get_config(variant: str = "learned") -> ConfigDict:
  """The config of one row.

  Args:
    variant: ROW, ROW-R or ROW-S (the corpus), or a repository name; then
      @tiny, @small or @relay for a small model of the same design.

  Raises:
    ValueError: there is no such row or scale, or no such row at this scale.
  """
  name, at, scale = variant.partition("@")
  row, corpus, seed = _row(name)
  config = base.get_config()
  base.override(config, VARIANTS[row])
  config.name = variant
  config.seed = seed
  if at:
    shrink(config, scale)
  config.data.corpus = corpus or config.data.corpus
  config.data.sampling = SAMPLING[config.data.corpus]
  return config


def _row(name: str) -> tuple[str, str, int]:
  """Row, corpus ("" for the row's own) and seed of a name."""
  if name in REPOSITORY_NAMES:
    return REPOSITORY_NAMES[name]
  row, corpus = name, ""
  if name[-2:] in ("-R", "-S"):
    row, corpus = name[:-2], name[-1]
  if row not in VARIANTS:
    known = ", ".join(dict.fromkeys([*VARIANTS, *REPOSITORY_NAMES]))
    raise ValueError(
      f"variant: got {name!r}; expected one of {known}, with -R or -S for the"
      f" corpus and @{' or @'.join(SCALES)} for a small model"
    )
  return row, corpus, 42
