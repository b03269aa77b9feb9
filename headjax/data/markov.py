"""What does a chain of few states look like, and how well can it be told?

Four states in a circle: each stays with probability `stay` and otherwise goes
on to the next, whatever came before. What is known exactly is the oracle of a
model that was trained on it: the best accuracy is that of the likelier move,
and the eigenvalues of the transition matrix are stay + move * w over the fourth
roots of unity w.
"""

import numpy as np

from headjax.checks import check

N_STATES = 4


def transition_matrix(stay: float = 0.75) -> np.ndarray:
  """`[state, next]` probabilities.

  Examples:
    >>> transition_matrix(0.75)[3].tolist()
    [0.25, 0.0, 0.0, 0.75]

  Source: paper D, the synthetic chain.
  """
  check(0 < stay < 1, "stay", stay, "between 0 and 1", "give a probability")
  eye = np.eye(N_STATES)
  return stay * eye + (1 - stay) * np.roll(eye, 1, axis=1)


def sequences(
  n: int, length: int, seed: int, *, stay: float = 0.75
) -> np.ndarray:
  """`[n, length]` int32 states, begun in the even distribution.

  Args:
    n: sequences.
    length: of each, in tokens.
    seed: of the draws.
    stay: probability to remain in a state.
  """
  check(0 < stay < 1, "stay", stay, "between 0 and 1", "give a probability")
  rng = np.random.default_rng(seed)
  moves = rng.random((n, length)) >= stay
  moves[:, 0] = 0
  start = rng.integers(0, N_STATES, (n, 1))
  return ((start + np.cumsum(moves, axis=1)) % N_STATES).astype(np.int32)


def nontrivial_eigenvalues(stay: float = 0.75) -> np.ndarray:
  """`[3]` complex: those of the transition matrix but for 1."""
  values = stay + (1 - stay) * np.exp(0.5j * np.pi * np.array([1, 3, 2]))
  return values
