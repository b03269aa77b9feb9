"""Over how many heads is an effect spread? E, Neff and its two factors.

With e the mean effect of a head, E = sum |e| and p = |e| / E, Neff is the
exponential of the entropy of p: 1 if one head does everything, the number of
heads if all do the same. It is the product of the effective number of head
indices and of the effective number of layers within an index.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import entr, rel_entr

from headjax.checks import check
from headjax.outline import of_fields, table_of_fields
from headjax.statistics.draws import p_value, permuted_null
from headjax.statistics.effects import as_effects, mean_effect


class Factors(NamedTuple):
  """The two factors of Neff.

  Attributes:
    n_index: `[...]` effective number of head indices.
    n_layer: `[...]` effective number of layers, given the index.
  """

  n_index: np.ndarray
  n_layer: np.ndarray

  __repr__ = of_fields
  _repr_html_ = table_of_fields


@dataclasses.dataclass(frozen=True, repr=False)
class Concentration:
  """How an effect is spread over the heads of a model.

  Attributes:
    total: E, the sum of the heads' absolute mean effects, in logits. Heads are
      patched one at a time, so this is no effect of patching them together.
    neff: effective number of heads; `n_index * n_layer`.
    neff_example: the same from mean |effect|: a head that helps in some
      examples and harms in others keeps its weight.
    n_index: effective number of head indices.
    n_layer: effective number of layers, given the index.
    n_index_null_median: median of `n_index` when the heads of each layer are
      permuted.
    p_index: lower-tail p of `n_index` under these permutations.
    draws: number of permutations.
  """

  total: float
  neff: float
  neff_example: float
  n_index: float
  n_layer: float
  n_index_null_median: float
  p_index: float
  draws: int

  _repr_html_ = table_of_fields

  def __repr__(self):
    """One line, rounded for reading."""
    return (
      f"Concentration(E={self.total:.3g}, Neff={self.neff:.1f} = "
      f"{self.n_index:.1f} indices x {self.n_layer:.1f} layers, "
      f"null indices={self.n_index_null_median:.1f}, p={self.p_index:.2g}, "
      f"example-wise Neff={self.neff_example:.1f})"
    )


def neff(e) -> np.ndarray:
  """Effective number of heads of a table of mean effects.

  Args:
    e: `[..., layer, head]`; signs are ignored.

  Returns:
    `[...]` in [1, layers * heads]; nan where all effects are zero.

  Examples:
    >>> float(neff([[0.0, -3.0], [0.0, 0.0]]))
    1.0

  Source: paper A, section 4, "interventions and metrics".
  """
  return np.exp(entr(_shares(e)).sum(axis=(-2, -1)))


def factorise(e) -> Factors:
  """Neff as a product: head indices times layers within an index.

  With q the shares summed over layers, the first factor is the exponential of
  the entropy of q, the second that of the mean entropy, weighted by q, of the
  layers within an index.

  Args:
    e: `[..., layer, head]`; signs are ignored.

  Returns:
    Factors `[...]` with `n_index * n_layer == neff(e)` up to rounding; nan
    where all effects are zero.

  Examples:
    >>> n_index, n_layer = factorise([[1.0, 0.0], [1.0, 0.0]])
    >>> float(n_index), float(n_layer)
    (1.0, 2.0)

  Source: paper A, section 5.2 and table 3.
  """
  p = _shares(e)
  q = p.sum(axis=-2, keepdims=True)
  n_index = np.exp(entr(q).sum(axis=(-2, -1)))
  return Factors(n_index, np.exp(-rel_entr(p, q).sum(axis=(-2, -1))))


def concentration(
  effects, *, draws: int = 5000, seed: int = 0
) -> Concentration:
  """Summarises over how many heads, indices and layers an effect is spread.

  Args:
    effects: `[example, layer, head]` logit differences, clean minus patched.
    draws: permutations for the null of `n_index`.
    seed: of the permutations.

  Returns:
    The summary; compare `neff` only between models with equally many heads.

  Raises:
    ValueError: if `effects` is no finite table with these axes, or if every
      mean effect is zero: there is nothing to be spread.

  Examples:
    >>> lane = np.zeros((2, 3, 4))
    >>> lane[:, :, 1] = 0.5
    >>> concentration(lane)  # doctest: +NORMALIZE_WHITESPACE
    Concentration(E=1.5, Neff=3.0 = 1.0 indices x 3.0 layers,
    null indices=1.9, p=0.066, example-wise Neff=3.0)

  Source: paper A, sections 4 and 5.2, appendix C (robustness of Neff).
  """
  effects = as_effects(effects)
  e = mean_effect(effects)
  check(
    np.any(e != 0),
    "effects",
    "a mean of zero for every head",
    "at least one head with an effect",
    "check that the reference prompts differ from the clean ones",
  )
  n_index, n_layer = map(float, factorise(e))
  null = permuted_null(
    lambda tables: factorise(tables).n_index, e, draws=draws, seed=seed
  )
  return Concentration(
    total=float(np.abs(e).sum()),
    neff=n_index * n_layer,
    neff_example=float(neff(mean_effect(np.abs(effects)))),
    n_index=n_index,
    n_layer=n_layer,
    n_index_null_median=float(np.median(null)),
    p_index=p_value(null, n_index, tail="lower"),
    draws=draws,
  )


def _shares(e) -> np.ndarray:
  """|e| / E; nan throughout a table of zeros."""
  size = np.abs(np.asarray(e, np.float64))
  total = size.sum(axis=(-2, -1), keepdims=True)
  return np.divide(size, total, out=np.full_like(size, np.nan), where=total > 0)
