"""Subspaces whose relation is known, for tests."""

import numpy as np


def normal(*shape, seed=0):
  """Standard normal numbers of that shape."""
  return np.random.default_rng(seed).normal(size=shape)


def rotation(size, seed=0):
  """A random orthogonal matrix."""
  return np.linalg.qr(normal(size, size, seed=seed))[0]


def planes(angles, seed=0):
  """Two subspaces with these principal angles, in general position."""
  k = len(angles)
  first = np.eye(2 * k)[:, :k]
  second = np.vstack([np.diag(np.cos(angles)), np.diag(np.sin(angles))])
  turn = rotation(2 * k, seed)
  mix = [rotation(k, seed + i) * (1 + np.arange(k)) for i in (1, 2)]
  return turn @ first @ mix[0], turn @ second @ mix[1]
