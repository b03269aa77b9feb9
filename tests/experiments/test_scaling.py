"""Do sharded steps send and hold what they should? Compiled, none is run."""

import csv
import functools
import math
import pathlib
import subprocess
import sys

import jax
import pytest
from slow_params import slow_but

from experiments.benchmarks import scaling, traffic
from headjax.models.config import ModelConfig
from headjax.training.sharding import MeshShape

LLAMA = ModelConfig(
  2, 4, 32, 8, 80, 48, 24,
  norm="rmsnorm", positions="rotary", mlp="swiglu",
  qkv_bias=False, out_bias=False, mlp_bias=False, tied=False,
)  # fmt: skip
GPT2 = ModelConfig(2, 4, 32, 8, 128, 48, 24)
BATCH = 64
MESHES = {
  "data": MeshShape(8, 1, 1),
  "fsdp": MeshShape(1, 8, 1),
  "all": MeshShape(2, 2, 2),
}
CASES = [("llama", "fsdp"), ("llama", "all"), ("gpt2", "data")]


@functools.cache
def program(family: str, mesh: str):
  config = {"llama": LLAMA, "gpt2": GPT2}[family]
  return scaling.compile_step(
    scaling.Case(config, MESHES[mesh], BATCH), jax.devices()
  )


def size(array: str) -> int:
  """Elements of an array such as f32[2,3]."""
  return math.prod(map(int, array.partition("[")[2][:-1].split(",")))


@pytest.mark.parametrize(("family", "mesh"), slow_but(CASES[:1], CASES))
def test_no_device_holds_the_stream_of_the_whole_batch(family, mesh):
  text = program(family, mesh)[1].as_text()
  whole = BATCH * GPT2.n_ctx * GPT2.d_model
  assert size(traffic.largest_array(text)) <= whole / 2


@pytest.mark.parametrize(("family", "mesh"), CASES)
def test_layers_are_gathered_one_at_a_time(family, mesh):
  found = traffic.collectives(program(family, mesh)[1].as_text())
  gathers = [one for one in found if one.kind == "all-gather"]
  widest = 32 * 128 * 4  # bytes of the largest matrix, which CPUs widen
  assert all(one.n_bytes <= widest for one in gathers)
  if MESHES[mesh].fsdp == 1:
    assert not gathers
  else:
    assert {one.times for one in gathers} == {1, 2}
  # Nothing goes from one device to another but sums and gathered weights.
  assert {one.kind for one in found} <= {"all-gather", "all-reduce"}


def test_arguments_are_the_share_of_the_state():
  state, compiled = program("llama", "fsdp")
  total = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
  own = scaling.own_bytes(state)
  assert total / 8 <= own < 1.05 * total / 8
  tokens = BATCH / 8 * (LLAMA.n_ctx + 1) * 4
  arguments = compiled.memory_analysis().argument_size_in_bytes
  assert own + tokens <= arguments < 1.02 * (own + tokens)


def test_a_line_says_what_the_program_does():
  row = scaling.describe(*program("llama", "fsdp"))
  n = 2 * (4 * 32 * 32 + 3 * 32 * 80 + 2 * 32) + 2 * 48 * 32 + 32
  assert row["parameters"] == f"{n:,}"
  # 7 matrices of 2 layers, forward and backward, and 2 embeddings.
  assert row["all-gather_n"] == "30"
  assert 0 <= float(row["arguments_gib"]) - float(row["state_gib"]) < 0.001


@pytest.mark.slow
def test_the_script_makes_its_own_devices():
  root = pathlib.Path(__file__).parents[2]
  command = ["experiments/benchmarks/scaling.py", "--only", "gpt2-data8"]
  done = subprocess.run(
    [sys.executable, *command], cwd=root, env={"PYTHONPATH": "."},
    capture_output=True, text=True, check=True,
  )  # fmt: skip
  [row] = csv.DictReader(done.stdout.splitlines())
  # Parameters and two moments, in float32, and two counts.
  assert float(row["state_gib"]) == round(3 * 4 * 124_046_592 / 2**30, 3)
  # Every gradient is summed once over the devices, 7/8 of it sent twice.
  assert float(row["all-reduce_gb"]) > 2 * 7 / 8 * 0.124 * 4
