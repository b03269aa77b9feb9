"""Attention and overlaps of all heads, against plain loops."""

import numpy as np
import pytest
import tiny_folder

from headjax import results
from headjax.data.jsonl import from_jsonl
from headjax.interventions.details import head_details
from headjax.interventions.patterns import patterns
from headjax.models import weights
from headjax.models.load import load_model


@pytest.fixture(scope="module")
def given(tmp_path_factory):
  top = tmp_path_factory.mktemp("details")
  model = load_model(tiny_folder.write(top / "model"))
  (top / "pairs.jsonl").write_text("\n".join(tiny_folder.PAIRS))
  return model, from_jsonl(top / "pairs.jsonl", model.tokenizer)


def test_patterns_are_those_of_the_first_prompts(given):
  model, pairs = given
  found = head_details(model, pairs)
  whole = patterns(model, pairs.clean, lengths=pairs.lengths)
  assert found.pattern.dims == ("prompt", "layer", "head", "query", "key")
  assert found.pattern.sizes["key"] == 5
  assert found.prompt.values.tolist() == [0, 1]
  for prompt, length in ((0, 5), (1, 3)):
    np.testing.assert_allclose(
      found.pattern.values[prompt, :, :, :length, :length],
      whole.values[:, :, prompt, :length, :length],
      atol=1e-6,
    )
  said = found.pattern.coords["token"].values[0]
  assert "".join(said) == " the key near the doors"
  assert found.clean.values[0].split() == "the key near the doors".split()
  assert found.answer.values[3] == " are" and found.foil.values[3] == " is"


def test_overlaps_are_sums_of_squared_cosines(given):
  model, pairs = given
  pk = head_details(model, pairs).pk
  write = np.asarray(weights.per_query_head(model.params, model.config, "W_O"))
  for letter in "QKV":
    read = weights.per_query_head(model.params, model.config, f"W_{letter}")
    for a in range(2):
      for b in range(2):
        u = np.linalg.svd(write[0, a].T, full_matrices=False)[0]
        v = np.linalg.svd(np.asarray(read[1, b]), full_matrices=False)[0]
        one = pk.sel(
          input=letter, source_layer=0, source_head=a, layer=1, head=b
        )
        np.testing.assert_allclose(one, ((u.T @ v) ** 2).sum(), rtol=1e-4)
  blank = np.isnan(pk.values)
  assert blank[:, 1].all() and blank[:, 0, :, 0].all()
  assert not blank[:, 0, :, 1].any()


def test_what_is_too_large_is_left_out(given, tmp_path):
  model, pairs = given
  found = head_details(model, pairs, most_bytes=4 * 4 * 9)
  assert found.prompt.values.tolist() == [1, 3]
  assert "pk" not in found  # 3 inputs of 16 pairs are more
  none = head_details(model, pairs, most_bytes=1)
  assert set(none.data_vars) == set() and len(none.clean) == 4
  results.save(none, tmp_path / "details.nc")
  assert results.load(tmp_path / "details.nc").attrs["method"] == "details"
