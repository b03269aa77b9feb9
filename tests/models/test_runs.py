"""Is the folder of a training run a model, at any step that was saved?"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tokenizers as backends
from helpers import random_weights
from one_line import refusal

from configs import base
from headjax.models import weights
from headjax.models.checkpoint_writer import Writer
from headjax.models.from_config import model_config
from headjax.models.load import load_model

SIZES = {
  "model.n_layers": 2,
  "model.n_heads": 2,
  "model.d_model": 8,
  "model.d_head": 4,
  "model.d_mlp": 16,
  "model.d_vocab": 5,
  "model.n_ctx": 6,
}


def small_config(**changes):
  config = base.get_config()
  base.override(
    config, SIZES | {k.replace("__", "."): v for k, v in changes.items()}
  )
  return config


def params(config, seed):
  raw = random_weights(model_config(config.model), seed)
  tree = weights.pack(model_config(config.model), raw, "random")
  return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


def make_run(folder, steps=(0, 3, 12), config=None):
  """A run folder whose checkpoint N has the random parameters of seed N."""
  config = config or small_config()
  folder.mkdir(exist_ok=True)
  (folder / "run.json").write_text('{"headjax_run": 1}')
  (folder / "config.json").write_text(json.dumps(config.to_dict()))
  with Writer(folder / "checkpoints") as writer:
    for step in steps:
      state = {"params": params(config, step), "optimizer": jnp.ones(1 + step)}
      writer.save(step, state)
  return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
  return make_run(tmp_path_factory.mktemp("runs") / "mine")


def assert_params(loaded, config, seed):
  found, wanted = (
    jax.tree.leaves(t) for t in (loaded.params, params(config, seed))
  )
  for a, b in zip(found, wanted, strict=True):
    np.testing.assert_array_equal(a, b)


def test_a_run_is_its_newest_checkpoint(run):
  loaded = load_model(run)
  assert loaded.name == "mine@12"
  assert loaded.config == model_config(small_config().model)
  assert_params(loaded, small_config(), 12)


@pytest.mark.parametrize("step", [0, 3, 12])
def test_a_step_names_its_checkpoint(run, step):
  loaded = load_model(f"{run}@{step}")
  assert loaded.name == f"mine@{step}"
  assert_params(loaded, small_config(), step)


def test_a_relative_folder_has_its_own_name(run, monkeypatch):
  monkeypatch.chdir(run)
  assert load_model(".").name == "mine@12"
  monkeypatch.chdir(run.parent)
  assert load_model("mine@3").name == "mine@3"


@pytest.mark.parametrize("step", ["4", "-1", "last", "", "3.0"])
def test_an_unknown_step_lists_those_there_are(run, step):
  with refusal(f"checkpoint of {run}", repr(step), "one of 0, 3, 12"):
    load_model(f"{run}@{step}")


def test_a_run_without_checkpoints_says_so(tmp_path):
  with refusal("newest", "nothing is saved yet"):
    load_model(make_run(tmp_path / "new", steps=()))


def test_a_folder_that_is_no_run_is_no_run(tmp_path):
  with refusal("model: got", "run folder (RUN or RUN@STEP)"):
    load_model(f"{tmp_path / 'nowhere'}@3")
  (tmp_path / "run.json").write_text("{}")
  with refusal(str(tmp_path), "config.json"):  # read as a Hugging Face folder
    load_model(tmp_path)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_parameters_have_the_requested_type(run, dtype):
  leaves = jax.tree.leaves(load_model(run, dtype=dtype).params)
  assert {leaf.dtype for leaf in leaves} == {jnp.dtype(dtype)}


def test_float64_has_the_saved_numbers(run, x64):
  loaded = load_model(run, dtype="float64")
  assert loaded.params["embed"]["W_E"].dtype == jnp.float64
  wanted = params(small_config(), 12)["embed"]["W_E"]
  np.testing.assert_array_equal(loaded.params["embed"]["W_E"], wanted)


def test_the_digest_is_that_of_the_parameters(run, tmp_path):
  digests = {load_model(f"{run}@{step}").digest for step in (0, 3, 12)}
  assert len(digests) == 3 and {len(d) for d in digests} == {64}
  again = make_run(tmp_path / "again", steps=(3,))
  assert load_model(again).digest == load_model(f"{run}@3").digest
  bfloat16 = load_model(f"{run}@3", dtype="bfloat16")
  assert bfloat16.digest == load_model(f"{run}@3").digest


def test_designs_and_tuples_survive_the_json_file(tmp_path):
  config = small_config(
    model__write__kind="axis", model__windows=(0, 3), model__positions="none"
  )
  loaded = load_model(make_run(tmp_path / "axis", (1,), config))
  assert loaded.config == model_config(config.model)
  assert loaded.config.windows == (0, 3)
  assert loaded.config.write.kind == "axis"


def test_the_tokenizer_comes_along(tmp_path):
  folder = make_run(tmp_path / "words", steps=(1,))
  assert load_model(folder).tokenizer is None
  vocabulary = {f"w{i}": i for i in range(5)}
  model = backends.models.WordLevel(vocabulary, unk_token="w0")
  backends.Tokenizer(model).save(str(folder / "tokenizer.json"))
  (folder / "tokenizer_config.json").write_text('{"bos_token": "w2"}')
  tokenizer = load_model(folder).tokenizer
  assert (tokenizer.name, tokenizer.bos, tokenizer.d_vocab) == ("words", 2, 5)


def test_a_damaged_checkpoint_is_named(tmp_path):
  folder = make_run(tmp_path / "bad", steps=(2, 4))
  (folder / "checkpoints/4/params/manifest.ocdbt").write_bytes(b"")
  with refusal(f"{folder}/checkpoints/4", "unreadable params"):
    load_model(folder)
  assert_params(load_model(f"{folder}@2"), small_config(), 2)


@pytest.mark.parametrize("file", ["run.json", "config.json"])
def test_a_damaged_file_is_named(tmp_path, file):
  folder = make_run(tmp_path / "bad", steps=(2,))
  (folder / file).write_text("{")
  with refusal(f"{folder / file}: got Expecting"):
    load_model(folder)
  (folder / file).write_text("[]")
  with refusal(f"{folder / file}: got list"):
    load_model(folder)


def test_another_config_is_refused_by_the_array_that_does_not_fit(tmp_path):
  folder = make_run(tmp_path / "other", steps=(2,))
  config = small_config(model__d_mlp=17)
  (folder / "config.json").write_text(json.dumps(config.to_dict()))
  with refusal("checkpoints/2: params blocks.mlp.W_in", "[2, 8, 16]"):
    load_model(folder)


def test_infinite_parameters_are_refused(tmp_path):
  folder = make_run(tmp_path / "nan", steps=())
  bad = params(small_config(), 0)
  bad["embed"]["W_E"] = bad["embed"]["W_E"].at[0, 0].set(jnp.nan)
  with Writer(folder / "checkpoints") as writer:
    writer.save(1, {"params": bad})
  with refusal("nan@1: embed.W_E", "1 of 40"):
    load_model(folder)
