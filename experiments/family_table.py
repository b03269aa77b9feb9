"""How near is each public family to transformers, and what works on it?

Reads the tiny models of tests/fixtures with what transformers computed from
them, runs them here, and prints the table of docs/families.md:

  python experiments/family_table.py > docs/families.md

It takes about half a minute on two cores and needs no transformers: the
expected values are stored (tests/fixtures/make_huggingface.py).
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from headjax import command_line, load_model, run
from headjax.checks import check
from headjax.models.config import ModelConfig
from headjax.models.decoder import unembed
from headjax.models.families import FAMILIES
from headjax.models.sites import available

FIXTURES = pathlib.Path(__file__).parents[1] / "tests" / "fixtures"
HEAD = """# Public families

Written by `python experiments/family_table.py`; do not edit.

`load_model(folder)` reads `config.json` and safetensors of the architectures
below, `save_model(model, folder)` writes them back bit for bit. A field of
config.json that would change a number and is not supported is refused by name.

Largest difference of the logits from those of transformers (eager attention),
over tiny random models of each family with 1, some or all K/V heads and windows
narrower than the sequence: in float32, and in float64 where transformers can be
made to compute in it. In bfloat16, the largest difference from the exact
(float64) logits, and that of transformers' own bfloat16 beside it; both round.
"""
FOOT = """
What works on which:

- On all of them: `run` with edits of every site that there is,
  `patch_heads` for z, q, k and v in both forms (suffix and general),
  `attribute_heads`, `save_model`. Effects equal a loop of full forwards to
  1e-10 in float64 (tests/interventions/test_public_sweeps.py).
- A head's write is its z times W_O. Where outputs are normed, it is a part of
  what the norm takes in, not of the stream: the site `attn_out` is after the
  norm, sweeps enter before it and are exact, and write spaces and other
  statements from W_O alone are about the norm's input.
- Every expert is computed for every token, so that any weights that an edit
  sets are exact; it costs experts / chosen times the multiply-adds.
- Rotary angles: default, linear and llama3 scaling. Others are refused.
- PyTorch `.bin` weights are refused: a pickle can run code when it is read.
"""


def errors(folder: pathlib.Path) -> dict[str, float]:
  """Largest differences of the logits of one stored model."""
  with np.load(folder / "expected.npz", allow_pickle=False) as file:
    expected = dict(file)
  found = {}
  for dtype in ("float32", "float64", "bfloat16"):
    with jax.enable_x64(dtype == "float64"):
      model = load_model(folder, dtype=dtype)
      resid, _ = run(model.model, model.params, jnp.asarray(expected["tokens"]))
      logits = np.asarray(unembed(model.model, model.params, resid), np.float64)
    reference = "logits" if dtype == "float32" else "logits_64"
    found[dtype] = np.abs(logits - expected[reference]).max()
  theirs = expected["logits_16"] - expected["logits_64"]
  return found | {"theirs": np.abs(theirs).max()}


def row(name: str, folders: list[pathlib.Path]) -> str:
  """One family's line of the table."""
  many = [errors(folder) for folder in folders]
  worst = {key: max(each[key] for each in many) for key in many[0]}
  configs = [load_model(folder).config for folder in folders]
  return " | ".join([
    f"| `{name}`",
    ", ".join(sorted({str(config.n_kv_heads) for config in configs})),
    f"{worst['float32']:.0e}",
    f"{worst['float64']:.0e}",
    f"{worst['bfloat16']:.2f} ({worst['theirs']:.2f})",
    f"{lacking(configs[0])} |",
  ])  # fmt: skip


def lacking(config: ModelConfig) -> str:
  """What is special about the sites of a family."""
  there = available(config)
  notes = []
  if config.n_experts:
    notes.append("router_logits, router_weights")
  if there["resid_mid"]:
    notes.append("no resid_mid (parallel)")
  if config.norms_output:
    notes.append("attn_out, mlp_out after a norm")
  return "; ".join(notes) or "all but the router's"


def main(argv):
  """Prints the page."""
  command_line.Parser(__doc__).parse_args(argv)
  folders = sorted(path.parent for path in FIXTURES.glob("*/expected.npz"))
  by_family = {name: [] for name in FAMILIES}
  for folder in folders:
    content = json.loads((folder / "config.json").read_text())
    by_family[content["architectures"][0]].append(folder)
  for name, found in by_family.items():
    check(
      bool(found),
      f"fixtures of {name}",
      "none",
      f"a folder in {FIXTURES}",
      "run tests/fixtures/make_huggingface.py",
    )
  print(HEAD)
  print(
    "| architecture | K/V heads of 4 | float32 | float64 | bfloat16 | sites |"
  )
  print("| --- | --- | --- | --- | --- | --- |")
  for name, found in by_family.items():
    print(row(name, found), flush=True)
  print(FOOT.rstrip())


if __name__ == "__main__":
  command_line.run(main)
