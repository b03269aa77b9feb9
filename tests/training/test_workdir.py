import json

import pytest
from one_line import refusal
from training_runs import config

from headjax.data.toy import Toy
from headjax.models import runs
from headjax.training import workdir


class Other(Toy):
  """A corpus with other content under the same name."""

  digest = "f" * 64


def begin(folder, changes=(), step=0):
  record = config(changes).to_dict()
  mesh = {"data": 8}
  workdir.write(folder, record, Toy(), mesh=mesh, step=step)


def check(folder, changes=(), corpus=None):
  record = config(changes).to_dict()
  workdir.check_same(folder, record, corpus or Toy())


def test_a_new_folder_may_be_used(tmp_path):
  check(tmp_path)
  check(tmp_path / "nowhere")


def test_the_same_run_may_go_on(tmp_path):
  begin(tmp_path)
  check(tmp_path)
  begin(tmp_path, step=40)
  manifest = json.loads((tmp_path / "run.json").read_text())
  assert manifest["headjax_run"] == 1
  assert manifest["corpus"]["digest"] == Toy().digest
  assert [start["step"] for start in manifest["starts"]] == [0, 40]
  start = manifest["starts"][0]
  assert start["mesh"] == {"data": 8} and start["devices"] == 8
  assert {"jax", "orbax-checkpoint", "numpy"} <= start["versions"].keys()
  assert start["git_revision"] and start["command"]


def test_config_and_tokenizer_are_those_of_the_run(tmp_path):
  begin(tmp_path)
  saved = json.loads((tmp_path / "config.json").read_text())
  assert saved["model"] == json.loads(json.dumps(config().model.to_dict()))
  tokenizer = runs.read_tokenizer(runs.epath.Path(tmp_path))
  assert tokenizer.digest == Toy().tokenizer.digest
  assert tokenizer.bos == Toy().tokenizer.bos


def test_a_changed_field_is_named_with_both_values(tmp_path):
  begin(tmp_path)
  with refusal(
    f"workdir {tmp_path}: config",
    "model.d_mlp 64 -> 128",
    "optimizer.peak 0.0003 -> 0.01",
    "model.windows None -> [0, 4]",
  ):
    check(
      tmp_path,
      {"model.d_mlp": 128, "optimizer.peak": 0.01, "model.windows": (0, 4)},
    )


@pytest.mark.parametrize(
  ("field", "value"),
  [
    ("seed", 43), ("name", "other"), ("train.steps", 13), ("mesh.fsdp", 2),
    ("train.dtype", "bfloat16"), ("train.accumulate", 2),
    ("data.sampling", "once"), ("train.loss_rows", 64), ("train.unroll", 2),
  ],
)  # fmt: skip
def test_a_field_that_may_change_numbers_may_not_change(tmp_path, field, value):
  begin(tmp_path)
  with refusal("config: got", f"{field} "):
    check(tmp_path, {field: value})


@pytest.mark.parametrize(
  ("field", "value"),
  [
    ("data.folder", "elsewhere"),
    ("train.log_every", 1),
    ("train.evaluate_every", 0),
    ("train.evaluate_sequences", 8),
    ("train.checkpoint_steps", (0, 1, 2)),
    ("train.checkpoint_minutes", 3.0),
  ],
)
def test_a_field_that_changes_no_number_may(tmp_path, field, value):
  begin(tmp_path)
  check(tmp_path, {field: value})


def test_every_free_field_is_one_of_the_config():
  assert set(workdir.FREE) <= workdir.flat(config().to_dict()).keys()


def test_another_corpus_is_refused(tmp_path):
  begin(tmp_path)
  with refusal("corpus: got toy with digest ffffff", Toy().digest[:12]):
    check(tmp_path, corpus=Other())


def test_the_folder_of_something_else_is_refused(tmp_path):
  (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
  with refusal(f"workdir {tmp_path}", "config.json of something else"):
    check(tmp_path)


def test_a_start_that_was_cut_off_after_its_first_file_goes_on(tmp_path):
  begin(tmp_path)
  (tmp_path / "config.json").unlink()
  check(tmp_path, {"seed": 43})
