"""What is in the folder of a run, and may this command go on with it?

  run.json        what it was made with: corpus, and versions at every start
  config.json     the whole config
  tokenizer.json  the vocabulary of its corpus
  metrics.jsonl   losses and rates; events.* tell TensorBoard the same
  checkpoints/    N/ is the state after N steps
  run.lock        who writes here

A folder that holds a run goes on only with the same config and corpus.
"""

import datetime
import json
import pathlib
import platform
import socket
import sys
from collections.abc import Mapping
from typing import Any

import jax
from etils import epath

from headjax.checks import check
from headjax.data.token_files import Corpus
from headjax.data.toy import Toy
from headjax.files import write_text
from headjax.models import runs, tokenizers
from headjax.models.packages import installed_version
from headjax.results import git_revision

# Fields that change no number of a run, only what is told and kept of it, or
# where its corpus is.
FREE = (
  "data.folder",
  "train.log_every",
  "train.evaluate_every",
  "train.evaluate_sequences",
  "train.checkpoint_steps",
  "train.checkpoint_minutes",
)
_FORMAT = 1
_PACKAGES = (
  "headjax", "jax", "jaxlib", "flax", "optax", "numpy", "orbax-checkpoint",
  "tensorstore", "tokenizers",
)  # fmt: skip


def check_same(
  folder: epath.Path, config: Mapping[str, Any], corpus: Corpus | Toy
) -> None:
  """Refuses a folder that is not free and not of this run.

  Args:
    folder: of the run.
    config: the whole config, in plain values.
    corpus: what the run reads.

  Raises:
    ValueError: it belongs to something else; the message says what differs.
  """
  manifest, saved = folder / runs.MANIFEST, folder / runs.CONFIG
  if not manifest.exists():
    check(
      not saved.exists(),
      f"workdir {folder}",
      f"a folder with a {runs.CONFIG} of something else",
      "a new folder, or that of a run",
      "choose another --workdir",
    )
    return
  recorded = runs.read_json(manifest)["corpus"]["digest"]
  check(
    recorded == corpus.digest,
    f"workdir {folder}: corpus",
    f"{corpus.name} with digest {corpus.digest[:12]}",
    f"digest {recorded[:12]}, with which the run began",
    "give it its corpus back, or begin another --workdir",
  )
  if saved.exists():  # it is written after the manifest
    changed = differences(runs.read_json(saved), config)
    check(
      not changed,
      f"workdir {folder}: config",
      "; ".join(changed),
      "the config with which the run began",
      "undo the change, or begin another --workdir",
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
  """The fields, but for `FREE` ones, that are not the same: old -> new."""
  before, after = flat(old), flat(json.loads(json.dumps(new)))
  return [
    f"{field} {before.get(field, 'absent')!r} -> {after.get(field, 'absent')!r}"
    for field in sorted(before.keys() | after.keys())
    if field not in FREE and before.get(field) != after.get(field)
  ]


def write(
  folder: epath.Path,
  config: Mapping[str, Any],
  corpus: Corpus | Toy,
  *,
  mesh: Mapping[str, int],
  step: int,
) -> None:
  """Writes down a start.

  Args:
    folder: of the run; `check_same` has passed.
    config: the whole config, in plain values.
    corpus: what the run reads.
    mesh: devices along each axis.
    step: at which it goes on; 0 for a new run.
  """
  path = folder / runs.MANIFEST
  manifest = runs.read_json(path) if path.exists() else {}
  manifest[runs.MARK] = _FORMAT
  manifest["corpus"] = {
    "name": corpus.name,
    "digest": corpus.digest,
    "tokenizer": corpus.tokenizer.digest,
  }
  manifest.setdefault("starts", []).append(_start(mesh, step))
  write_text(path, json.dumps(manifest, indent=2) + "\n")
  write_text(folder / runs.CONFIG, json.dumps(config, indent=2) + "\n")
  tokenizers.write(corpus.tokenizer, folder)


def _start(mesh: Mapping[str, int], step: int) -> dict[str, Any]:
  device = jax.devices()[0]
  return {
    "at_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "step": step,
    "command": sys.argv,
    "host": socket.gethostname(),
    "processes": jax.process_count(),
    "devices": jax.device_count(),
    "device_kind": device.device_kind,
    "mesh": dict(mesh),
    "python": platform.python_version(),
    "versions": {name: installed_version(name) for name in _PACKAGES},
    "git_revision": git_revision(pathlib.Path(__file__).parents[2]),
  }


def flat(section: Any, prefix: str = "") -> dict[str, Any]:
  """The fields of a config in plain values: dotted name -> value."""
  if not isinstance(section, Mapping):
    return {prefix[:-1]: section}
  found = {}
  for key, value in section.items():
    found |= flat(value, f"{prefix}{key}.")
  return found
