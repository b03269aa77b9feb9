"""How do all heads of a model stand to each other?

Everything here takes a Basis `[layer, head, d_model, d_head]`; the first axes
of a result are those of the first argument.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check
from headjax.geometry.angles import principal_angles
from headjax.geometry.kernels import pairwise_projection_kernel
from headjax.geometry.subspaces import Basis
from headjax.outline import of_fields, table_of_fields

PAIRS, SEED = 400, 0  # of heads, for the angles


@dataclasses.dataclass(frozen=True)
class Survey:
  """How the heads of one model stand to each other.

  A kind of read space is "weights" or "norm": by the weights alone, or through
  the norm before them; an input is "Q", "K", "V" or what else the model has.

  Attributes:
    widths: input, or "write" -> the largest rank that its spaces could have.
    write_rank: `[layer, head]`.
    read_rank: kind -> input -> `[layer, head]`.
    write_pk: `[layer, head, layer, head]`, writers with writers.
    read_pk: kind -> input -> `[layer, head, layer, head]`, readers with
      writers.
    alignment: of V, by its weights.
    angles: label -> principal angles in radians; the last label is for random
      spaces.
  """

  widths: dict[str, int]
  write_rank: np.ndarray
  read_rank: dict[str, dict[str, np.ndarray]]
  write_pk: np.ndarray
  read_pk: dict[str, dict[str, np.ndarray]]
  alignment: "Alignment"
  angles: dict[str, np.ndarray]

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def excess(self, kind: str, letter: str) -> np.ndarray:
    """`[layer, head, layer]`: see `conservation_excess`."""
    rank = self.read_rank[kind][letter]
    return conservation_excess(self.read_pk[kind][letter], rank)


class Alignment(NamedTuple):
  """How far heads read what they write themselves.

  Attributes:
    own: `[layer, head]` rho of a head's read space and its own write space.
    best: `[layer, head]` bool, whether no other head of the layer writes more
      of what this head reads.
  """

  own: np.ndarray
  best: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


def survey(write: Basis, read: dict[str, dict[str, Basis]]) -> Survey:
  """Measures a model by the spaces of its heads.

  Args:
    write: `[layer, head, d_model, d_head]`.
    read: kind -> input -> Basis, with the kinds "weights" and "norm".

  Raises:
    ValueError: there is but one layer.
  """
  d_model, d_head = write.columns.shape[2:]
  read_pk = _each(lambda space: kernel_of_all_pairs(space, write), read)
  read_rank = _each(lambda space: np.asarray(space.rank), read)
  write_rank = np.asarray(write.rank)
  values = read_pk["weights"]["V"], read_rank["weights"]["V"]
  widths = {
    letter: space.columns.shape[-1] for letter, space in read["weights"].items()
  }
  return Survey(
    widths | {"write": d_head},
    write_rank,
    read_rank,
    kernel_of_all_pairs(write, write),
    read_pk,
    self_alignment(*values, write_rank),
    {
      "writes with writes": sampled_angles(write, write, PAIRS, SEED),
      "V reads with writes": sampled_angles(
        read["norm"]["V"], write, PAIRS, SEED
      ),
      "random spaces": random_angles(d_model, d_head, PAIRS, SEED),
    },
  )


def _each(function, read):
  return {
    kind: {letter: function(space) for letter, space in row.items()}
    for kind, row in read.items()
  }


def kernel_of_all_pairs(a: Basis, b: Basis) -> np.ndarray:
  """Projection kernels of all pairs of heads, `[layer, head, layer, head]`."""
  pk = pairwise_projection_kernel(_one_axis(a), _one_axis(b))
  return np.asarray(pk).reshape(*a.rank.shape, *b.rank.shape)


def conservation_excess(pk: np.ndarray, rank: np.ndarray) -> np.ndarray:
  """What a reader shares with a layer's writes in all, less its dimension.

  Args:
    pk: `[layer, head, layer, head]` of readers with writers.
    rank: `[layer, head]` of the readers.

  Returns:
    `[layer, head, layer]`; 0 where the writes are an orthogonal decomposition
    of the stream.

  Source: paper A, section 3, proposition 1.
  """
  return pk.sum(axis=-1) - np.asarray(rank)[..., None]


def self_alignment(
  pk: np.ndarray, read_rank: np.ndarray, write_rank: np.ndarray
) -> Alignment:
  """How far heads read their own write space.

  Args:
    pk: `[layer, head, layer, head]` of read with write spaces.
    read_rank: `[layer, head]`.
    write_rank: `[layer, head]`.

  Source: paper A, section 6 (rho_self, on weight-space values).
  """
  layers = np.arange(pk.shape[0])
  return alignment_within(pk[layers, :, layers, :], read_rank, write_rank)


def alignment_within(
  pk: np.ndarray, read_rank: np.ndarray, write_rank: np.ndarray
) -> Alignment:
  """`self_alignment`, from the kernels within each layer alone.

  Args:
    pk: `[layer, reader, writer]`.
    read_rank: `[layer, head]`.
    write_rank: `[layer, head]`.
  """
  own = np.diagonal(pk, axis1=1, axis2=2)
  smaller = np.minimum(read_rank, write_rank)
  return Alignment(own / smaller, own >= pk.max(axis=-1))


def sampled_angles(a: Basis, b: Basis, pairs: int, seed: int) -> np.ndarray:
  """Principal angles of random pairs of heads in different layers.

  Args:
    a: spaces of readers, or of writers.
    b: spaces of writers.
    pairs: how many pairs to draw, with replacement.
    seed: of the draw.

  Returns:
    `[pairs, angle]` in radians, ascending; nan beyond the smaller rank.

  Raises:
    ValueError: there is but one layer.
  """
  n_layers, n_heads = a.rank.shape
  check(n_layers > 1, "layers", n_layers, "at least 2", "survey a deeper model")
  rng = np.random.default_rng(seed)
  first = rng.integers(n_layers, size=pairs)
  second = (first + rng.integers(1, n_layers, size=pairs)) % n_layers
  heads = rng.integers(n_heads, size=(2, pairs))
  at = (first, heads[0]), (second, heads[1])
  drawn = (
    jax.tree.map(lambda x, i=i: x[i], s)
    for s, i in zip((a, b), at, strict=True)
  )
  return np.asarray(principal_angles(*drawn))


def random_angles(
  d_model: int, width: int, pairs: int, seed: int
) -> np.ndarray:
  """Principal angles of pairs of random spaces: what no relation looks like.

  Args:
    d_model: width of the stream.
    width: dimension of either space.
    pairs: how many.
    seed: of the draw.

  Returns:
    `[pairs, width]` in radians, ascending.
  """
  rng = np.random.default_rng(seed)
  a, b = rng.normal(size=(2, pairs, d_model, width))
  return np.asarray(principal_angles(jnp.asarray(a), jnp.asarray(b)))


def _one_axis(space: Basis) -> Basis:
  return jax.tree.map(lambda x: jnp.reshape(x, (-1, *x.shape[2:])), space)
