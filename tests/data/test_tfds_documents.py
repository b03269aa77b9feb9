import sys

import numpy as np
import pytest
from one_line import refusal

from headjax.data.tfds_documents import from_tfds, from_tfds_folder

TEXTS = [f"é document {i}\n" for i in range(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  """A dataset prepared as ArrayRecord, in order."""
  tfds = pytest.importorskip("tensorflow_datasets")
  pytest.importorskip("array_record")
  pytest.importorskip("importlib_resources")

  class Tiny(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
      text = tfds.features.Text()
      number = tfds.features.Scalar(np.int32)
      return tfds.core.DatasetInfo(
        builder=self,
        features=tfds.features.FeaturesDict(
          {"text": text, "raw": text, "n": number}
        ),
        disable_shuffling=True,
      )

    def _split_generators(self, manager):
      return {"train": self._generate_examples()}

    def _generate_examples(self):
      for i, text in enumerate(TEXTS):
        yield i, {"text": text, "raw": b"\xff", "n": i}

  path = tmp_path_factory.mktemp("tfds")
  builder = Tiny(data_dir=path, file_format="array_record")
  builder.download_and_prepare()
  return builder.data_path


@pytest.mark.parametrize("start", [0, 1, 255, 256, 599, 600])
def test_records_are_read_in_order_from_anywhere(folder, start):
  assert list(from_tfds_folder(folder).read(start)) == TEXTS[start:]


def test_tensorflow_is_not_needed(folder):
  list(from_tfds_folder(folder).read(590))
  assert "tensorflow" not in sys.modules


def test_a_part_of_a_split_can_be_named(folder):
  part = from_tfds_folder(folder, split="train[:10]")
  assert list(part.read(0)) == TEXTS[:10]
  assert part.identity != from_tfds_folder(folder).identity


def test_a_source_says_what_it_is(folder):
  source = from_tfds_folder(folder)
  assert source.name == "tiny/1.0.0"
  assert source.identity == from_tfds_folder(folder).identity
  assert "as stated by" in source.licences[0]
  assert source.packages == ("tensorflow-datasets", "array-record")


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"split": "test"}, ["Unknown split 'test'", "split test"]),
    ({"field": "body"}, ["'body'", "one of n, raw, text", "--field"]),
  ],
)
def test_what_the_dataset_does_not_have_is_refused(folder, options, parts):
  with refusal("source tfds", *parts):
    from_tfds_folder(folder, **options)


@pytest.mark.parametrize(
  ("field", "parts"),
  [("n", ["record 0", "int", "--field"]), ("raw", ["record 0", "UTF-8"])],
)
def test_a_record_without_text_is_refused(folder, field, parts):
  with refusal("source tfds", *parts):
    list(from_tfds_folder(folder, field=field).read(0))


def test_a_missing_dataset_is_refused(tmp_path):
  pytest.importorskip("tensorflow_datasets")
  with refusal("source tfds", str(tmp_path), "dataset_info.json"):
    from_tfds_folder(tmp_path)
  with refusal("source tfds no_such", "not found", "check its name"):
    from_tfds("no_such")


def test_a_registered_dataset_is_prepared_and_read(monkeypatch, folder):
  tfds = pytest.importorskip("tensorflow_datasets")
  asked = []

  def builder(name, **options):
    asked.append((name, options))
    made = tfds.builder_from_directory(folder)
    monkeypatch.setattr(
      made, "download_and_prepare", lambda: asked.append("prepared")
    )
    return made

  monkeypatch.setattr(tfds, "builder", builder)
  assert list(from_tfds("tiny").read(598)) == TEXTS[598:]
  assert asked == [("tiny", {"file_format": "array_record"}), "prepared"]


@pytest.mark.parametrize(
  ("name", "expected"),
  [
    (
      "OWNER-x/name-y/sample-10BT@87f0",
      {
        "hf_repo_id": "OWNER-x/name-y",
        "hf_config": "sample-10BT",
        "revision": "87f0",
      },
    ),
    ("owner/name", {"hf_repo_id": "owner/name", "hf_config": None}),
    ("squad", {"hf_repo_id": "squad", "hf_config": None}),
  ],
)
def test_names_on_the_hub_are_taken_apart(monkeypatch, folder, name, expected):
  tfds = pytest.importorskip("tensorflow_datasets")
  asked = []

  def builder(**options):
    asked.append(options)
    made = tfds.builder_from_directory(folder)
    monkeypatch.setattr(made, "download_and_prepare", lambda: None)
    return made

  monkeypatch.setattr(
    tfds.dataset_builders, "HuggingfaceDatasetBuilder", builder
  )
  monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
  assert list(from_tfds(f"huggingface:{name}").read(599)) == TEXTS[599:]
  assert asked == [expected | {"file_format": "array_record"}]


def test_without_the_packages_their_installation_is_named(monkeypatch, folder):
  monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
  with refusal("huggingface:a/b", "no installed datasets", "pip install"):
    from_tfds("huggingface:a/b")
  monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
  with refusal("source tfds", "no installed tensorflow-datasets"):
    from_tfds_folder(folder)
