"""Is a run on two processes the run of one, and are both stopped together?"""

import json
import pathlib
import re
import signal
import socket
import time

import numpy as np
import pytest
from training_runs import ROOT, command, metrics, start

from headjax.models import checkpoints
from headjax.training.lock import Lock

pytestmark = pytest.mark.slow
CHANGES = {
  "train.steps": 20,
  "train.log_every": 1,
  "train.evaluate_every": 10,
  "optimizer.warmup": 0,
}
# Beside a run that is asked for its batches, what each process held of them.
PLACED = ROOT / "tests" / "placed_batches.py"
DEVICES = "--xla_force_host_platform_device_count="


def free_port() -> int:
  with socket.socket() as probe:
    probe.bind(("localhost", 0))
    return probe.getsockname()[1]


def begin(folder, n_processes, n_devices, changes=(), *, placed=False):
  """Starts the processes of a run on virtual devices."""
  arguments = command(folder, CHANGES | dict(changes))
  port, flags = free_port(), [[]]
  if n_processes > 1:
    flags = [
      [f"--coordinator=localhost:{port}", f"--processes={n_processes}",
       f"--process={i}"]
      for i in range(n_processes)
    ]  # fmt: skip
  beside = pathlib.Path(folder).parent
  train = {"program": ("-m", "headjax.train")}
  return [
    start(
      [*arguments, *more],
      beside / f"cache-{n_processes}-{n_devices}-{i}",
      XLA_FLAGS=f"{DEVICES}{n_devices}",
      **({"program": (PLACED, beside / f"{i}.npz")} if placed else train),
    )
    for i, more in enumerate(flags)
  ]


def end(processes):
  """Their statuses and what they said."""
  said = [process.communicate(timeout=300) for process in processes]
  return [process.returncode for process in processes], said


def losses(folder):
  return {
    (line["step"], name): value
    for line in metrics(folder)
    for name, value in line.items()
    if name.endswith("loss")
  }


def batches(folder):
  """`"STEP ROW"` -> the tokens of that row, from all processes of a run."""
  rows = {}
  for file in folder.parent.glob("*.npz"):
    with np.load(file, allow_pickle=False) as held:
      rows |= held
  return rows


@pytest.fixture(scope="module")
def single(tmp_path_factory):
  folder = tmp_path_factory.mktemp("single") / "run"
  statuses, said = end(begin(folder, 1, 1, placed=True))
  assert statuses == [0], said
  return folder


MESHES = [
  (1, 8, {}),
  (1, 8, {"mesh.data": 2, "mesh.fsdp": 2, "mesh.tensor": 2}),
  (2, 4, {}),
  (2, 4, {"mesh.data": 2, "mesh.fsdp": 2, "mesh.tensor": 2}),
]


@pytest.mark.parametrize(("n_processes", "n_devices", "mesh"), MESHES)
def test_losses_and_batches_are_those_of_one_device(
  single, tmp_path, n_processes, n_devices, mesh
):
  folder = tmp_path / "run"
  statuses, said = end(begin(folder, n_processes, n_devices, mesh, placed=True))
  assert statuses == [0] * n_processes, said
  found, wanted = losses(folder), losses(single)
  assert found.keys() == wanted.keys() and len(found) == 23
  for key, value in wanted.items():
    assert found[key] == pytest.approx(value, rel=1e-5), key
  found, wanted = batches(folder), batches(single)
  assert found.keys() == wanted.keys() and len(found) == 20 * 8
  for key, tokens in wanted.items():
    np.testing.assert_array_equal(found[key], tokens, err_msg=key)
  [begun] = json.loads((folder / "run.json").read_text())["starts"]
  assert (begun["processes"], begun["devices"]) == (n_processes, 8)
  assert checkpoints.steps(folder / "checkpoints") == [0, 5, 20]
  complete = f"complete at step 20: {folder}\n"
  # The library that connects CPUs speaks on standard output.
  assert [out.endswith(complete) for out, _ in said] == [True, False][
    :n_processes
  ]


def test_a_run_goes_on_with_other_devices(single, tmp_path):
  """Begun on two processes, stopped by a signal to one, ended on one."""
  folder = tmp_path / "run"
  many = {"train.steps": 4000, "train.evaluate_every": 0}
  processes = begin(folder, 2, 4, many)
  while not (folder / "checkpoints" / "5").exists():
    assert processes[0].poll() is None, end(processes)
    time.sleep(0.1)
  sent = time.time()
  processes[1].send_signal(signal.SIGTERM)
  statuses, said = end(processes)
  assert statuses == [143, 143], said
  step = checkpoints.steps(folder / "checkpoints")[-1]
  saved = (folder / "checkpoints" / str(step)).stat().st_mtime
  assert saved - sent < 10
  assert f"saved at step {step}" in said[0][1]
  statuses, said = end(begin(folder, 1, 2, many | {"train.steps": 4000}))
  assert statuses == [0], said
  assert f"going on from step {step}" in said[0][1]


def test_a_folder_that_is_held_is_refused_by_all_processes(single, tmp_path):
  with Lock(tmp_path / "run"):
    statuses, said = end(begin(tmp_path / "run", 2, 4))
  assert statuses == [2, 2]
  assert "another run holds" in said[0][1]
  assert "process 0 could not take" in said[1][1]


def test_a_checkpoint_that_one_process_cannot_read_is_refused_by_all(
  single, tmp_path
):
  folder = tmp_path / "run"
  statuses, said = end(begin(folder, 2, 4, {"mesh.fsdp": 8}))
  assert statuses == [0, 0], said
  files = sorted((folder / "checkpoints/20/params").rglob("d/*"))
  largest = max(files, key=lambda file: file.stat().st_size)
  largest.write_bytes(b"")
  statuses, said = end(begin(folder, 2, 4, {"mesh.fsdp": 8}))
  assert statuses == [0, 0], said
  # Whose shard the file holds is chance; the first process tells either way.
  reasons = "unreadable params|files that another process cannot read"
  assert re.search(f"checkpoints/20: got ({reasons})", said[0][1])
  assert "going on from step 5" in said[0][1]
  np.testing.assert_allclose(
    list(losses(folder).values()), list(losses(single).values()), rtol=1e-5
  )
