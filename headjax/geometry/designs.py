"""Where may heads write and read? Designs chosen before training.

A design is a small static value. It is no parameter: it gets no gradient, no
optimiser slot and no weight decay, and it enters a program in structured form
(a reshape, signs and two narrow products), never as a dense matrix. `dense`
gives the matrix all the same, for analyses and as the oracle of `apply`.

E_h is the d_model x d_head embedding of block h, B_l a Kerdock basis.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from headjax.checks import check, check_choice
from headjax.geometry.kerdock import KerdockBasis, rotate, rotate_back
from headjax.outline import of_fields, table_of_fields

WRITES = ("axis", "half_shared", "learned", "rotated", "routed")
READS = ("block", "block_norm", "free")


@dataclasses.dataclass(frozen=True)
class Sizes:
  """The sizes that a design has to fit."""

  n_layers: int
  n_heads: int
  d_head: int
  d_model: int


class Rotation(NamedTuple):
  """The Kerdock bases of all layers; leading `layer` axis.

  Attributes:
    signs: `[layer, n]`.
    mixer: `[layer, r, r]`.
  """

  signs: jax.Array
  mixer: jax.Array

  __repr__ = of_fields
  _repr_html_ = table_of_fields


@dataclasses.dataclass(frozen=True)
class WriteDesign:
  """What stands in place of the learned W_O.

  Attributes:
    kind: "learned"; "axis", head h writes g E_h; "rotated", g B_l E_h;
      "routed", g sum_b M[b, h] E_b; "half_shared", where even heads write
      g E_h in every layer and odd heads a basis of the odd blocks that
      rotates with the layer.
    scale: g.
    members: Kerdock member of each layer, for "rotated" and "half_shared".
    live: coordinates of a head that are written, from its first; None: all.
    routing: M `[block][head]`, columns of unit norm, for "routed".
  """

  kind: str = "learned"
  scale: float = 1.0
  members: tuple[int, ...] = ()
  live: int | None = None
  routing: tuple[tuple[float, ...], ...] = ()

  @property
  def frozen(self) -> bool:
    """Whether W_O is no parameter."""
    return self.kind != "learned"

  def check(self, sizes: Sizes) -> None:
    """Fails, with the numbers, unless the design fits the sizes."""
    check_choice("write.kind", self.kind, WRITES)
    rotates = self.kind in ("half_shared", "rotated")
    _check_members("write", self.members, rotates, sizes)
    self._check_tiling(sizes)
    check(
      self.live is None or 1 <= self.live <= sizes.d_head,
      "write.live",
      self.live,
      f"1 to d_head = {sizes.d_head} coordinates",
      "write fewer coordinates, or leave live out",
    )
    self.bases(sizes)

  def _check_tiling(self, sizes):
    width = sizes.n_heads * sizes.d_head
    if self.kind == "routed":
      blocks = len(self.routing)
      shape = {len(row) for row in self.routing}
      check(
        shape == {sizes.n_heads} and blocks * sizes.d_head == sizes.d_model,
        "write.routing",
        f"{blocks} blocks of {sorted(shape)} heads",
        f"{sizes.d_model // sizes.d_head} blocks of {sizes.n_heads} heads",
        "give one row a block and one column a head",
      )
    elif self.frozen:
      check(
        width == sizes.d_model,
        "write",
        f"{sizes.n_heads} heads x {sizes.d_head} = {width}",
        f"heads that tile d_model = {sizes.d_model}",
        "change n_heads or d_head, or route the heads",
      )
    check(
      self.kind != "half_shared" or sizes.n_heads % 2 == 0,
      "write",
      f"{sizes.n_heads} heads",
      "an even number for half_shared",
      "use another design or another number of heads",
    )

  def bases(self, sizes: Sizes) -> list[KerdockBasis]:
    """The Kerdock basis of each layer; none for designs without."""
    width = sizes.d_model // (2 if self.kind == "half_shared" else 1)
    return [KerdockBasis(width, member) for member in self.members]

  def rotation(self, sizes: Sizes) -> Rotation | None:
    """The bases as arrays with a layer axis, or None."""
    return _stack(self.bases(sizes))

  def apply(self, z: jax.Array, rotation: Rotation | None) -> jax.Array:
    """What all heads of a layer write together.

    Args:
      z: `[..., head, d_head]`.
      rotation: of this layer, without the layer axis.

    Returns:
      `[..., d_model]`.
    """
    lead, (n_heads, d_head) = z.shape[:-2], z.shape[-2:]
    z = z * self.scale
    if self.live is not None:
      z = z.at[..., self.live :].set(0)
    if self.kind == "routed":
      mixed = jnp.asarray(self.routing, z.dtype)
      return jnp.einsum("...he,bh->...be", z, mixed).reshape(*lead, -1)
    if self.kind == "rotated":
      flat = z.reshape(*lead, n_heads * d_head)
      return rotate(flat, rotation.signs, rotation.mixer)
    if self.kind == "half_shared":
      odd = z[..., 1::2, :]
      flat = odd.reshape(*lead, n_heads // 2 * d_head)
      turned = rotate(flat, rotation.signs, rotation.mixer)
      z = jnp.stack([z[..., 0::2, :], turned.reshape(odd.shape)], axis=-2)
    return z.reshape(*lead, n_heads * d_head)

  def dense(self, sizes: Sizes) -> np.ndarray:
    """The frozen W_O, `[layer, head, d_head, d_model]` float64."""
    n_layers, n_heads = sizes.n_layers, sizes.n_heads
    width = n_heads * sizes.d_head
    blocks = np.eye(sizes.d_model).reshape(-1, sizes.d_head, sizes.d_model)
    if self.kind == "routed":
      one = np.einsum("bh,bed->hed", np.array(self.routing), blocks)
      found = np.stack([one] * n_layers)
    elif self.kind == "axis":
      found = np.stack([blocks] * n_layers)
    elif self.kind == "rotated":
      found = np.stack([basis.dense().T for basis in self.bases(sizes)])
    else:
      found = np.stack([blocks] * n_layers)
      odd = blocks[1::2].reshape(width // 2, sizes.d_model)
      for layer, basis in enumerate(self.bases(sizes)):
        turned = basis.dense().T @ odd
        found[layer, 1::2] = turned.reshape(-1, sizes.d_head, sizes.d_model)
    found = found.reshape(n_layers, n_heads, sizes.d_head, sizes.d_model)
    found = self.scale * found
    found[:, :, sizes.d_head if self.live is None else self.live :] = 0
    return found


@dataclasses.dataclass(frozen=True)
class ReadDesign:
  """What heads read of the stream.

  Attributes:
    kind: "free", all of it after one LayerNorm; "block", head h the block
      R_h^T x after a LayerNorm of its own; "block_norm", all of it after a
      LayerNorm of each block.
    members: Kerdock member of each layer whose blocks are read; empty for the
      coordinate axes.
    restricted: the inputs that a block reader restricts, of "Q", "K", "V".
  """

  kind: str = "free"
  members: tuple[int, ...] = ()
  restricted: str = "QKV"

  @property
  def blocks(self) -> str:
    """The inputs that read a block: a subset of "QKV"."""
    return self.restricted if self.kind == "block" else ""

  @property
  def whole(self) -> bool:
    """Whether some input reads the whole stream after one LayerNorm."""
    return self.kind == "free" or 0 < len(self.blocks) < 3

  def check(self, sizes: Sizes) -> None:
    """Fails, with the numbers, unless the design fits the sizes."""
    check_choice("read.kind", self.kind, READS)
    check(
      self.restricted in ("QKV", "Q", "K", "V", "QK", "QV", "KV"),
      "read.restricted",
      repr(self.restricted),
      "letters of QKV in that order, at least one",
      "name the inputs that read a block",
    )
    if self.kind == "free":
      return
    _check_members("read", self.members, bool(self.members), sizes)
    width = sizes.n_heads * sizes.d_head
    check(
      width == sizes.d_model,
      "read",
      f"{sizes.n_heads} heads x {sizes.d_head} = {width}",
      f"one block a head, which tile d_model = {sizes.d_model}",
      "a reader is as wide as its block: change n_heads or d_head",
    )
    self.bases(sizes)

  def bases(self, sizes: Sizes) -> list[KerdockBasis]:
    """The Kerdock basis of each layer; none for the axes."""
    return [KerdockBasis(sizes.d_model, member) for member in self.members]

  def rotation(self, sizes: Sizes) -> Rotation | None:
    """The bases as arrays with a layer axis, or None."""
    return _stack(self.bases(sizes))

  def apply(
    self, x: jax.Array, rotation: Rotation | None, d_head: int
  ) -> jax.Array:
    """`[..., head, d_head]`: the block that each head reads of `x`."""
    if rotation is not None:
      x = rotate_back(x, rotation.signs, rotation.mixer)
    return x.reshape(*x.shape[:-1], -1, d_head)

  def dense(self, sizes: Sizes) -> np.ndarray:
    """R_h of every head, `[layer, head, d_model, d_head]` float64."""
    eye = [np.eye(sizes.d_model)] * sizes.n_layers
    bases = [b.dense() for b in self.bases(sizes)] or eye
    split = np.stack(bases).reshape(
      sizes.n_layers, sizes.d_model, sizes.n_heads, sizes.d_head
    )
    return np.moveaxis(split, 2, 1)


def _check_members(field, members: tuple[int, ...], wanted: bool, sizes):
  expected = sizes.n_layers if wanted else 0
  check(
    len(members) == expected,
    f"{field}.members",
    f"{len(members)} members",
    f"{expected}, one a layer where the basis is rotated, else none",
    "give one Kerdock member a layer",
  )


def _stack(bases: list[KerdockBasis]) -> Rotation | None:
  if not bases:
    return None
  return Rotation(
    np.stack([basis.signs for basis in bases]),
    np.stack([basis.mixer for basis in bases]),
  )


def output_scale(d_model: int, n_layers: int) -> float:
  """The scale g = 0.02 sqrt(d_model / (2 n_layers)) of a frozen write.

  The gain in root mean square of a learned W_O at its initialisation, so that
  a frozen write starts as large as a learned one.

  Source: paper A, appendix C.
  """
  return 0.02 * math.sqrt(d_model / (2 * n_layers))


def routing(kind: str, n_heads: int, n_blocks: int) -> Any:
  """M `[block][head]` of a routed write; every column has unit norm.

  Args:
    kind: "sum-hub", where the first heads write a block each and the others
      all write block 0; "split-cycle", where each of the others writes equal
      parts of the next few blocks; "angle-split", where head h writes two
      neighbouring blocks at 45 degrees.
    n_heads: at least `n_blocks`.
    n_blocks: of width d_head, that tile the stream.

  Source: the names are paper A's (write-routed A, B, C); the matrices are our
    choice, since the paper gives none.
  """
  check_choice("routing", kind, ("angle-split", "split-cycle", "sum-hub"))
  extra = n_heads - n_blocks
  check(
    0 < extra and (kind != "split-cycle" or n_blocks % extra == 0),
    "routing",
    f"{n_heads} heads into {n_blocks} blocks",
    "more heads than blocks, the surplus a divisor of the blocks",
    "change n_heads",
  )
  matrix = np.zeros((n_blocks, n_heads))
  matrix[:, :n_blocks] = np.eye(n_blocks)
  if kind == "sum-hub":
    matrix[0, n_blocks:] = 1
  elif kind == "split-cycle":
    share = n_blocks // extra
    for k in range(extra):
      matrix[k * share : (k + 1) * share, n_blocks + k] = share**-0.5
  else:
    matrix[:] = 0
    for head in range(n_heads):
      first = n_blocks * head // n_heads
      matrix[first, head] = matrix[(first + 1) % n_blocks, head] = 0.5**0.5
  return tuple(tuple(map(float, row)) for row in matrix)
