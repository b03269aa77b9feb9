"""How are documents read from TensorFlow Datasets? Without TensorFlow.

Datasets that are stored as ArrayRecord give access to any record, so reading
can begin anywhere. `tensorflow-datasets` is an optional package (the extra
`corpora`) and is imported only when it is used.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import Any

from headjax.checks import check, fail
from headjax.data.documents import Source, digest

# The last one is needed by the first, which does not say so.
INSTALL = "pip install tensorflow-datasets array_record importlib_resources"
HUB_INSTALL = "pip install datasets"
_HUGGINGFACE = "huggingface:"
_FORMAT = "array_record"
_READ = 256  # records read at a time


def from_tfds(
  name: str, *, field: str = "text", split: str = "train"
) -> Source:
  """A dataset by name, downloaded and prepared unless that was done before.

  Args:
    name: of a registered dataset, `NAME/CONFIG`, or of one on the Hugging Face
      Hub, `huggingface:OWNER/NAME/CONFIG@REVISION`, where config and revision
      may be missing; that takes the package `datasets`. TFDS keeps what it
      prepared by name and version: another revision is not fetched again.
    field: the feature that holds the text.
    split: which one, in TFDS' notation, such as `train[:10%]`.

  Raises:
    ValueError: no such dataset, feature or split.
  """
  tfds = _tfds()

  def build():
    if name.startswith(_HUGGINGFACE):
      builder = _hub_builder(tfds, name.removeprefix(_HUGGINGFACE))
    else:
      # Some datasets are not known before.
      importlib.import_module("tensorflow_datasets.text")
      builder = tfds.builder(name, file_format=_FORMAT)
    builder.download_and_prepare()
    return builder

  return _source(name, build, field, split)


def from_tfds_folder(
  path: str | os.PathLike, *, field: str = "text", split: str = "train"
) -> Source:
  """A dataset that was prepared as ArrayRecord before, by its folder.

  Args:
    path: the folder that holds `dataset_info.json`.
    field: the feature that holds the text.
    split: which one, in TFDS' notation.

  Raises:
    ValueError: no such dataset, feature or split.
  """
  tfds = _tfds()
  return _source(
    str(path), lambda: tfds.builder_from_directory(path), field, split
  )


def _tfds():
  try:
    import tensorflow_datasets as tfds
  except ImportError:
    fail("source tfds", "no installed tensorflow-datasets", "it", INSTALL)
  return tfds


def _hub_builder(tfds, name):
  """The builder of a dataset on the Hub.

  TFDS' own `huggingface:` names are in lower case, and looking one up lists
  the whole Hub.
  """
  check(
    importlib.util.find_spec("datasets") is not None,
    f"source tfds {_HUGGINGFACE}{name}",
    "no installed datasets",
    "the package that reads the Hub",
    HUB_INSTALL,
  )
  name, _, revision = name.partition("@")
  parts = name.split("/", 2)
  return tfds.dataset_builders.HuggingfaceDatasetBuilder(
    hf_repo_id="/".join(parts[:2]),
    hf_config=parts[2] if len(parts) == 3 else None,
    file_format=_FORMAT,
    **({"revision": revision} if revision else {}),
  )


def _source(name, build: Callable[[], Any], field, split) -> Source:
  """The source that reads one split of a builder."""
  where = f"source tfds {name}"
  try:
    builder = build()
    records = builder.as_data_source(split)
  except (
    ImportError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
  ) as error:
    # Some of these messages go on with all datasets that there are.
    fail(
      where,
      str(error).split("\n")[0] or type(error).__name__,
      f"a dataset stored as ArrayRecord with a split {split}",
      "check its name, and that it can be downloaded",
    )
  check(
    field in builder.info.features,
    f"{where}: feature",
    repr(field),
    "one of " + ", ".join(sorted(builder.info.features)),
    "name the one that holds the text with --field",
  )

  def read(start) -> Iterator[str]:
    for first in range(start, len(records), _READ):
      numbers = range(first, min(first + _READ, len(records)))
      batch = records.__getitems__(list(numbers))
      for number, record in zip(numbers, batch, strict=True):
        yield _text(f"{where}, record {number}", record[field])

  info = builder.info
  stored = [
    [part.name, part.num_bytes, part.shard_lengths]
    for part in info.splits.values()
  ]
  licence = info.redistribution_info.license
  return Source(
    name=info.full_name,
    licences=(licence or f"as stated by {info.homepage or name}",),
    identity=digest([info.full_name, split, field, len(records), stored]),
    read=read,
    packages=("tensorflow-datasets", "array-record"),
  )


def _text(where, value):
  """The text of a record, which holds its bytes."""
  check(
    isinstance(value, bytes),
    where,
    type(value).__name__,
    "bytes of text",
    "name the feature that holds the text with --field",
  )
  try:
    return value.decode()
  except UnicodeDecodeError as error:
    fail(where, error, "UTF-8", "repair the dataset")
