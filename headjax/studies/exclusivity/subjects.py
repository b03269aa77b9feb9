"""Which models does the study measure? Runs, checkpoints and model names."""

import dataclasses
import glob
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from headjax.checks import check
from headjax.data.token_files import open_corpus
from headjax.data.toy import Toy
from headjax.models import runs
from headjax.training.recorder import read_metrics

NO_SEED = -1


@dataclasses.dataclass(frozen=True)
class Subject:
  """One model of the study.

  Attributes:
    spec: what `load_model` takes.
    name: of its folder among the results; FOLDER or FOLDER@STEP of a run.
    design: the row of the config, with its scale; of another model, its name.
    seed: of the run; -1 for another model.
    corpus: that the run was trained on, "" for another model.
    validation_loss: the last one of the run, in nats a token; nan without.
    folder: of a whole run, whose checkpoints make a series; "" of a single
      checkpoint and of another model.
  """

  spec: str
  name: str
  design: str
  seed: int = NO_SEED
  corpus: str = ""
  validation_loss: float = float("nan")
  folder: str = ""

  @property
  def labels(self) -> dict[str, str | int | float]:
    """What the results of this model are marked with."""
    return {
      "run": self.name,
      "design": self.design,
      "seed": self.seed,
      "corpus": self.corpus,
      "validation_loss": self.validation_loss,
    }


def find(specs: Sequence[str]) -> list[Subject]:
  """The models behind run folders, RUN@STEP, model names and patterns.

  Args:
    specs: as `load_model` takes them; those with *, ? or [ are patterns of
      folders.

  Raises:
    ValueError: nothing matches a pattern, or two models have one name.
  """
  found = []
  for spec in specs:
    matches = [spec]
    if glob.has_magic(spec):
      matches = sorted(m for m in glob.glob(spec) if runs.is_run(m))
      check(
        bool(matches),
        "--runs",
        repr(spec),
        "a pattern that some run folders match",
        "check the path, with the pattern in quotes",
      )
    found += [_subject(match) for match in matches]
  names = [subject.name for subject in found]
  twice = sorted({name for name in names if names.count(name) > 1})
  check(
    not twice,
    "--runs",
    f"{', '.join(twice)} twice",
    "models with different names",
    "rename a folder, or measure them one after the other",
  )
  return found


def _subject(spec: str) -> Subject:
  run = runs.find(spec)
  if run is None:
    name = pathlib.Path(spec).name
    return Subject(spec, name, name)
  folder, step = run
  name = folder.resolve().name
  config = runs.read_json(folder / runs.CONFIG)
  return Subject(
    spec=os.fspath(spec),
    name=f"{name}@{step}" if step.isdecimal() else name,
    design=config["name"],
    seed=config["seed"],
    corpus=config["data"]["corpus"],
    validation_loss=_last_loss(folder, step),
    folder="" if step.isdecimal() else os.fspath(folder),
  )


def _last_loss(folder, step: str) -> float:
  """The last validation loss, at a checkpoint's step or before it."""
  last = float("nan")
  for line in read_metrics(folder):
    late = step.isdecimal() and line["step"] > int(step)
    if line.get("validation_loss") is not None and not late:
      last = float(line["validation_loss"])
  return last


def why_no_text(subject: Subject) -> str:
  """Why there is no validation text of a model's own corpus; "" if there is."""
  if not subject.corpus:
    return "no corpus of its own is known"
  folder = _corpus_folder(subject)
  if subject.corpus == Toy.name or folder.is_dir():
    return ""
  return f"its corpus is not in {folder}"


def validation_text(subject: Subject, count: int, length: int) -> np.ndarray:
  """The first sequences of the validation text of a run's corpus.

  Args:
    subject: for which `why_no_text`.
    count: how many sequences.
    length: of each, in tokens.

  Returns:
    `[sequence, pos]` int32 ids.
  """
  indices = np.arange(count)
  if subject.corpus == Toy.name:
    return Toy().validation(indices, length)
  data = _data(subject)
  corpus = open_corpus(
    _corpus_folder(subject), sampling=data["sampling"], d_vocab=2**31 - 1
  )
  return corpus.validation(indices, length)


def _data(subject: Subject) -> dict:
  folder, _ = runs.find(subject.spec)
  return runs.read_json(folder / runs.CONFIG)["data"]


def _corpus_folder(subject: Subject) -> pathlib.Path:
  return pathlib.Path(_data(subject)["folder"]) / subject.corpus
