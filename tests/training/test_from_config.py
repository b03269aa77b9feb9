import dataclasses

import pytest
from one_line import refusal
from training_runs import config, settings

from headjax.data.toy import Toy
from headjax.training import from_config
from headjax.training.sharding import MeshShape


def test_every_field_of_the_config_reaches_training():
  found = settings({"optimizer.peak": 0.5, "train.unroll": 2, "mesh.fsdp": 2})
  assert found.optimizer.peak == 0.5 and found.optimizer.steps == 12
  assert found.arithmetic.unroll == 2 and found.arithmetic.batch_size == 8
  assert found.mesh == MeshShape(-1, 2, 1)
  assert found.schedule.checkpoint_steps == (0, 5)
  assert found.model.d_vocab == 512 and found.seed == 42


def test_no_field_of_a_training_section_is_left_out():
  small, found = config(), settings()
  taken = {
    "train": (found.arithmetic, found.schedule),
    "optimizer": (found.optimizer,),
    "mesh": (found.mesh,),
  }
  for section, values in taken.items():
    fields = {f.name for v in values for f in dataclasses.fields(v)}
    assert set(small[section]) <= fields, section


def test_the_record_is_the_whole_config():
  assert settings().record == config().to_dict()


def test_toy_needs_no_folder():
  assert isinstance(from_config.corpus(config()), Toy)


def test_a_vocabulary_smaller_than_the_ids_is_refused():
  with refusal("model.d_vocab: got 16", f"at least {Toy().d_vocab}"):
    from_config.corpus(config({"model.d_vocab": 16}))


def test_a_corpus_that_is_not_there_is_refused(tmp_path):
  with refusal(str(tmp_path / "S")):
    from_config.corpus(
      config({"data.corpus": "S", "data.folder": str(tmp_path)})
    )


@pytest.mark.parametrize(
  ("field", "value"), [("train.accumulate", 3), ("train.log_every", 0)]
)
def test_impossible_values_are_refused(field, value):
  with refusal(f"{field}: got {value}"):
    settings({field: value})
