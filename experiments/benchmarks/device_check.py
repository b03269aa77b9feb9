r"""What does headjax reach on this device? One command, at most 8 minutes.

Prints one JSON line each for the rate of a large matrix product, in bfloat16
and in float32 at full precision; for training steps of the 124 million
parameters of `learned` at 32 x 512 tokens, in several arithmetics; and for
patching all heads of a model of GPT-2's shape, with random weights, on 240
prompts of 15 tokens. The loss and gradient norm of the first step must agree
between the arithmetics, up to rounding: float32 does not use the kernels that
bfloat16 does.

It is made for one GPU or TPU; of several, shares are those of all together.
Steps in float32 use the device's default precision, so their share of the rate
at full precision may exceed 1; with --small no share means anything. What would
begin after --minutes is left out, and said to be.

  python experiments/benchmarks/device_check.py [--minutes 6] [--small]
"""

import functools
import json
import time

import jax
import jax.numpy as jnp

from configs.geometry import get_config
from experiments.benchmarks import head_patching
from experiments.benchmarks.measure import MatrixRate
from experiments.benchmarks.training import Case, Step
from headjax import command_line
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder
from headjax.models.from_config import model_config
from headjax.models.load import LoadedModel
from headjax.training.peak import peak_flops
from headjax.training.utilisation import step_madds

GIB = 2**30
SMALL = ModelConfig(2, 2, 32, 16, 64, 64, 16)
# The first is the one to look at; float32 is what its numbers are held to.
ARITHMETICS = {
  "bfloat16": {"dtype": "bfloat16"},
  "float32": {},
  "bfloat16, unrolled": {"dtype": "bfloat16", "unroll": 12},
  "bfloat16, remat": {"dtype": "bfloat16", "remat": "block"},
}


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--minutes", type=float, default=6.0)
  parser.add_argument("--repeats", type=int, default=3)
  parser.add_argument("--budget-gib", type=float, default=4.0)
  parser.add_argument(
    "--small", action="store_true", help="tiny sizes, to try the command"
  )
  return parser.parse_args(argv)


def main(argv):
  """Prints one JSON line a measurement."""
  args = parse(argv)
  deadline = time.monotonic() + 60 * args.minutes
  # What compiling costs is part of the answer.
  jax.config.update("jax_enable_compilation_cache", False)
  show("device", kind=jax.devices()[0].device_kind, n=jax.device_count())
  size = 128 if args.small else 8192
  rates = {name: MatrixRate(size, name) for name in ("bfloat16", "float32")}
  show("matrix", **{f"{k}_gmac": r.measure() / 1e9 for k, r in rates.items()})
  steps = [
    (f"training, {name}", functools.partial(training, args, rates, options))
    for name, options in ARITHMETICS.items()
  ]
  patching = functools.partial(patch, args, rates["float32"])
  for name, step in [*steps[:2], ("head patching", patching), *steps[2:]]:
    late = time.monotonic() > deadline
    show(name, **({"left_out": "for want of time"} if late else step()))


def show(name: str, **values) -> None:
  """Prints one line, numbers with six digits."""
  rounded = {
    key: float(f"{value:.6g}") if isinstance(value, float) else value
    for key, value in values.items()
  }
  print(json.dumps({"check": name} | rounded), flush=True)


def training(args, rates, options) -> dict:
  """Steps on random tokens, in one arithmetic."""
  config = SMALL if args.small else model_config(get_config("learned").model)
  case = Case(config, 8 if args.small else 32, steps=10)
  step = Step(case, **{"loss_rows": 4096} | options)
  step.seconds(1)
  first = {key: float(value) for key, value in step.metrics.items()}
  seconds = step.seconds(case.steps)
  rate = rates[options.get("dtype", "float32")].measure()
  madds = step_madds(config, case.batch)
  peak = peak_flops()
  memory = step.step.memory_analysis()
  return {
    "parameters": step.n_params,
    "first_loss": first["loss"],
    "first_grad_norm": first["grad_norm"],
    "tokens_per_s": case.tokens / seconds,
    "mfu": 2 * madds / seconds / peak if peak else None,
    "share_of_rate": madds / seconds / rate / jax.device_count(),
    "compile_s": step.compile_s,
    "arguments_gib": memory.argument_size_in_bytes / GIB,
    "temporaries_gib": memory.temp_size_in_bytes / GIB,
    "peak_gib_so_far": peak_gib(),
  }


def patch(args, rate) -> dict:
  """All heads of GPT-2's shape; the floor is at full float32 precision."""
  config = SMALL if args.small else model_config(get_config("learned").model)
  init = jax.jit(Decoder(config).init)
  ids = jnp.zeros((1, 1), jnp.int32)
  params = init(jax.random.key(0), ids)["params"]
  model = LoadedModel(config, params, None, "random GPT-2", "0" * 64)
  pairs = head_patching.random_prompts(
    model, n_examples=8 if args.small else 240, n_pos=15, first=3
  )
  row = head_patching.measure(model, pairs, args, rate)
  # Of the host, where a device's arrays are not.
  row.pop("peak_gib_over_parameters")
  return row | {"peak_gib_so_far": peak_gib()}


def peak_gib() -> float | None:
  """The most that the device has held since the start, where it tells."""
  found = jax.devices()[0].memory_stats()
  return found["peak_bytes_in_use"] / GIB if found else None


if __name__ == "__main__":
  command_line.run(main)
