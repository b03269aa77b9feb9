"""How does a folder of checkpoints become one series, in the order of steps?

It is the folder of a training run (`headjax.models.runs`), or one that holds a
Hugging Face folder for each step, `step1000`, `step2000`, ..., as the revisions
of Pythia are called. Before the first is loaded it is known that all have one
architecture, and that no two hold the same weights: that would be the same
point of training twice, with another label.
"""

import dataclasses
import hashlib
import os
import pathlib
import re
from collections.abc import Iterator

from headjax.checks import check, fail
from headjax.models import checkpoints, huggingface, runs, tensor_files
from headjax.models.config import ModelConfig
from headjax.models.load import LoadedModel, load_model

_STEP = re.compile(r"(?:.*[-_])?step[-_]?(\d+)(?:[-_].*)?")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """One point of training.

  Attributes:
    step: how many updates it is behind.
    spec: what `load_model` takes.
    name: SERIES@STEP, for labels.
    digest: sha256, in hex, of names, shapes, types and contents of its
      weights, however they are spread over files.
  """

  step: int
  spec: str
  name: str
  digest: str


def find_series(folder: str | os.PathLike[str]) -> list[Checkpoint]:
  """The checkpoints of a folder, in the order of their steps.

  Args:
    folder: of a training run, or with one Hugging Face folder a step.

  Raises:
    ValueError: there are none, two have the same step, architectures differ,
      or two hold the same weights; the message names both.
  """
  name = os.fspath(folder)
  found = _of_run(name) if runs.is_run(name) else _of_folders(name)
  seen: dict[str, Checkpoint] = {}
  for checkpoint in found:
    twin = seen.setdefault(checkpoint.digest, checkpoint)
    check(
      twin is checkpoint,
      f"series {name}",
      f"the same weights in {twin.spec} and {checkpoint.spec}",
      "other weights at every step",
      "remove one of them, or download it again",
    )
  return found


def load_series(
  series: list[Checkpoint], *, dtype: str = "float32"
) -> Iterator[tuple[int, LoadedModel]]:
  """Loads one checkpoint after the other.

  Args:
    series: from `find_series`.
    dtype: of the parameters, as in `load_model`.

  Yields:
    The step, and the model; one is in memory at a time.
  """
  for point in series:
    # No name for it here: the last one is gone before the next one comes.
    yield (
      point.step,
      dataclasses.replace(
        load_model(point.spec, dtype=dtype),
        name=point.name,
        digest=point.digest,
      ),
    )


def _of_run(name: str) -> list[Checkpoint]:
  """All of a run have the config of the run."""
  run, _ = runs.find(name)
  folder = run / runs.CHECKPOINTS
  steps = checkpoints.steps(folder)
  check(
    bool(steps),
    f"series {name}",
    "no checkpoint",
    "at least one",
    "wait until the run has saved one",
  )
  return [
    Checkpoint(
      step,
      f"{name}@{step}",
      f"{run.resolve().name}@{step}",
      checkpoints.read_meta(folder, step).digest(runs.PARAMS),
    )
    for step in steps
  ]


def _of_folders(name: str) -> list[Checkpoint]:
  folder = pathlib.Path(name)
  series, found, configs = folder.resolve().name, [], {}
  for step, path in sorted(_by_step(folder).items()):
    opened = huggingface.open_folder(path)
    configs.setdefault(opened.config, path)
    if len(configs) > 1:
      _refuse(configs)
    digest = _digest(opened)
    found.append(Checkpoint(step, str(path), f"{series}@{step}", digest))
  return found


def _by_step(folder: pathlib.Path) -> dict[int, pathlib.Path]:
  """Step -> its folder."""
  found: dict[int, pathlib.Path] = {}
  inside = sorted(folder.iterdir()) if folder.is_dir() else []
  for path in inside:
    match = _STEP.fullmatch(path.name)
    if match is None or not path.is_dir():
      continue
    step = int(match[1])
    if step in found:
      fail(
        f"series {folder}",
        f"both {found[step].name} and {path.name}",
        f"one folder for step {step}",
        "move one of them away",
      )
    found[step] = path
  check(
    bool(found),
    f"series {folder}",
    "no folders named by their step",
    "step1000, step2000, ..., or the folder of a training run",
    "check the path, or rename the revisions",
  )
  return found


def _refuse(configs: dict[ModelConfig, pathlib.Path]) -> None:
  """Fails, with the first field in which two architectures differ."""
  (one, first), (other, second) = configs.items()
  for field in dataclasses.fields(one):
    values = getattr(one, field.name), getattr(other, field.name)
    if values[0] != values[1]:
      fail(
        f"series: {field.name}",
        f"{values[0]} in {first.name} and {values[1]} in {second.name}",
        "one architecture",
        "keep the checkpoints of one run in the folder",
      )


def _digest(opened: huggingface.Opened) -> str:
  """Of what the tensors hold; the files are read once, a tensor at a time."""
  parts = {}
  names = {name: short for short, name in opened.stored.items()}
  for name, array in tensor_files.read(opened.found, names):
    content = hashlib.sha256(array.tobytes()).hexdigest()
    parts[names[name]] = f"{array.dtype} {array.shape} {content}"
  lines = [f"{name} {part}\n" for name, part in sorted(parts.items())]
  return hashlib.sha256("".join(lines).encode()).hexdigest()
