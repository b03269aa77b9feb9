"""Which layers of a public model have a sliding window, and how wide is it?

Newer files list the type of every layer; older ones have a rule by family.
"""

from collections.abc import Callable
from typing import Any

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.config_fields import Fields
from headjax.models.family_parts import Found, Part

_SLIDING, _FULL = "sliding_attention", "full_attention"
_WIDTH = 4096  # the default of all these families, in tokens


def _every(fields: Fields, found: Found) -> Found:
  width = fields.nullable("sliding_window", int, _WIDTH)
  return {"windows": (width or 0,) * found["n_layers"]}


def _upper(fields: Fields, found: Found) -> Found:
  if not fields.get("use_sliding_window", bool, False):
    return {"windows": (0,) * found["n_layers"]}
  first = fields.content.get("max_window_layers", 28)
  check(
    type(first) is int and first >= 0,
    fields.label("max_window_layers"),
    repr(first),
    "0 or more layers",
    "correct the config",
  )
  return _by_layer(fields, found, lambda layer: layer >= first)


def _alternating(fields: Fields, found: Found) -> Found:
  return _by_layer(fields, found, lambda layer: layer % 2 == 0)


def _by_layer(
  fields: Fields, found: Found, rule: Callable[[int], bool]
) -> Found:
  """Windows in the layers that are listed, else in those of a rule."""
  n_layers = found["n_layers"]
  types = fields.get("layer_types", list, None)
  if types is None:
    types = [_SLIDING if rule(layer) else _FULL for layer in range(n_layers)]
  check(
    len(types) == n_layers and all(t in (_SLIDING, _FULL) for t in types),
    fields.label("layer_types"),
    repr(types)[:60],
    f"{n_layers} layers, each {_SLIDING!r} or {_FULL!r}",
    "this variant of the architecture is not supported",
  )
  width = fields.nullable("sliding_window", int, _WIDTH)
  check(
    width is not None or _SLIDING not in types,
    fields.label("sliding_window"),
    None,
    "a width, for the layers that slide",
    "correct the config",
  )
  return {"windows": tuple(width if t == _SLIDING else 0 for t in types)}


def _written(config: ModelConfig) -> dict[str, Any]:
  """One width, and the type of every layer."""
  types = [_SLIDING if window else _FULL for window in config.windows]
  widths = [window for window in config.windows if window]
  return {"sliding_window": min(widths, default=_WIDTH), "layer_types": types}


def _written_upper(config: ModelConfig) -> dict[str, Any]:
  slides = [window > 0 for window in config.windows]
  first = slides.index(True) if any(slides) else config.n_layers
  rule = {"use_sliding_window": any(slides), "max_window_layers": first}
  return _written(config) | rule


# The same in every layer; from one layer on; in every other layer.
EVERY = Part(_every, lambda c: {"sliding_window": c.windows[0] or None})
UPPER = Part(_upper, _written_upper)
ALTERNATING = Part(_alternating, _written)
