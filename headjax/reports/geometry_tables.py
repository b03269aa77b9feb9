"""Which numbers stand behind the geometry figures? Tables of labelled rows."""

from typing import Any

import numpy as np

from headjax.geometry.survey import Survey
from headjax.reports.geometry_figures import angle_shares

Rows = list[dict[str, Any]]


def summary(found: Survey) -> Rows:
  """A model in a few quantities: kernels between layers, ranks, sums."""
  lines = _kernels("writes, PK across layers", found.write_pk, later=False)
  for kind, row in found.read_pk.items():
    for letter, pk in row.items():
      name = f"{letter} ({kind}), PK with earlier writes"
      lines += _kernels(name, pk, later=True)
  own, best = found.alignment
  lines.append(("V self-alignment rho, from layer 1", f"{own[1:].mean():.4f}"))
  lines.append(("V reads its own best, from layer 1", f"{best[1:].mean():.1%}"))
  lines.append(("writes, rank", _rank(found.write_rank, found.widths["write"])))
  for kind, row in found.read_rank.items():
    for letter, rank in row.items():
      name = f"{letter} ({kind})"
      excess = _range(found.excess(kind, letter), "+.2g")
      lines.append((f"{name}, rank", _rank(rank, found.widths[letter])))
      lines.append((f"{name}, PK with a layer less dimension", excess))
  return [{"quantity": name, "value": value} for name, value in lines]


def pairs(found: Survey) -> Rows:
  """One row per ordered pair of heads, readers first."""
  columns = {"write_pk": found.write_pk}
  for kind, row in found.read_pk.items():
    columns |= {f"{letter}_{kind}_pk": pk for letter, pk in row.items()}
  index = ("layer", "head", "writer_layer", "writer_head")
  return _rows(index, columns)


def heads(found: Survey) -> Rows:
  """One row per head: ranks and self-alignment."""
  columns = {
    "self_alignment": found.alignment.own,
    "reads_own_best": found.alignment.best.astype(int),
    "write_rank": found.write_rank,
  }
  for kind, row in found.read_rank.items():
    columns |= {f"{letter}_{kind}_rank": rank for letter, rank in row.items()}
  return _rows(("layer", "head"), columns)


def conservation(found: Survey) -> Rows:
  """One row per reader and writing layer: the sum of PK less the dimension."""
  columns = {
    f"{letter}_{kind}_excess": found.excess(kind, letter)
    for kind, row in found.read_pk.items()
    for letter in row
  }
  return _rows(("layer", "head", "writer_layer"), columns)


def angles(found: Survey) -> Rows:
  """One row per bin of the histograms, in degrees: shares of the angles."""
  shares = {}
  for label, values in found.angles.items():
    edges, shares[label] = angle_shares(values)
  return [
    {"from_degrees": float(edges[i])}
    | {label: f"{share[i]:.6g}" for label, share in shares.items()}
    for i in range(len(edges) - 1)
  ]


def _kernels(name: str, pk: np.ndarray, *, later: bool):
  """Means by index and the range, over pairs of layers."""
  first, second = np.indices(pk.shape[::2])
  by_layers = np.moveaxis(pk, 2, 1)
  chosen = by_layers[first > second if later else first != second]
  same = np.eye(pk.shape[1], pk.shape[3], dtype=bool)
  return [
    (f"{name}, same index", f"{chosen[:, same].mean():.4f}"),
    (f"{name}, other indices", f"{chosen[:, ~same].mean():.4f}"),
    (f"{name}, range", _range(chosen, ".4f")),
  ]


def _rank(rank: np.ndarray, width: int) -> str:
  short = int((rank < width).sum())
  return f"{_range(rank, 'd')} of {width}; deficient heads: {short}"


def _range(values: np.ndarray, form: str) -> str:
  return f"{values.min():{form}} to {values.max():{form}}"


def _rows(index: tuple[str, ...], columns: dict[str, np.ndarray]) -> Rows:
  """One row per element of arrays of one shape."""
  shape = next(iter(columns.values())).shape
  flat = {name: values.ravel().tolist() for name, values in columns.items()}
  return [
    dict(zip(index, at, strict=True))
    | {
      name: values[i] if isinstance(values[i], int) else f"{values[i]:.6g}"
      for name, values in flat.items()
    }
    for i, at in enumerate(np.ndindex(shape))
  ]
