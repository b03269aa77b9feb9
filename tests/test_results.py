import dataclasses
import json
import subprocess
import types

import jax
import numpy as np
import pytest
import xarray as xr

from headjax import results
from headjax.models.config import ModelConfig

N_EXAMPLES, N_LAYERS, N_HEADS = 4, 3, 2


def fake_model():
  config = ModelConfig(
    n_layers=3, n_heads=2, d_model=8, d_head=4, d_mlp=16, d_vocab=11, n_ctx=7
  )
  return types.SimpleNamespace(
    config=config,
    params={"W": np.zeros(2, np.float32)},
    name="tiny",
    digest="ab12",
  )


def fake_pairs():
  return types.SimpleNamespace(name="sva", split="evaluation", digest="cd34")


def provenance(**settings):
  settings = {"wall_s": 1.5, "chunk": 8} | settings
  return results.provenance(model=fake_model(), pairs=fake_pairs(), **settings)


def example_result():
  random = np.random.default_rng(0)
  effect = random.normal(size=(N_EXAMPLES, N_LAYERS, N_HEADS))
  effect[0, 0, 0] = np.nan
  return results.dataset(
    effect.astype(np.float32),
    random.normal(size=N_EXAMPLES),
    group=np.array(["cat", "dog", "cat", "żółw"]),
    condition=np.array([0, 1, 2, 3], np.int32),
    provenance=provenance(position="all", seed=3, heads=None, tied=True),
  )


@pytest.fixture
def path(tmp_path):
  path = tmp_path / "folder" / "effects.nc"
  results.save(example_result(), path)
  return path


def test_a_result_names_its_dimensions_and_units():
  result = example_result()
  assert result.effect.dims == ("example", "layer", "head")
  assert result.base.dims == ("example",)
  assert result.effect.units == result.base.units == "logits (nats)"
  assert float(result.effect.sel(layer=2, head=1, example=3)) == float(
    result.effect.values[3, 2, 1]
  )


def test_the_names_of_the_arrays_follow_the_metric():
  arrays = np.zeros((2, 3, 4)), np.zeros(2)
  result = results.dataset(*arrays, provenance=provenance())
  assert result.base.long_name == "logit difference"
  assert result.effect.long_name == "logit difference, clean minus patched"
  result = results.dataset(*arrays, provenance=provenance(metric="kl"))
  assert result.effect.long_name == "kl, clean minus patched"
  assert result.effect.units == result.base.units == "nats"


@pytest.mark.parametrize(
  "wrong",
  [
    {"effect": np.zeros((2, 3))},
    {"base": np.zeros(3)},
    {"group": np.array(["a"])},
    {"condition": np.zeros((2, 1), int)},
  ],
)
def test_arrays_that_do_not_belong_together_are_refused(wrong):
  right = {"effect": np.zeros((2, 3, 4)), "base": np.zeros(2)}
  with pytest.raises(ValueError, match=f"^{[*wrong][0]}: got shape"):
    results.dataset(**(right | wrong), provenance=provenance())


def test_loading_gives_back_exactly_what_was_saved(path):
  saved, loaded = example_result(), results.load(path)
  created = loaded.attrs.pop("created_utc")
  assert created <= saved.attrs.pop("created_utc")
  assert saved.identical(loaded)
  assert list(saved.coords) == list(loaded.coords)
  assert saved.variables.keys() == loaded.variables.keys()
  for name in saved.variables:
    assert saved[name].dtype == loaded[name].dtype, name
    assert saved[name].values.tobytes() == loaded[name].values.tobytes(), name
    assert saved[name].attrs == loaded[name].attrs, name
  types_of = [{k: type(v) for k, v in r.attrs.items()} for r in (saved, loaded)]
  assert types_of[0] == types_of[1]


def test_units_and_attributes_never_change_the_numbers(tmp_path):
  result = example_result()
  ones = np.ones(N_EXAMPLES)
  result["age"] = ("example", ones, {"units": "days since 2024-01-01"})
  result["scaled"] = ("example", ones, {"scale_factor": 2.0})
  results.save(result, tmp_path / "a.nc")
  assert result.identical(results.load(tmp_path / "a.nc"))


def test_a_part_of_a_loaded_result_can_be_saved_again(path):
  part = results.load(path).isel(example=[2, 3]).drop_vars("group")
  results.save(part, path)
  assert part.identical(results.load(path))
  assert "coordinates" not in results.load(path).base.attrs


def test_provenance_says_what_was_measured_and_with_what():
  found = provenance(method="suffix", seed=np.int32(5), ablation=None)
  assert (found["model"], found["model_digest"]) == ("tiny", "ab12")
  assert (found["task"], found["split"]) == ("sva", "evaluation")
  assert json.loads(found["model_config"])["n_layers"] == 3
  plain = json.loads(json.dumps(dataclasses.asdict(fake_model().config)))
  assert json.loads(found["model_config"]) == plain
  assert found["jax_version"] == jax.__version__
  assert found["dtype"] == "float32"
  assert (found["device_kind"], found["device_count"]) == ("cpu", 8)
  assert found["method"] == "suffix"
  assert found["ablation"] == "null"
  assert found["seed"] == 5
  assert {type(value) for value in found.values()} <= {str, int, float}


def test_provenance_tells_the_matmul_precision_in_force():
  assert provenance()["matmul_precision"] == "default"
  with jax.default_matmul_precision("highest"):
    assert provenance()["matmul_precision"] == "highest"


def test_a_setting_may_not_hide_a_fact():
  with pytest.raises(ValueError, match="settings: got model_digest"):
    provenance(model_digest="forged")


def test_a_result_without_provenance_is_not_saved(tmp_path):
  with pytest.raises(ValueError, match="provenance"):
    results.save(xr.Dataset({"effect": ("x", np.zeros(2))}), tmp_path / "a.nc")
  assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path):
  before = path.read_bytes()
  broken = example_result().assign_attrs(bad=object())
  with pytest.raises(TypeError):
    results.save(broken, path)
  assert path.read_bytes() == before
  assert [file.name for file in path.parent.iterdir()] == ["effects.nc"]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.9999])
def test_a_truncated_file_is_one_line(path, share):
  raw = path.read_bytes()
  path.write_bytes(raw[: int(share * len(raw))])
  with pytest.raises(ValueError, match="unreadable file") as caught:
    results.load(path)
  assert str(caught.value).startswith(str(path))
  assert "\n" not in str(caught.value)


def test_text_a_foreign_netcdf_and_no_file_are_one_line_each(tmp_path):
  (tmp_path / "text.nc").write_text("layer,head,effect\n" * 100)
  foreign = xr.Dataset({"effect": ("x", np.zeros(2))})
  foreign.to_netcdf(tmp_path / "foreign.nc", engine=results.ENGINE)
  for name, got in [
    ("text", "unreadable file"),
    ("foreign", "another file"),
    ("absent", "no such file"),
  ]:
    with pytest.raises(ValueError, match=got) as caught:
      results.load(tmp_path / f"{name}.nc")
    assert "\n" not in str(caught.value)


def test_the_revision_of_a_checkout_is_its_commit(tmp_path):
  def git(*words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(
      ["git", "-C", tmp_path, *identity, *words],
      capture_output=True,
      check=True,
      text=True,
    ).stdout.strip()

  assert results.git_revision(tmp_path) == "unknown"
  git("init", "-q")
  assert results.git_revision(tmp_path) == "unknown"
  (tmp_path / "file").write_text("a")
  git("add", "file")
  git("commit", "-q", "-m", "Start")
  git("tag", "v1")
  head = git("rev-parse", "HEAD")
  assert results.git_revision(tmp_path) == head
  (tmp_path / "file").write_text("b")
  assert results.git_revision(tmp_path) == f"{head}-dirty"
  assert results.git_revision(tmp_path / "file") == "unknown"
