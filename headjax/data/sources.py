"""Where do documents come from? A source by its name on a command line."""

from headjax.checks import check
from headjax.data.documents import Source, from_folder
from headjax.data.packaged import from_packages
from headjax.data.tfds_documents import from_tfds, from_tfds_folder

SOURCES = ("packaged", "folder:PATH", "tfds:NAME", "tfds-folder:PATH")


def open_source(
  name: str, *, field: str = "text", split: str = "train"
) -> Source:
  """The source that a name means.

  Args:
    name: one of `SOURCES`.
    field: where a JSON object or a record has its text.
    split: of a dataset of TensorFlow Datasets.

  Raises:
    ValueError: no such kind of source, or the source itself is missing.
  """
  kind, colon, rest = name.partition(":")
  kinds = {
    "folder": lambda: from_folder(rest, field=field),
    "packaged": from_packages,
    "tfds": lambda: from_tfds(rest, field=field, split=split),
    "tfds-folder": lambda: from_tfds_folder(rest, field=field, split=split),
  }
  check(
    kind in kinds and bool(rest) == (kind != "packaged"),
    "source",
    repr(name),
    "one of " + ", ".join(SOURCES),
    "choose one of them",
  )
  return kinds[kind]()
