"""What was measured, and with what? Labelled arrays with their provenance.

A result is an `xarray.Dataset` with named dimensions (`example`, `layer`,
`head`, ...), units in the attributes of its arrays and the provenance of the
run in its own. On disk it is a netCDF file, which gives back exactly what was
saved.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import subprocess
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr

from headjax.checks import check, fail
from headjax.files import atomic
from headjax.models.packages import installed_version

if TYPE_CHECKING:
  from headjax.data.pairs import PromptPairs
  from headjax.models.load import LoadedModel

ENGINE = "netcdf4"
LOGIT_DIFFERENCE, LOGITS = "logit_difference", "logits (nats)"
# The attribute by which a file of ours is known.
MARK = "headjax_version"


def dataset(
  effect: np.ndarray,
  base: np.ndarray,
  *,
  group: np.ndarray | None = None,
  condition: np.ndarray | None = None,
  provenance: dict[str, Any],
) -> xr.Dataset:
  """Labels the effects of every head on every example.

  Args:
    effect: `[example, layer, head]` metric of the clean run minus that of the
      patched run; positive means that the head helped.
    base: `[example]` metric of the clean run.
    group: `[example]` labels of the lexical groups.
    condition: `[example]` integer labels of the balanced conditions.
    provenance: what `provenance` returns; its `metric` names what was measured,
      by default the logit difference, in logits (nats).

  Returns:
    A dataset with `effect` and `base`, and the labels as coordinates.

  Raises:
    ValueError: the shapes do not belong together.
  """
  effect, base = np.asarray(effect), np.asarray(base)
  check(
    effect.ndim == 3,
    "effect",
    f"shape {effect.shape}",
    "[example, layer, head]",
    "pass one value per example and head",
  )
  labels = {"group": group, "condition": condition}
  labels = {k: np.asarray(v) for k, v in labels.items() if v is not None}
  for name, array in {"base": base, **labels}.items():
    check(
      array.shape == effect.shape[:1],
      name,
      f"shape {array.shape}",
      f"shape {effect.shape[:1]}, one value per example of effect",
      "pass the arrays of one run",
    )
  dims = ("example", "layer", "head")
  coords = {d: np.arange(n) for d, n in zip(dims, effect.shape, strict=True)}
  metric = provenance.get("metric", LOGIT_DIFFERENCE)
  units = LOGITS if metric == LOGIT_DIFFERENCE else "nats"
  about = {"long_name": metric.replace("_", " "), "units": units}
  drop = about | {"long_name": f"{about['long_name']}, clean minus patched"}
  return xr.Dataset(
    {"effect": (dims, effect, drop), "base": ("example", base, about)},
    coords | {name: ("example", array) for name, array in labels.items()},
    attrs=provenance,
  )


def provenance(
  *,
  model: "LoadedModel",
  pairs: "PromptPairs",
  wall_s: float,
  chunk: int,
  **settings: Any,
) -> dict[str, str | int | float]:
  """Everything that another person needs to make the same numbers again.

  Args:
    model: the measured model.
    pairs: the prompts that it was measured on.
    wall_s: how long the measurement took, compilation included, in seconds.
    chunk: rows computed at once.
    **settings: what else shaped the numbers (method, position, ablation, seed,
      ...); all that netCDF attributes cannot hold is written as JSON.

  Returns:
    Attributes for a dataset: strings and numbers only.

  Raises:
    ValueError: a setting has the name of something that is written anyway.
  """
  device = jax.local_devices()[0]
  weights = jax.tree.leaves(model.params)
  known = {
    "created_utc": datetime.datetime.now(datetime.UTC).isoformat(
      timespec="seconds"
    ),
    "model": model.name,
    "model_digest": model.digest,
    "model_config": json.dumps(dataclasses.asdict(model.config)),
    "task": pairs.name,
    "split": pairs.split,
    "pairs_digest": pairs.digest,
    "dtype": str(np.result_type(*(leaf.dtype for leaf in weights))),
    "matmul_precision": jax.config.jax_default_matmul_precision or "default",
    "device_kind": device.device_kind,
    "device_count": jax.device_count(),
    "chunk": chunk,
    "wall_s": wall_s,
    MARK: installed_version("headjax"),
    "jax_version": jax.__version__,
    "numpy_version": np.__version__,
    "python_version": platform.python_version(),
    "git_revision": git_revision(pathlib.Path(__file__).parents[1]),
  }
  for name in known.keys() & settings.keys():
    fail("settings", name, "a name that is not taken", "rename the setting")
  return {k: _attribute(v) for k, v in (known | settings).items()}


def _attribute(value: Any) -> str | int | float:
  value = _plain(value)
  return value if type(value) in (str, int, float) else json.dumps(value)


def _plain(value: Any) -> Any:
  return value.item() if isinstance(value, np.generic) else value


def git_revision(checkout: pathlib.Path) -> str:
  """The commit of a checkout, with "-dirty" when files differ from it.

  Args:
    checkout: a folder; only when it is itself the top of a checkout is its
      revision told, else "unknown".

  Returns:
    The full hash, or "unknown".
  """
  if not (checkout / ".git").exists():
    return "unknown"
  command = ["git", "-C", checkout, "describe", "--always", "--dirty"]
  try:
    return subprocess.run(
      [*command, "--abbrev=40", "--exclude=*"],
      capture_output=True,
      check=True,
      text=True,
      timeout=10,
    ).stdout.strip()
  except (OSError, subprocess.SubprocessError):
    return "unknown"


def save(result: xr.Dataset, path: str | os.PathLike) -> None:
  """Writes a result as netCDF, whole or not at all.

  Args:
    result: a dataset with provenance; `load` gives back the same one.
    path: the file, `*.nc`; one that exists is replaced.

  Raises:
    ValueError: the dataset carries no provenance.
    OSError: the file cannot be written.
  """
  check(
    MARK in result.attrs,
    "result",
    f"attributes {sorted(result.attrs)}",
    "the provenance of the run",
    "build it with headjax.results.provenance",
  )
  # No fill value: a NaN that was measured is not a missing value.
  exact = {name: {"_FillValue": None} for name in result.variables}
  with atomic(path) as part:
    result.to_netcdf(part, engine=ENGINE, encoding=exact)


def load(path: str | os.PathLike) -> xr.Dataset:
  """Reads a result into memory.

  Args:
    path: a file that `save` wrote.

  Returns:
    The dataset that was saved: equal arrays, types and attributes.

  Raises:
    ValueError: there is no such file, or it is truncated or not a result.
  """
  advice = "give a file that headjax saved, or run the measurement again"
  wanted = "a headjax result (netCDF)"
  if not pathlib.Path(path).is_file():
    fail(str(path), "no such file", wanted, advice)
  try:
    # Units such as "s" stay units: nothing is turned into dates or rescaled.
    result = xr.load_dataset(
      path, engine=ENGINE, mask_and_scale=False, decode_times=False
    )
  except (OSError, ValueError, KeyError, RuntimeError) as error:
    fail(str(path), f"an unreadable file ({error})", wanted, advice)
  check(MARK in result.attrs, str(path), "another file", wanted, advice)
  for owner in (result, *result.variables.values()):
    owner.attrs = {k: _plain(v) for k, v in owner.attrs.items()}
  return result
