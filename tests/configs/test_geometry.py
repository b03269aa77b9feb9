"""Is every row of the geometry study, at every scale, the model it names?"""

import json
import pathlib

import numpy as np
import pytest
from one_line import refusal

from configs import base, geometry, scales
from headjax.geometry.designs import output_scale
from headjax.models import weights
from headjax.models.from_config import model_config

FACTS = pathlib.Path(__file__).parents[1] / "reference" / "facts.json"
COUNTS = json.loads(FACTS.read_text())["parameter_counts"] | {
  "half-shared": 116_968_704,
  "half-shared-v": 110_499_072,
  **{f"read-common-{letter}": 117_576_960 for letter in "qkv"},
  **{f"all-common-axis-{letter}": 110_499_072 for letter in "qkv"},
  "read-common-4127": 124_040_820,
  "all-common-axis-4511": 124_045_428,
  "all-rotated-4511": 124_045_428,
  "all-rotated-self-4511": 124_045_428,
  "all-rotated-axis-4511": 124_045_428,
  "learned-block-norm": 124_046_592,
  "write-common-axis-block-norm": 116_968_704,
  "write-rotated-block-norm": 116_968_704,
  "write-common-axis-block-norm-3456": 124_051_200,
  "write-rotated-block-norm-3456": 124_051_200,
}
MATCHED = [name for name in geometry.VARIANTS if name[-4:].isdigit()]
SMALL = [
  pytest.param(
    f"{name}@{scale}", marks=[pytest.mark.slow] if scale == "relay" else []
  )
  for name in geometry.VARIANTS
  for scale in scales.SCALES
  if not (scale in ("tiny", "relay") and "routed" in name)
  if not (scale == "relay" and "multiscreen" in name)
]


def count(variant):
  """The parameters of a row, from its real initialised tree."""
  config = model_config(geometry.get_config(variant).model)
  return sum(int(np.prod(shape)) for shape in weights.shapes(config).values())


def arithmetic(m) -> int:
  """The parameters of a `model` section, counted by hand."""
  D, H, d, F = m.d_model, m.n_heads, m.d_head, m.d_mlp
  written = 0 if m.write.kind != "learned" else H * d * D
  if m.attention == "screening":
    head = D * (2 * m.d_key + 2 * d) + 3
    return m.d_vocab * D + m.n_layers * (H * head + written) + 2
  blocks = len(m.read.restricted) if m.read.kind == "block" else 0
  norm = 2 * D * (2 if 0 < blocks < 3 else 1)
  reads = (3 - blocks) * (D * H * d + H * d) + blocks * H * (d * d + d)
  mlp = 2 * D + D * F + F + F * D + D
  layer = norm + reads + written + D * m.out_bias + mlp
  layer += 2 * D * m.value_adapter
  return m.d_vocab * D + m.n_ctx * D + 2 * D + m.n_layers * layer


def test_the_table_has_a_count_for_every_row():
  assert COUNTS.keys() == geometry.VARIANTS.keys()


@pytest.mark.parametrize("variant", geometry.VARIANTS)
def test_a_row_has_exactly_its_parameters(variant):
  section = geometry.get_config(variant).model
  assert count(variant) == arithmetic(section) == COUNTS[variant]


@pytest.mark.parametrize("variant", SMALL)
def test_a_small_model_of_a_row_has_the_parameters_of_its_design(variant):
  assert count(variant) == arithmetic(geometry.get_config(variant).model)


@pytest.mark.parametrize("variant", [*geometry.VARIANTS, *SMALL])
def test_frozen_writes_are_no_parameters(variant):
  section = geometry.get_config(variant).model
  # Names every leaf of the tree, or fails.
  names = weights.shapes(model_config(section))
  assert ("W_O" in names) == (section.write.kind == "learned")
  assert ("b_O" in names) == section.out_bias
  learned = weights.shapes(model_config(geometry.get_config().model))
  if section.attention == "softmax" and not section.value_adapter:
    others = {"block_norm_gain", "block_norm_bias"}
    assert names.keys() <= learned.keys() | others


@pytest.mark.parametrize("scale", ["", "@small", "@tiny"])
@pytest.mark.parametrize("variant", MATCHED)
def test_a_matched_width_is_the_nearest_one(variant, scale):
  wanted, found = count(f"learned{scale}"), count(variant + scale)
  model = geometry.get_config(variant + scale).model
  unit = model.n_layers * (2 * model.d_model + 1)
  assert abs(found - wanted) <= min(
    abs(found + unit - wanted), abs(found - unit - wanted)
  )
  assert scales.matched_d_mlp(model) == model.d_mlp
  assert scale or variant.endswith(str(model.d_mlp))


def test_tiny_and_small_models_have_the_sizes_that_they_promise():
  for name, sizes in {
    "learned@tiny": (4, 8, 128, 16, 512),
    "learned@small": (6, 12, 192, 16, 768),
    "write-routed-sum-hub@small": (6, 16, 192, 16, 768),
    "mlp3456@tiny": (4, 8, 128, 16, 576),
  }.items():
    m = geometry.get_config(name).model
    got = (m.n_layers, m.n_heads, m.d_model, m.d_head, m.d_mlp)
    assert got == sizes
  assert geometry.get_config("value384@small").model.value_adapter == 96


def test_members_of_the_bases_are_those_of_the_paper():
  for name, write, read in [
    ("write-common", [0] * 12, []),
    ("write-rotated", range(12), []),
    ("all-rotated", range(12), range(12, 24)),
    ("all-rotated-self", range(12), range(12)),
    ("all-rotated-axis-4511", range(12), []),
    ("all-rotated@tiny", range(4), range(8, 12)),
    ("all-rotated@small", range(6), range(6, 12)),
    ("half-shared@tiny", range(4), []),
  ]:
    config = model_config(geometry.get_config(name).model)
    assert config.write.members == tuple(write)
    assert config.read.members == tuple(read)


def test_a_frozen_write_is_as_strong_as_a_learned_one_unless_it_says_so():
  for name, live, d_head in [
    ("write-common-axis", 64, 64),
    ("fixeddiag", 51, 64),
    ("fixeddiag@tiny", 12, 16),
    ("fixeddiag@small", 12, 16),
  ]:
    config = model_config(geometry.get_config(name).model)
    g = output_scale(config.d_model, config.n_layers)
    np.testing.assert_allclose(config.write.scale, g * (d_head / live) ** 0.5)
    assert (config.write.live or d_head) == live
    dense = config.write.dense(config.sizes)[0]
    power = (dense**2).sum() / config.d_model
    np.testing.assert_allclose(power, g**2)
  assert abs(output_scale(768, 12) - 0.1131370849898476) < 1e-15
  for name, scale in [
    ("identity-original", 1.0),
    ("multiscreen-identity", 0.1),
  ]:
    for size in ("", "@small", "@tiny"):
      config = model_config(geometry.get_config(name + size).model)
      assert config.write.scale == scale


def test_the_21_repository_names_are_rows_with_corpus_and_seed():
  assert len(geometry.REPOSITORY_NAMES) == 21
  for name, (row, corpus, seed) in geometry.REPOSITORY_NAMES.items():
    config = geometry.get_config(name)
    assert (config.name, config.data.corpus, config.seed) == (
      name,
      corpus,
      seed,
    )
    assert config.model.to_dict() == geometry.get_config(row).model.to_dict()
    if name[-2:].isdigit() and row not in ("value384", "mlp3456"):
      assert name.endswith(str(seed))
  runs = list(geometry.REPOSITORY_NAMES.values())
  assert len(set(runs)) == 21
  paper = set(COUNTS) & set(json.loads(FACTS.read_text())["parameter_counts"])
  assert {row for row, _, _ in runs} == paper
  assert sum(corpus == "R" for _, corpus, _ in runs) == 10
  assert geometry.get_config("rotated-m1-42@tiny").model.n_layers == 4


def test_a_suffix_chooses_the_corpus():
  assert geometry.get_config("write-common-axis").data.corpus == "R"
  assert geometry.get_config("write-common-axis-S").data.corpus == "S"
  assert geometry.get_config("all-rotated").data.corpus == "S"
  assert geometry.get_config("all-rotated-R@tiny").data.corpus == "R"


def test_an_unknown_variant_or_scale_is_refused_with_those_there_are():
  with refusal("variant: got 'write-axis'", "all-rotated-self", "layered42"):
    geometry.get_config("write-axis")
  with refusal("scale: got 'huge'", "tiny, small"):
    geometry.get_config("learned@huge")
  with refusal("write-routed-sum-hub@tiny", "16 heads", "@small"):
    geometry.get_config("write-routed-sum-hub@tiny")
  with refusal("multiscreen-identity@relay", "windows of their own"):
    geometry.get_config("multiscreen-identity@relay")


@pytest.mark.parametrize(
  ("field", "value", "parts"),
  [
    ("model.write.kidn", "axis", ["model.write.kidn", "model.write.kind"]),
    ("modle.d_mlp", 3, ["modle.d_mlp", "model.d_mlp", "seed"]),
    ("seed.x", 3, ["seed.x"]),
    ("model.d_mlp", 0.5, ["config.model.d_mlp", "0.5", "int"]),
    ("model.write.scale", "auto", ["config.model.write.scale", "float"]),
    ("model.write", 3, ["config.model.write"]),
  ],
)
def test_a_misspelt_field_or_a_wrong_type_is_refused(field, value, parts):
  config = base.get_config()
  with refusal("config", *parts):
    base.override(config, {field: value})
  assert config.to_dict() == base.get_config().to_dict()


def test_a_config_grows_no_fields():
  config = geometry.get_config("learned@tiny")
  with pytest.raises(AttributeError):
    config.model.d_mpl = 3
