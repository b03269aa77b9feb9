"""Are the paper's values found for its models, and for no others?"""

import pytest

from configs import geometry
from headjax.models import weights
from headjax.models.from_config import model_config
from headjax.studies.exclusivity import published


def test_the_models_are_those_of_the_configs():
  assert set(published.MODELS) == set(geometry.REPOSITORY_NAMES)
  for name, wanted in geometry.REPOSITORY_NAMES.items():
    assert published.MODELS[name][:3] == wanted


@pytest.mark.parametrize("name", ["dense", "headblock-identity42"])
def test_printed_parameters_are_those_of_the_rows(name):
  config = model_config(geometry.get_config(name).model)
  n = 0
  for shape in weights.shapes(config).values():
    size = 1
    for axis in shape:
      size *= axis
    n += size
  printed = published.MODELS[name].million_parameters
  assert n / 1e6 == pytest.approx(printed, abs=0.005)


def test_every_table_is_of_known_models_and_three_tasks():
  for values, names in published._COLUMNS.values():
    for name, row in values.items():
      assert name in published.MODELS
      assert len(row) == 3 and {len(cells) for cells in row} == {len(names)}


def test_products_of_printed_factors_are_printed_neff():
  # Each number is rounded by itself.
  for name, row in published.FACTORS.items():
    if name in published.SPREAD:
      for (index, layer, _), (neff, _) in zip(
        row, published.SPREAD[name], strict=True
      ):
        reach = 0.05 * (index + layer) + 0.06
        assert index * layer == pytest.approx(neff, abs=reach)


@pytest.mark.parametrize(
  ("design", "corpus", "seed", "wanted"),
  [
    ("learned", "R", 42, "plain-learned42"),
    ("learned-S", "S", 42, "dense"),
    ("dense", "S", 42, "dense"),
    ("learned", "R", 44, None),
    ("learned@tiny", "toy", 42, None),
    ("half-shared", "R", 42, None),
  ],
)
def test_a_run_has_a_name_if_design_corpus_and_seed_are_the_papers(
  design, corpus, seed, wanted
):
  assert published.name_of(design, corpus, seed) == wanted


def test_values_stand_beside_ours_and_nothing_beside_others():
  at = {"design": "learned", "corpus": "S", "seed": 42, "task": "quote"}
  assert published.columns("spread", at) == {
    "paper_neff": 12.0, "paper_E": 12.5
  }  # fmt: skip
  assert published.columns("lanes", at) == {
    "paper_Lambda": None, "paper_p": None
  }  # fmt: skip
  other = published.columns("spread", at | {"task": "mine"})
  assert set(other.values()) == {None}


def test_sizes_and_losses_stand_beside_ours():
  at = {"design": "write-rotated-S", "corpus": "S", "seed": 42, "task": "sva"}
  assert published.model_columns(at) == {
    "paper_million_parameters": 116.97, "paper_validation_loss": 3.563
  }  # fmt: skip
  other = published.model_columns(at | {"seed": 1})
  assert set(other.values()) == {None}


def test_edges_have_the_range_of_their_kind_of_model():
  at = {"design": "write-rotated", "corpus": "S", "seed": 42}
  assert published.edge_columns(at | {"input": "K"}) == {
    "paper_low": 0.05, "paper_high": 0.14
  }  # fmt: skip
  dense = {"design": "dense", "corpus": "S", "seed": 42, "input": "all"}
  assert published.edge_columns(dense)["paper_high"] == 0.32
  none = published.edge_columns(dense | {"seed": 1})
  assert set(none.values()) == {None}
