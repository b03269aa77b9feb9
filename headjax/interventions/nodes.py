"""Which parts of a model send to the stream, and which read it?

Senders, in the order of the computation: the token embedding, the position
table (where there is one), then layer by layer its heads and its MLP. What
reads: layer by layer each head's inputs (Q, K, V and, in screening models, the
gate G) and the MLP, and in the end the unembedding. An edge joins a sender to a
receiver that comes after it; with a position table or without, a 12 x 12 model
has 32,936 or 32,491 of them.
"""

import functools
from typing import NamedTuple

import numpy as np

from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.spaces import inputs
from headjax.outline import of_fields, table_of_fields


class Node(NamedTuple):
  """A sender or a receiver.

  Attributes:
    kind: "embedding", "positions", "head", "mlp" or "unembedding".
    layer: of a head or an MLP, else -1.
    head: its index, else -1.
    letter: which input of the head, of a receiver; else "".
  """

  kind: str
  layer: int = -1
  head: int = -1
  letter: str = ""

  __repr__ = of_fields
  _repr_html_ = table_of_fields

  def __str__(self) -> str:
    """For instance "L0H2.K", "L1.mlp", "embedding"."""
    if self.kind == "head":
      input_ = f".{self.letter}" if self.letter else ""
      return f"L{self.layer}H{self.head}{input_}"
    return f"L{self.layer}.mlp" if self.kind == "mlp" else self.kind

  @property
  def sender(self) -> "Node":
    """The same part of the model as a sender."""
    return self._replace(letter="")


def n_inputs(config: ModelConfig) -> int:
  """Senders before the first layer."""
  return 2 if config.positions == "learned" else 1


def per_layer(config: ModelConfig) -> int:
  """Senders in a layer."""
  return config.n_heads + (config.mlp != "none")


@functools.cache
def senders(config: ModelConfig) -> tuple[Node, ...]:
  """All senders, in the order of the computation."""
  found = [Node("embedding"), Node("positions")][: n_inputs(config)]
  for layer in range(config.n_layers):
    found += [Node("head", layer, head) for head in range(config.n_heads)]
    found += [Node("mlp", layer)] * (config.mlp != "none")
  return tuple(found)


@functools.cache
def receivers(config: ModelConfig) -> tuple[Node, ...]:
  """All receivers, in the order of the computation."""
  found = []
  for layer in range(config.n_layers):
    found += [
      Node("head", layer, head, letter)
      for head in range(config.n_heads)
      for letter in inputs(config)
    ]
    found += [Node("mlp", layer)] * (config.mlp != "none")
  return (*found, Node("unembedding"))


def possible(config: ModelConfig) -> np.ndarray:
  """`[receiver, sender]` bool: which edges there are."""
  return np.array(
    [
      [_precedes(config, sender, receiver) for sender in senders(config)]
      for receiver in receivers(config)
    ]
  )


def _precedes(config, sender: Node, receiver: Node) -> bool:
  if receiver.kind == "unembedding" or sender.layer < receiver.layer:
    return True
  # The MLP of a layer reads what its heads wrote, unless they are parallel.
  within = sender.kind == "head" and receiver.kind == "mlp"
  return within and sender.layer == receiver.layer and not config.parallel


def check_splits(config: ModelConfig) -> None:
  """Refuses models whose parts do not simply add up."""
  check(
    not config.norms_output,
    "model",
    "norms of what the heads and MLPs write",
    "parts that add to the stream as they are",
    "one norm over all heads' sum cannot be split among them",
  )
  check_sum(config)


def check_sum(config: ModelConfig) -> None:
  """Refuses models whose stream is not the sum of what was written."""
  check(
    not config.norms_stream,
    "model",
    "norms of the stream after every half",
    "a stream that later layers get as the sum of all writes",
    "measure total effects: behind that norm no write arrives as it was",
  )
