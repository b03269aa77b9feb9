import pytest
from one_line import refusal

from headjax.data import sources
from headjax.data.sources import open_source


def test_a_folder_is_found_by_its_path(tmp_path):
  (tmp_path / "a.jsonl").write_text('{"body": "x"}')
  source = open_source(f"folder:{tmp_path}", field="body")
  assert list(source.read(0)) == ["x"]


@pytest.mark.parametrize(
  ("name", "function", "given"),
  [
    ("packaged", "from_packages", ((), {})),
    ("tfds:a/b:1", "from_tfds", (("a/b:1",), {"field": "f", "split": "s"})),
    (
      "tfds-folder:/a",
      "from_tfds_folder",
      (("/a",), {"field": "f", "split": "s"}),
    ),
  ],
)
def test_a_name_chooses_the_kind(monkeypatch, name, function, given):
  monkeypatch.setattr(
    sources, function, lambda *args, **options: (args, options)
  )
  assert open_source(name, field="f", split="s") == given


@pytest.mark.parametrize(
  "name", ["", "web", "folder", "folder:", "packaged:x", "tfds", "Folder:/a"]
)
def test_other_names_are_refused(name):
  with refusal("source", repr(name), "packaged, folder:PATH, tfds:NAME"):
    open_source(name)
