"""Does the whole study find what was planted, and nothing where nothing is?"""

import jax
import numpy as np
import planted_writers
import pytest

from headjax import results
from headjax.studies.writers import cell

DRAWS = 1000


@pytest.fixture(scope="module", autouse=True)
def one_device():
  """Several virtual devices only make the compiler slower."""
  patch = pytest.MonkeyPatch()
  patch.setattr(jax, "local_device_count", lambda: 1)
  yield
  patch.undo()


def study(weights, **options):
  model = planted_writers.model(weights, **options)
  prompts = planted_writers.prompts(model.tokenizer)
  data = cell.measure_cell(model, prompts, draws=DRAWS)
  return data, cell.judge(data, draws=DRAWS)


@pytest.fixture(scope="module")
def planted():
  return study(planted_writers.WEIGHTS)


def test_planted_roles_are_found(planted):
  _, found = planted
  assert found.candidates == [(0, head) for head in range(5)]
  assert found.of_role("writer") == [(0, 0), (0, 1)]
  assert found.of_role("canceller") == [(0, 2)]
  assert found.of_role("weak") == [(0, 3), (0, 4)]
  total = sum(planted_writers.WEIGHTS)
  wanted = np.array(planted_writers.WEIGHTS) / total
  np.testing.assert_allclose(found.shares.direct.mean, wanted, atol=1e-4)
  np.testing.assert_allclose(found.shares.total.mean, wanted, atol=1e-4)


def test_the_discovery_sees_both_signs(planted):
  _, found = planted
  np.testing.assert_array_equal(found.discovery.writers[0], [1, 1, 0, 1, 0])
  np.testing.assert_array_equal(found.discovery.cancellers[0], [0, 0, 1, 0, 0])
  assert found.discovery.control.z[0, 4] == 0


def test_the_verdict_is_canonical(planted):
  _, found = planted
  assert found.accuracy == 1.0
  for ablation in cell.ABLATIONS:
    assert found.verdicts[ablation].name == "canonical"
    changes = found.changes[ablation]
    # Nothing comes after these heads, so what they do adds up.
    both = changes["writers"].estimate + changes["cancellers"].estimate
    assert changes["both"].estimate == pytest.approx(both, abs=1e-4)
  zero = found.changes["zero"]["writers"].estimate
  share = found.changes["zero"]["cancellers"].estimate / zero
  assert share == pytest.approx(-0.4 / 1.6, abs=1e-3)


def test_everything_follows_from_the_saved_datasets(planted, tmp_path):
  data, found = planted
  saved = {}
  for name, dataset in data.items():
    results.save(dataset, tmp_path / f"{name}.nc")
    saved[name] = results.load(tmp_path / f"{name}.nc")
  again = cell.judge(saved, draws=DRAWS)
  assert again.rows() == found.rows()
  assert again.verdicts == found.verdicts
  assert [row["head"] for row in found.rows()][:3] == [
    "L0.H0",
    "L0.H1",
    "L0.H2",
  ]


def test_roles_are_exchanged_by_lesions_of_every_split(planted):
  _, found = planted
  model = planted_writers.model()
  prompts = planted_writers.prompts(model.tokenizer)
  result = cell.shuffle_roles(model, prompts, found, examples=8)
  assert (result.splits, result.exhaustive) == (3, True)
  zero = found.changes["zero"]
  wanted = zero["writers"].estimate - zero["cancellers"].estimate
  assert result.difference == pytest.approx(wanted, rel=0.02)
  # Without 1.0 and 0.6 against -0.4; other splits differ by less.
  assert result.p == pytest.approx(1 / 3)


def test_without_its_cancellers_the_model_is_not_canonical():
  _, found = study((1.0, 0.6, 0.0, 0.01, 0.0))
  assert found.of_role("canceller") == []
  assert {v.name for v in found.verdicts.values()} == {"writers_dominate"}
  assert cell.shuffle_roles(None, None, found) is None


def test_a_model_that_does_nothing_has_no_roles():
  _, found = study((0.0, 0.0, 0.0, 0.0, 0.0))
  assert found.discovery.n_significant == 0
  assert set(found.shares.roles) == {"undefined"}
  assert "0 of 40 pairs have the swing" in found.shares.doubt
  assert {v.name for v in found.verdicts.values()} == {"none"}
  assert found.changes["zero"]["both"].estimate == 0
