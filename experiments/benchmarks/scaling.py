r"""What would a step on many devices hold and send? From the compiled program.

No step is run and no device is needed: for a Llama of 7 billion parameters on
64 devices and GPT-2 on 8, each on several meshes, the training step is compiled
and its memory and its collectives are read from the program. One CSV line a
case: GiB of the state's share and of all arguments and temporaries of a device,
its largest single array, and for each kind of collective how many a step does
and how many GB each device sends.

By default the devices are virtual ones of the CPU, and it takes seconds. They
have no bfloat16, so what is bfloat16 elsewhere counts twice, and for a
reduce-scatter an all-reduce stands. `--tpu` asks the compiler of the TPUs
themselves, in minutes and again without any TPU; it comes with
`pip install 'jax[tpu]'`.

  python experiments/benchmarks/scaling.py [--only llama-7b-fsdp64 ...] \
    [--tpu v5e:8x8]
"""

import csv
import dataclasses
import math
import os
import sys
import time

import jax
import jax.numpy as jnp
from jax.experimental import topologies

from configs.geometry import get_config
from experiments.benchmarks import traffic
from headjax import command_line
from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.from_config import model_config
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.sharding import MeshShape, make_mesh
from headjax.training.step import Trainer

GIB = 2**30
LLAMA_7B = ModelConfig(
  32, 32, 4096, 128, 11008, 32000, 4096,
  norm="rmsnorm", positions="rotary", mlp="swiglu",
  qkv_bias=False, out_bias=False, mlp_bias=False, tied=False,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
  """A model on a mesh, with `batch` sequences of its context in a step."""

  config: ModelConfig
  mesh: MeshShape
  batch: int

  @property
  def n_devices(self) -> int:
    """Devices of the mesh."""
    return math.prod(dataclasses.astuple(self.mesh))


def cases() -> dict[str, Case]:
  """Name -> case."""
  gpt2 = model_config(get_config("learned").model)
  return {
    "llama-7b-fsdp64": Case(LLAMA_7B, MeshShape(1, 64, 1), 64),
    "llama-7b-data4-fsdp16": Case(LLAMA_7B, MeshShape(4, 16, 1), 64),
    "llama-7b-data2-fsdp8-tensor4": Case(LLAMA_7B, MeshShape(2, 8, 4), 64),
    "gpt2-data8": Case(gpt2, MeshShape(8, 1, 1), 32),
    "gpt2-fsdp8": Case(gpt2, MeshShape(1, 8, 1), 32),
  }


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  names = list(cases())
  parser.add_argument("--only", nargs="+", choices=names, default=names)
  parser.add_argument(
    "--tpu", metavar="TOPOLOGY", help="compile for a TPU slice, as v5e:8x8"
  )
  return parser.parse_args(argv)


def main(argv):
  """Prints one CSV line a case."""
  args = parse(argv)
  chosen = {name: cases()[name] for name in args.only}
  n_devices = max(case.n_devices for case in chosen.values())
  devices = tpu(args.tpu) if args.tpu else virtual(n_devices)
  check(
    len(devices) >= n_devices,
    "--tpu",
    f"{args.tpu}, {len(devices)} devices",
    f"{n_devices} or more",
    "ask for a larger slice, or for fewer cases with --only",
  )
  # What compiling costs is part of the answer.
  jax.config.update("jax_enable_compilation_cache", False)
  writer = None
  for name, case in chosen.items():
    start = time.perf_counter()
    state, compiled = compile_step(case, devices[: case.n_devices])
    row = {"case": name} | describe(state, compiled)
    row["compile_s"] = f"{time.perf_counter() - start:.0f}"
    if writer is None:
      writer = csv.DictWriter(sys.stdout, row)
      writer.writeheader()
    writer.writerow(row)
    sys.stdout.flush()


def virtual(n: int) -> list[jax.Device]:
  """As many devices, all of them this machine's CPU."""
  jax.config.update("jax_platforms", "cpu")
  jax.config.update("jax_num_cpu_devices", n)
  return jax.devices()


def tpu(topology: str) -> list[jax.Device]:
  """The devices of a TPU slice, to compile for."""
  # A machine without TPUs has no server to ask about them.
  os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
  os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
  jax.config.update("jax_platforms", "cpu")
  # The step is traced as on a TPU, which decides how attention is computed.
  jax.default_backend = lambda: "tpu"
  return topologies.get_topology_desc(topology, "tpu").devices


def compile_step(case: Case, devices: list[jax.Device]):
  """Shapes and places of the state of a case, and its compiled step."""
  arithmetic = Arithmetic(case.batch, dtype="bfloat16", remat="block")
  trainer = Trainer(
    case.config, Optimizer(steps=1000, warmup=10), arithmetic,
    make_mesh(case.mesh, devices),
  )  # fmt: skip
  state = trainer.abstract_state()
  tokens = jax.ShapeDtypeStruct(
    (case.batch, case.config.n_ctx + 1),
    jnp.int32,
    sharding=trainer.batch_sharding,
  )
  return state, trainer.step.lower(state, tokens).compile()


def describe(state, compiled) -> dict[str, str]:
  """What a step holds and sends, as the columns of a line."""
  memory, text = compiled.memory_analysis(), compiled.as_text()
  row = {
    "parameters": f"{sum(x.size for x in jax.tree.leaves(state.params)):,}",
    "state_gib": f"{own_bytes(state) / GIB:.3f}",
    "arguments_gib": f"{memory.argument_size_in_bytes / GIB:.3f}",
    "temporary_gib": f"{memory.temp_size_in_bytes / GIB:.2f}",
    "largest_array": traffic.largest_array(text),
  }
  found = traffic.collectives(text)
  for kind in traffic.KINDS:
    own = [one for one in found if one.kind == kind]
    row[f"{kind}_n"] = str(sum(one.times for one in own))
    row[f"{kind}_gb"] = f"{sum(one.sent for one in own) / 1e9:.2f}"
  return row


def own_bytes(state) -> int:
  """What one device holds of a state, by its shardings."""
  return sum(
    math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
    for leaf in jax.tree.leaves(state)
  )


if __name__ == "__main__":
  command_line.run(main)
