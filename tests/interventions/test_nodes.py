"""Are the edges of a model those that the field counts?"""

import dataclasses
import json
import pathlib

import numpy as np
from helpers import GPT2, PUBLIC, SCREENING

from headjax.interventions import nodes
from headjax.models.config import ModelConfig

FACTS = pathlib.Path(__file__).parents[1] / "reference" / "facts.json"
SMALL = ModelConfig(12, 12, 16, 5, 24, 29, 12)


def test_gpt2_small_has_as_many_edges_as_published():
  """There token and position embedding are one sender."""
  published = json.loads(FACTS.read_text())["graph_edges_gpt2_small_all_nodes"]
  edges = nodes.possible(SMALL)
  kinds = [node.kind for node in nodes.senders(SMALL)]
  assert kinds[:2] == ["embedding", "positions"]
  assert edges[:, 1:].sum() == published
  assert len(nodes.senders(SMALL)) == 158
  assert edges.sum() == published + 12 * 37 + 1
  rotary = dataclasses.replace(SMALL, positions="none")
  assert nodes.possible(rotary).sum() == published


def names(config):
  """(sender, receiver) of every edge."""
  return {
    (str(nodes.senders(config)[s]), str(nodes.receivers(config)[r]))
    for r, s in np.argwhere(nodes.possible(config))
  }


def test_the_mlp_of_a_parallel_block_does_not_read_its_heads():
  assert ("L1H2", "L1.mlp") in names(GPT2)
  parallel = names(PUBLIC["neox"])
  assert ("L1H2", "L1.mlp") not in parallel
  assert ("L0H2", "L1.mlp") in parallel
  assert ("L1.mlp", "L1.mlp") not in names(GPT2)


def test_nothing_is_sent_backwards():
  edges = names(GPT2)
  assert ("L0.mlp", "L1H3.K") in edges and ("L2.mlp", "unembedding") in edges
  assert ("L1H0", "L1H1.Q") not in edges and ("L1.mlp", "L0.mlp") not in edges


def test_screening_heads_have_a_fourth_input_and_no_mlp():
  edges = names(SCREENING)
  assert ("L0H1", "L2H3.G") in edges
  assert not any("mlp" in end for edge in edges for end in edge)


def test_an_input_of_a_head_belongs_to_that_sender():
  node = nodes.Node("head", 1, 2, "K")
  assert node.sender in nodes.senders(GPT2)
  assert str(node) == "L1H2.K" and str(node.sender) == "L1H2"
