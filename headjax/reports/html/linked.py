"""What belongs to a head beside its number? Examples, attention, other heads.

These are the large parts of a page. Each is made on its own, so that one that
does not fit can be left out.
"""

from typing import Any

import numpy as np
import xarray as xr

from headjax.reports.html import heads, maps, packing
from headjax.reports.html.source import Source


def example_values(array: xr.DataArray) -> packing.Packed:
  """The values of single examples, `[*switches, example, layer, head]`."""
  return packing.short(maps.example_table(array))


def pair_values(source: Source, name: str, array: xr.DataArray) -> dict:
  """Numbers of pairs of heads, averaged over what has no names.

  Args:
    source: the file it comes from.
    name: of the array.
    array: with the axes of a source and of a head.

  Returns:
    An entry whose `values` are
    `[*switches, source_layer, source_head, layer, head]`.
  """
  extra = [heads.EXAMPLE] if heads.EXAMPLE in array.dims else []
  averaged = [*heads.averaged(array), *extra]
  kept = array.astype(np.float64).mean(averaged)
  axes = (*heads.SOURCE, *heads.HEAD)
  values = kept.transpose(*heads.switches(array), *axes)
  return source.labels(name) | {
    "title": str(array.attrs.get("long_name") or name),
    "units": maps.unit(array),
    "switches": maps.switch_list(array),
    "source_layers": heads.labels(array, "source_layer"),
    "source_heads": heads.labels(array, "source_head"),
    "layers": heads.labels(array, "layer"),
    "heads": heads.labels(array, "head"),
    "values": packing.short(values.values),
    "code": source.code(name, array) | {"mean": averaged},
  }


def pattern_values(source: Source, name: str, array: xr.DataArray) -> dict:
  """Attention of every head, `[prompt, layer, head, query, key]`.

  The tokens come from a coordinate `token` of the prompts' keys, if there is
  one; else they are numbers.
  """
  axes = (*heads.HEAD, *heads.ATTENTION)
  rest = [str(d) for d in array.dims if d not in axes]
  values = array.transpose(*rest, *axes).values
  values = values.reshape(-1, *values.shape[-4:])
  return source.labels(name) | {
    "layers": heads.labels(array, "layer"),
    "heads": heads.labels(array, "head"),
    "tokens": _tokens(array, rest, values),
    "lengths": _lengths(values),
    "values": packing.short(values),
    "prompt_axes": [[d, array.sizes[d]] for d in rest],
    "code": source.code(name, array),
  }


def _tokens(array: xr.DataArray, rest: list[str], values) -> list[list[str]]:
  token = array.coords.get("token")
  n, keys = len(values), values.shape[-1]
  if token is None or not {*token.dims} <= {*rest, "key"}:
    return [[str(key) for key in range(keys)]] * n
  whole = token.broadcast_like(array.isel(layer=0, head=0, query=0, drop=True))
  rows = whole.transpose(*rest, "key").values.reshape(n, keys)
  return [[str(text) for text in row] for row in rows]


def _lengths(values: np.ndarray) -> list[int]:
  """Tokens of each prompt: queries that are padding look at nothing."""
  asks = np.nan_to_num(values).sum(axis=(1, 2, 4)) > 0
  return [int(np.flatnonzero(row)[-1]) + 1 if row.any() else 0 for row in asks]


def example_labels(data: xr.Dataset) -> dict[str, list[Any]]:
  """What a result says of each example: group, condition, prompt, base."""
  return {
    str(name): _plain(array)
    for name, array in data.variables.items()
    if array.dims == (heads.EXAMPLE,) and name != heads.EXAMPLE
  }


def _plain(array: xr.Variable) -> list[Any]:
  if array.dtype.kind == "f":
    return [float(f"{x:.4g}") if np.isfinite(x) else None for x in array.values]
  return array.values.tolist()
