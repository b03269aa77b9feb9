"""Does every field of a section reach the ModelConfig, and no bad rule?"""

import copy
import types

import pytest
from one_line import refusal

from headjax.geometry.designs import ReadDesign, WriteDesign, routing
from headjax.models.config import ModelConfig
from headjax.models.from_config import model_config

PLAIN = {
  "n_layers": 2, "n_heads": 4, "d_model": 32, "d_head": 6, "d_mlp": 24,
  "d_vocab": 29, "n_ctx": 12, "n_kv_heads": 2, "norm": "rmsnorm",
  "norm_eps": 1e-6, "positions": "rotary", "rotary_theta": 5e3,
  "mlp": "swiglu", "qkv_bias": False, "out_bias": False, "mlp_bias": False,
  "tied": False, "causal": False, "windows": (0, 3), "value_adapter": 5,
  "attention": "softmax", "d_key": None, "screening_window": 7,
}  # fmt: skip
WRITE = {"kind": "learned", "scale": None, "members": "none", "live": None}
READ = {"kind": "free", "members": "axis", "shift": 4, "restricted": "QKV"}


def section(write=None, read=None, **plain):
  """A section of plain namespaces: no config library is needed."""
  found = types.SimpleNamespace(**(PLAIN | plain))
  found.write = types.SimpleNamespace(
    **(WRITE | {"routing": "none"} | (write or {}))
  )
  found.read = types.SimpleNamespace(**(READ | (read or {})))
  return found


def tiling(**designs):
  return section(n_kv_heads=None, d_head=8, value_adapter=0, **designs)


def test_plain_fields_are_copied():
  given = section()
  before = copy.deepcopy(given)
  assert model_config(given) == ModelConfig(**PLAIN)
  assert given == before


def test_rules_become_members_scales_and_matrices():
  for write, expected in [
    (
      {"kind": "axis", "scale": 0.5, "live": 3},
      WriteDesign("axis", 0.5, live=3),
    ),
    (
      {"kind": "rotated", "scale": 0.5, "members": "common"},
      WriteDesign("rotated", 0.5, (0, 0)),
    ),
    (
      {"kind": "half_shared", "scale": 0.5, "members": "layer"},
      WriteDesign("half_shared", 0.5, (0, 1)),
    ),
  ]:
    assert model_config(tiling(write=write)).write == expected
  for read, expected in [
    ({"kind": "block"}, ReadDesign("block")),
    ({"kind": "block", "members": "layer"}, ReadDesign("block", (0, 1))),
    (
      {"kind": "block", "members": "shifted", "restricted": "QK"},
      ReadDesign("block", (4, 5), "QK"),
    ),
  ]:
    assert model_config(tiling(read=read)).read == expected


def test_a_routing_is_made_for_the_blocks_of_the_stream():
  write = {"kind": "routed", "scale": 1.0, "routing": "split-cycle"}
  config = model_config(section(write, n_heads=6, n_kv_heads=None, d_head=8))
  assert config.write.routing == routing("split-cycle", 6, 4)


def test_a_scale_left_open_is_that_of_a_learned_start():
  write = {"kind": "axis"}
  g = 0.02 * (32 / 4) ** 0.5
  assert model_config(tiling(write=write)).write.scale == pytest.approx(g)
  live = model_config(tiling(write=write | {"live": 2})).write.scale
  assert live == pytest.approx(2 * g)


@pytest.mark.parametrize(
  ("designs", "parts"),
  [
    ({"write": {"members": "all"}}, ["write.members", "common, layer, none"]),
    ({"read": {"members": "none"}}, ["read.members", "axis, layer, shifted"]),
    ({"write": {"routing": "hub"}}, ["routing", "sum-hub"]),
    ({"write": {"kind": "rotated"}}, ["write.members: got 0 members"]),
    ({"write": {"kind": "axes"}}, ["write.kind", "axis"]),
  ],
)
def test_a_rule_that_does_not_exist_is_refused(designs, parts):
  with refusal(*parts):
    model_config(tiling(**designs))
