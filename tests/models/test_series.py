"""Are checkpoints one series, in order, and is none of them there twice?"""

import json
import shutil

import numpy as np
import pytest
import tiny_folder
from helpers import random_model
from one_line import refusal
from safetensors.numpy import load_file, save_file

from configs import base
from headjax.models.checkpoint_writer import Writer
from headjax.models.from_config import model_config
from headjax.models.load import load_model
from headjax.models.series import find_series, load_series


def write(folder, step, seed):
  return tiny_folder.write(
    folder / f"step{step}", **{
      name.replace(".", "__"): array
      for name, array in tiny_folder.tensors(seed).items()
    },
  )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
  for seed, step in enumerate([10, 9, 1000]):
    write(tmp_path / "series", step, seed)
  return tmp_path / "series"


def test_folders_come_in_the_order_of_their_steps(folder):
  (folder / "notes").mkdir()
  (folder / "step7").write_text("a file")
  found = find_series(folder)
  assert [point.step for point in found] == [9, 10, 1000]
  assert [point.name for point in found] == [
    "series@9", "series@10", "series@1000"
  ]  # fmt: skip
  assert len({point.digest for point in found}) == 3
  for point, (step, model) in zip(found, load_series(found), strict=True):
    assert step == point.step
    assert (model.name, model.digest) == (point.name, point.digest)
    wanted = load_model(folder / f"step{step}").params
    np.testing.assert_array_equal(
      model.params["embed"]["W_E"], wanted["embed"]["W_E"]
    )


def test_names_of_revisions_may_say_more(folder):
  (folder / "step9").rename(folder / "stage1-step9-tokens3B")
  (folder / "step10").rename(folder / "pythia_step_10")
  assert [point.step for point in find_series(folder)] == [9, 10, 1000]


def test_equal_weights_are_refused_however_they_are_stored(folder):
  path = folder / "step1000"
  tensors = load_file(folder / "step9" / "model.safetensors")
  (path / "model.safetensors").unlink()
  index = {}
  for i, name in enumerate(sorted(tensors, reverse=True)):
    file = f"part-{i % 2}.safetensors"
    index[f"transformer.{name}"] = file
  for file in set(index.values()):
    inside = [name for name, where in index.items() if where == file]
    held = {name: tensors[name.removeprefix("transformer.")] for name in inside}
    save_file(held, path / file, metadata={"format": "pt"})
  text = json.dumps({"weight_map": index})
  (path / "model.safetensors.index.json").write_text(text)
  with refusal("series", "the same weights", "step9 ", "step1000"):
    find_series(folder)
  tensors["ln_f.bias"] = np.nextafter(tensors["ln_f.bias"], np.float32(9))
  save_file(tensors, path / "model.safetensors")
  assert len(find_series(folder)) == 3


def test_other_architectures_are_refused_by_their_field(folder):
  config = folder / "step10" / "config.json"
  text = config.read_text()
  config.write_text(text.replace("1e-05", "1e-06"))
  with refusal("series: norm_eps", "1e-05 in step9", "1e-06 in step10"):
    find_series(folder)
  config.write_text(text.replace("{", '{"transformers_version": "4.1",'))
  assert len(find_series(folder)) == 3


def test_two_folders_of_one_step_are_refused(folder):
  shutil.copytree(folder / "step9", folder / "step0009")
  with refusal("step0009 and step9", "step 9"):
    find_series(folder)


def make_run(folder, seeds):
  """A run whose checkpoint of each step has the parameters of a seed."""
  folder.mkdir()
  config = base.get_config()
  base.override(config, {"model.n_layers": 1, "model.n_heads": 2,
                         "model.d_model": 8, "model.d_head": 4,
                         "model.d_mlp": 16, "model.d_vocab": 5,
                         "model.n_ctx": 6})  # fmt: skip
  (folder / "run.json").write_text('{"headjax_run": 1}')
  (folder / "config.json").write_text(json.dumps(config.to_dict()))
  architecture = model_config(config.model)
  with Writer(folder / "checkpoints") as writer:
    for step, seed in seeds.items():
      model, _ = random_model(architecture, seed, dtype="float32")
      writer.save(step, {"params": model.params})
  return folder


def test_a_run_is_a_series_of_its_checkpoints(tmp_path):
  found = find_series(make_run(tmp_path / "mine", {100: 0, 9: 1, 20: 2}))
  assert [point.step for point in found] == [9, 20, 100]
  for point, (step, model) in zip(found, load_series(found), strict=True):
    loaded = load_model(f"{tmp_path / 'mine'}@{step}")
    assert model.name == point.name == f"mine@{step}"
    assert model.digest == point.digest == loaded.digest
    np.testing.assert_array_equal(
      model.params["embed"]["W_E"], loaded.params["embed"]["W_E"]
    )


def test_equal_checkpoints_of_a_run_are_refused(tmp_path):
  folder = make_run(tmp_path / "mine", {0: 0, 5: 1, 10: 0})
  with refusal("series", "the same weights", "mine@0 and", "mine@10"):
    find_series(folder)


def test_a_run_without_checkpoints_says_so(tmp_path):
  with refusal("series", "no checkpoint", "has saved one"):
    find_series(make_run(tmp_path / "mine", {}))


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_folders_without_steps_are_refused(tmp_path, name):
  (tmp_path / "empty").mkdir()
  with refusal(f"series {tmp_path / name}", "step1000, step2000"):
    find_series(tmp_path / name)
