"""Which arrays of a result have a number for every head, or pair of heads?

Nothing here knows a study: the names of the dimensions say what an array is.
"""

import json

import numpy as np
import xarray as xr

HEAD = ("layer", "head")
SOURCE = ("source_layer", "source_head")
ATTENTION = ("query", "key")
EXAMPLE = "example"
_TAKEN = {*HEAD, *SOURCE, *ATTENTION, EXAMPLE}


def placed(data: xr.Dataset) -> dict[str, xr.DataArray]:
  """All arrays of numbers that have heads as axes.

  Args:
    data: a result.

  Returns:
    Name -> array with dimensions `layer` and `head`, and others. An array of
    sources alone is one of heads; one over a list of heads is laid out on all
    of them, NaN where the list has none, and says so in `listed` (one of all
    heads, for each of a list of sources, is one of pairs). One over a list of
    edges becomes two: means over the edges that leave a head, and
    over those that reach it, which say so in `grouped`.
  """
  found = {}
  for name, array in data.data_vars.items():
    if array.dtype.kind not in "fiub":
      continue
    for end, names in _ends(array).items():
      found[f"{name} by {end}"] = _gathered(array, end, names)
    array = _laid_out(array, data.attrs)
    if {*SOURCE} <= {*array.dims} and not {*HEAD} & {*array.dims}:
      array = array.rename(dict(zip(SOURCE, HEAD, strict=True)))
      array.attrs["axes"] = SOURCE
    if {*HEAD} <= {*array.dims}:
      found[str(name)] = array
  return found


def is_pairs(array: xr.DataArray) -> bool:
  """Whether it has a number for every pair of heads."""
  return {*SOURCE} <= {*array.dims}


def is_attention(array: xr.DataArray) -> bool:
  """Whether it has a pattern for every head."""
  return {*ATTENTION} <= {*array.dims}


def switches(array: xr.DataArray) -> list[str]:
  """Dimensions whose entries have names: a reader chooses one of them."""
  return [str(d) for d in array.dims if d not in _TAKEN and d in array.indexes]


def averaged(array: xr.DataArray) -> list[str]:
  """Dimensions whose entries have no names: draws, of which the mean is shown.

  Patterns have none: their entries are prompts.
  """
  if is_attention(array):
    return []
  named = switches(array)
  return [str(d) for d in array.dims if d not in _TAKEN and d not in named]


def labels(array: xr.DataArray, dim: str) -> list:
  """The names of a dimension's entries, or their numbers, for JSON."""
  if dim in array.indexes:
    return array.indexes[dim].tolist()
  return list(range(array.sizes[dim]))


def _ends(array: xr.DataArray) -> dict[str, list[str]]:
  """Ends of the edges an array lists, if it does, and what tells them apart."""
  for dim in array.dims:
    if _lists(array, dim, (*SOURCE, *HEAD)):
      more = ["input"] if _lists(array, dim, ("input",)) else []
      return {"source": [*SOURCE, *more], "reader": [*HEAD, *more]}
  return {}


def _gathered(array: xr.DataArray, end: str, names: list[str]) -> xr.DataArray:
  """Means of edges with one end in common, `[..., layer, head, input]`."""
  kept = array.astype(np.float64).groupby(names).mean()
  told = array.attrs.get("long_name") or array.name
  about = {"long_name": f"{told}, mean of the edges by {end}"}
  about |= {"grouped": names, "axes": tuple(names[:2])}
  kept = kept.rename(dict(zip(names[:2], HEAD, strict=True)))
  return kept.assign_attrs(array.attrs | about)


def _laid_out(array: xr.DataArray, attrs: dict) -> xr.DataArray:
  """Puts an array over a list of heads on the grid of all heads."""
  for dim in array.dims:
    lists = [names for names in (SOURCE, HEAD) if _lists(array, dim, names)]
    if len(lists) != 1:  # with both it is a list of edges
      continue
    at = np.stack([array.coords[name].values for name in lists[0]])
    shape = _grid(at, attrs)
    if len({*zip(*at.tolist(), strict=True)}) < at.shape[1]:
      continue
    others = [d for d in array.dims if d != dim]
    # Of every head, as each of a list acts on it: numbers of pairs.
    axes = SOURCE if {*HEAD} & {*others} else HEAD
    if {*axes} & {*others}:
      continue
    values = np.moveaxis(array.values, array.dims.index(dim), -1)
    full = np.full((*values.shape[:-1], *shape), np.nan)
    full[..., at[0], at[1]] = values
    return xr.DataArray(
      full,
      {d: array.coords[d] for d in others if d in array.indexes},
      (*others, *axes),
      attrs=array.attrs | {"listed": str(dim), "list": at.T.tolist()},
    )
  return array


def _lists(array: xr.DataArray, dim, names: tuple[str, str]) -> bool:
  """Whether the entries of a dimension are heads, by these coordinates."""
  return all(
    name in array.coords and array.coords[name].dims == (dim,) for name in names
  )


def _grid(at: np.ndarray, attrs: dict) -> tuple[int, int]:
  """How many layers and heads there are: as the model says, or as listed."""
  config = json.loads(attrs.get("model_config", "{}"))
  needed = at.max(1, initial=0) + 1
  return (
    max(int(needed[0]), config.get("n_layers", 0)),
    max(int(needed[1]), config.get("n_heads", 0)),
  )
