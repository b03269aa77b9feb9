"""How are the rows of an experiment kept? As labelled arrays, with provenance.

A row is a dict of numbers and words; the columns that say which row it is
become dimensions, the others arrays over these.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from headjax import results
from headjax.checks import check
from headjax.models.load import LoadedModel

Rows = Sequence[Mapping[str, Any]]


class Text(NamedTuple):
  """What models were measured on, as provenance names it.

  Attributes:
    name: of the task.
    split: of the data.
    digest: of the tokens.
  """

  name: str
  split: str
  digest: str

  @classmethod
  def of(cls, name: str, tokens: np.ndarray, split: str = "test") -> "Text":
    """The text of some token ids, of any shape."""
    tokens = np.ascontiguousarray(tokens, np.int32)
    content = f"{tokens.shape}".encode() + tokens.tobytes()
    return cls(name, split, hashlib.sha256(content).hexdigest())


def provenance(
  models: Sequence[LoadedModel], text: Text, wall_s: float, **settings: Any
) -> dict[str, Any]:
  """The attributes of a table; models that belong together are all named.

  Args:
    models: that were measured, one or more, of one shape.
    text: what on.
    wall_s: seconds that training and measuring took.
    **settings: what else shaped the numbers.
  """
  return results.provenance(
    model=models[0],
    pairs=text,
    wall_s=wall_s,
    chunk=0,
    models=[model.name for model in models],
    model_digests=[model.digest for model in models],
    **settings,
  )


def labelled(
  rows: Rows,
  dims: Sequence[str],
  attrs: Mapping[str, Any],
  units: Mapping[str, str] = {},  # noqa: B006, never changed
) -> xr.Dataset:
  """Rows as a dataset.

  Args:
    rows: with the same columns; a combination of labels occurs at most once.
    dims: the columns that say which row it is.
    attrs: from `provenance`.
    units: of columns; "1" where none is given.

  Returns:
    One array a column, over `dims`; NaN, or "", where there is no row.

  Raises:
    ValueError: two rows have the same labels.
  """
  labels = {dim: list(dict.fromkeys(row[dim] for row in rows)) for dim in dims}
  shape = tuple(len(values) for values in labels.values())
  places = [tuple(labels[d].index(row[d]) for d in dims) for row in rows]
  check(
    len(set(places)) == len(places),
    "rows",
    "two with the same labels",
    f"one for each combination of {', '.join(dims)}",
    "name every column that tells rows apart",
  )
  found = {}
  for name in dict.fromkeys(n for row in rows for n in row if n not in dims):
    words = any(isinstance(row.get(name), str) for row in rows)
    array = np.full(shape, "" if words else np.nan, object if words else float)
    for place, row in zip(places, rows, strict=True):
      value = row.get(name)
      if value is not None:
        array[place] = value
    about = {} if words else {"units": units.get(name, "1")}
    found[name.replace(" ", "_").replace("/", "per")] = (
      tuple(dims), array.astype(str) if words else array, about,
    )  # fmt: skip
  coords = {dim: np.array(values) for dim, values in labels.items()}
  return xr.Dataset(found, coords, attrs=dict(attrs))
