"""How do parts of a config.json become fields of a ModelConfig, and back?

What is one number here and one number there is an `Entry`. Where several
fields belong together, a `Part` reads and writes them. A part that cannot say
what a config has writes something else: whoever writes a config.json reads it
again and compares (`headjax.models.families`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from headjax.checks import check, check_choice
from headjax.models.config import ModelConfig
from headjax.models.config_fields import Fields
from headjax.models.rotary import Scaling

Found = dict[str, Any]  # fields of a ModelConfig
REQUIRED = object()


class Entry(NamedTuple):
  """One value of both configs.

  Attributes:
    field: of the ModelConfig.
    name: in config.json.
    kind: its type there.
    default: where it is absent.
    null: whether null is a value of its own, None, and not the default.
  """

  field: str
  name: str
  kind: type
  default: Any = REQUIRED
  null: bool = False

  def read(self, fields: Fields) -> Any:
    """The value in a config.json."""
    if self.default is REQUIRED:
      return fields.get(self.name, self.kind)
    get = fields.nullable if self.null else fields.get
    return get(self.name, self.kind, self.default)

  def write(self, config: ModelConfig) -> Any:
    """The value for a config.json, whole numbers as such."""
    value = getattr(config, self.field)
    whole = self.kind is int and value is not None and value == int(value)
    return int(value) if whole else value


class Part(NamedTuple):
  """Fields that belong together.

  Attributes:
    read: of a config.json, given the entries; the fields of a ModelConfig.
    write: the fields of config.json that say what a ModelConfig has.
  """

  read: Callable[[Fields, Found], Found]
  write: Callable[[ModelConfig], dict[str, Any]]


def activation(name: str, words: dict[str, str], default: str) -> Part:
  """The nonlinearity of the MLP; `words` are config.json's for ours."""

  def write(config):
    ours = {ours: word for word, ours in reversed(words.items())}
    return {name: ours.get(config.mlp)}

  return Part(
    lambda fields, found: {"mlp": fields.choice(name, words, default)}, write
  )


def attention_bias(default: bool) -> Part:
  """One field for the biases of q, k, v and of the output."""

  def read(fields, found):
    bias = fields.get("attention_bias", bool, default)
    return {"qkv_bias": bias, "out_bias": bias}

  return Part(read, lambda config: {"attention_bias": config.qkv_bias})


def _whole_heads(fields, found):
  d_model, n_heads = found["d_model"], found["n_heads"]
  name = "hidden_size" if "hidden_size" in fields.content else "n_embd"
  check(
    d_model % n_heads == 0,
    fields.label(name),
    d_model,
    f"a multiple of {n_heads}, the number of heads",
    "correct the config",
  )
  fields.require("head_dim", d_model // n_heads)
  return {"d_head": d_model // n_heads}


# The heads together are as wide as the stream.
WHOLE_HEADS = Part(_whole_heads, lambda config: {})


def _grouped_heads(fields, found):
  n_heads = found["n_heads"]
  width = found["d_model"] // n_heads
  return {
    "n_kv_heads": fields.get("num_key_value_heads", int, n_heads),
    "d_head": fields.get("head_dim", int, max(1, width)),
  }


GROUPED_HEADS = Part(
  _grouped_heads,
  lambda config: {
    "num_key_value_heads": config.n_kv_heads,
    "head_dim": config.d_head,
  },
)
GROUPED = Part(
  lambda fields, found: {
    "n_kv_heads": fields.get("num_key_value_heads", int, found["n_heads"])
  },
  lambda config: {"num_key_value_heads": config.n_kv_heads},
)
EMBED_SCALE = Part(
  lambda fields, found: {"embed_scale": found["d_model"] ** 0.5},
  lambda config: {},
)

_ROPE = {
  "rope_type", "type", "rope_theta", "partial_rotary_factor", "factor",
  "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
}  # fmt: skip


def rotary(
  theta: str = "rope_theta",
  fraction: str | None = None,
  default_fraction: float = 1.0,
) -> Part:
  """Rotary positions: `rope_parameters`, or what older files have.

  Args:
    theta: older name of the base of the frequencies.
    fraction: older name of the share of coordinates that turn, if there is
      one; otherwise all have to turn.
    default_fraction: where it is absent.
  """

  def read(fields, found):
    name = "rope_scaling" if fields.content.get("rope_scaling") else (
      "rope_parameters"
    )  # fmt: skip
    rope = fields.inner(name)
    for key in sorted(rope.content.keys() - _ROPE):
      rope.require(key, None)
    share = default_fraction
    if fraction:
      share = fields.get(fraction, float, share)
      share = rope.get("partial_rotary_factor", float, share)
    else:
      rope.require("partial_rotary_factor", 1)
    base = fields.get(theta, float, 10_000.0)
    return {
      "rotary_theta": rope.get("rope_theta", float, base),
      "rotary_fraction": share,
      "rotary_scaling": _scaling(rope),
    }

  def write(config):
    written = {theta: config.rotary_theta}
    if fraction:
      written[fraction] = config.rotary_fraction
    scaling = config.rotary_scaling
    if scaling.kind != "none":
      written["rope_scaling"] = _written_scaling(scaling)
    return written

  return Part(read, write)


def _scaling(rope: Fields) -> Scaling:
  name = "rope_type" if "rope_type" in rope.content else "type"
  kind = rope.get(name, str, "default")
  check_choice(rope.label(name), kind, ("default", "linear", "llama3", "none"))
  if kind in ("default", "none"):
    return Scaling()
  factor = rope.get("factor", float)
  if kind == "linear":
    return Scaling(kind, factor)
  low, high = "low_freq_factor", "high_freq_factor"
  return Scaling(
    kind,
    factor,
    rope.get(low, float),
    rope.get(high, float),
    rope.get("original_max_position_embeddings", int),
  )


def _written_scaling(scaling: Scaling) -> dict[str, Any]:
  # Both spellings of the type: each generation of readers knows one.
  written = {"rope_type": scaling.kind, "type": scaling.kind}
  written["factor"] = scaling.factor
  if scaling.kind == "llama3":
    written |= {
      "low_freq_factor": scaling.low,
      "high_freq_factor": scaling.high,
      "original_max_position_embeddings": scaling.context,
    }
  return written
