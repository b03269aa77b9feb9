r"""How fast is the sweep over heads, and how far from its floor?

The floor is the multiply-adds that the suffix form cannot avoid, at the rate
of a large matrix product measured between the sweeps of the same run. With
`--peer`, TransformerLens patches the same heads in the same run.

  python experiments/benchmarks/head_patching.py --workloads DIR \
    [--peer PYTHON --peer-script FILE]

DIR holds pairs of a Hugging Face folder and a workload (`clean`, `reference`,
`answer`, `foil` as token ids): gpt2-random with random_gpt2.npz, smollm2-135m
with sva_smollm2.npz. Two more workloads are made here: 64 prompts of 64 tokens
that differ first in the middle, and a .jsonl file of 6 to 80 tokens.
"""

import functools
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import jax
import numpy as np

from experiments.benchmarks.measure import Compilations, MatrixRate, PeakMemory
from headjax import PromptPairs, command_line, load_model, load_task
from headjax.checks import check
from headjax.interventions import cost
from headjax.interventions.chunks import GIB
from headjax.interventions.heads import patch_heads

WORKLOADS = {
  "random_gpt2": "gpt2-random",
  "sva_smollm2": "smollm2-135m",
  "long_gpt2": "gpt2-random",
  "mixed_smollm2": "smollm2-135m",
}


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--workloads", required=True, help="folder, see above")
  parser.add_argument(
    "--only", nargs="+", choices=tuple(WORKLOADS), default=list(WORKLOADS)
  )
  parser.add_argument("--repeats", type=int, default=3)
  parser.add_argument("--examples", type=int, default=64)
  parser.add_argument("--budget-gib", type=float, default=2.0)
  parser.add_argument("--peer", help="Python that has TransformerLens")
  parser.add_argument("--peer-script", help="runs TransformerLens' own patch")
  parser.add_argument(
    "--peer-heads", type=int, default=24, help="heads the peer patches"
  )
  return parser.parse_args(argv)


def main(argv):
  """Runs the workloads and prints one JSON line for each."""
  args = parse(argv)
  check(
    (args.peer is None) == (args.peer_script is None),
    "--peer",
    "one of --peer and --peer-script",
    "both or neither",
    "give the Python and its script",
  )
  # What compiling costs is part of the answer.
  jax.config.update("jax_enable_compilation_cache", False)
  folder = pathlib.Path(args.workloads)
  for name in args.only:
    model = load_model(folder / WORKLOADS[name])
    pairs = workload(name, folder, model).select(slice(args.examples))
    row = measure(model, pairs, args, MatrixRate())
    if args.peer and (folder / f"{name}.npz").exists():
      row |= compare(name, folder, row, args)
    print(json.dumps({"workload": name} | row), flush=True)


def workload(name, folder, model) -> PromptPairs:
  """The prompts of a workload, from its file or made here."""
  path = folder / f"{name}.npz"
  if path.exists():
    arrays = np.load(path, allow_pickle=False)
    fields = ("clean", "reference", "answer", "foil")
    return PromptPairs(**{f: arrays[f] for f in fields}, name=name)
  if name == "long_gpt2":
    return random_prompts(model, n_examples=64, n_pos=64, first=32)
  return mixed_lengths(model)


def random_prompts(model, n_examples, n_pos, first) -> PromptPairs:
  """Random prompts that differ in the token at `first`."""
  rng = np.random.default_rng(0)
  clean = rng.integers(0, model.config.d_vocab, (n_examples, n_pos))
  swapped, answer, foil = rng.integers(0, model.config.d_vocab, (3, n_examples))
  reference = clean.copy()
  reference[:, first] = swapped
  return PromptPairs(clean, reference, answer, foil, name="random")


def mixed_lengths(model, n_examples=32) -> PromptPairs:
  """Agreement prompts after zero or more others, 6 to 80 tokens, as JSONL."""
  sva = load_task("sva", model.tokenizer, examples=4 * n_examples)
  text = model.tokenizer.decode
  prompts = [text(ids) for ids in sva.clean]
  rows = []
  for i in range(n_examples):
    before = prompts[n_examples : n_examples + i % 10]
    context = "".join(f"{prompt} stood still. " for prompt in before)
    rows.append(
      {
        "clean": f"{context or 'Now '}{text(sva.clean[i])}",
        "reference": f"{context or 'Now '}{text(sva.reference[i])}",
        "answer": text([sva.answer[i]]),
        "foil": text([sva.foil[i]]),
      }
    )
  with tempfile.TemporaryDirectory() as place:
    path = pathlib.Path(place) / "mixed_smollm2.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return load_task(path, model.tokenizer)


def measure(model, pairs, args, rate) -> dict:
  """Medians over warm sweeps, each between two measurements of the rate."""
  budget = int(args.budget_gib * GIB)
  sweep = functools.partial(patch_heads, model, pairs, budget_bytes=budget)
  madds = cost.suffix_sweep(
    model.config, pairs.first_difference, pairs.answer_pos
  )
  with PeakMemory() as memory, Compilations() as compilations:
    sweep()
  seconds, shares, rates = [], [], []
  for _ in range(args.repeats):
    before = rate.measure()
    start = time.perf_counter()
    sweep()
    seconds.append(time.perf_counter() - start)
    rates.append((before + rate.measure()) / 2)
    shares.append(madds / seconds[-1] / rates[-1])
  n_patches = len(pairs) * model.config.n_layers * model.config.n_heads
  return {
    "examples": len(pairs),
    "tokens": f"{pairs.lengths.min()} to {pairs.lengths.max()}",
    "patches_per_second": round(n_patches / statistics.median(seconds), 1),
    "seconds": round(statistics.median(seconds), 2),
    "multiply_adds": float(f"{madds:.4g}"),
    "matrix_rate_gmac": round(statistics.median(rates) / 1e9, 1),
    "share_of_floor": round(statistics.median(shares), 3),
    "sweep_compiles": compilations.count("_suffix_rows"),
    "sweep_compile_s": round(compilations.seconds("_suffix_rows"), 2),
    "all_compile_s": round(compilations.seconds(), 2),
    "peak_gib_over_parameters": round(memory.n_bytes / GIB, 2),
    "budget_gib": args.budget_gib,
  }


def compare(name, folder, ours, args) -> dict:
  """The peer's rate on the same prompts, and how many times slower it is."""
  command = [
    args.peer, args.peer_script, "run",
    "--model", str(folder / WORKLOADS[name]),
    "--workload", str(folder / f"{name}.npz"),
    "--examples", str(ours["examples"]), "--limit", str(args.peer_heads),
  ]  # fmt: skip
  done = subprocess.run(command, capture_output=True, text=True)
  check(
    done.returncode == 0,
    "--peer",
    (done.stderr.strip().splitlines() or ["no output"])[-1],
    "a run that succeeds",
    "try the peer's script by itself",
  )
  theirs = json.loads(done.stdout.strip().splitlines()[-1])
  rate = theirs["patches_per_second"]
  return {
    "peer_patches_per_second": rate,
    "times_the_peer": round(ours["patches_per_second"] / rate, 2),
  }


if __name__ == "__main__":
  command_line.run(main)
