"""Does the script do what it says, and end well when it cannot?"""

import csv

import numpy as np
import pytest
import tiny_folder

from experiments import head_patching
from headjax import command_line, patch_heads, results
from headjax.data.jsonl import from_jsonl
from headjax.models.load import load_model
from headjax.reports.summary import summarise


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))

  def run(**options):
    given = {"model": tmp_path / "model", "task": tmp_path / "pairs.jsonl"}
    given |= {"out": tmp_path / "out"} | options
    argv = []
    for name, value in given.items():
      values = value if isinstance(value, list) else [value]
      argv += [f"--{name.replace('_', '-')}", *map(str, values)]
    with pytest.raises(SystemExit) as ended:
      command_line.run(head_patching.main, argv)
    return ended.value.code

  return run


@pytest.fixture
def inputs(tmp_path):
  """A model folder and a file of pairs of several lengths."""
  (tmp_path / "pairs.jsonl").write_text("\n".join(tiny_folder.PAIRS))
  return tiny_folder.write(tmp_path / "model")


def test_effects_table_and_pictures_are_written(call, inputs, tmp_path, capsys):
  assert call() == 0
  out = tmp_path / "out"
  written = {path.name for path in out.iterdir()}
  assert written == {
    "effects.nc", "details.nc", "heads.png", "heads.pdf", "summary.csv",
    "commands.json", "report.html",
  }  # fmt: skip
  saved = results.load(out / "effects.nc")
  model = load_model(inputs)
  pairs = from_jsonl(tmp_path / "pairs.jsonl", model.tokenizer)
  assert list(pairs.lengths) == [5, 3, 11, 2]
  again = patch_heads(model, pairs)
  np.testing.assert_array_equal(saved.effect, again.effect)
  summary = summarise(saved)
  printed = capsys.readouterr().out
  for head in summary.top:
    assert str(head) in printed
  with open(out / "summary.csv", newline="") as file:
    assert list(csv.DictReader(file)) == [summary.row]


def test_methods_and_ablations_reach_the_sweep(call, inputs, tmp_path):
  found = {}
  for method in ("suffix", "general"):
    for ablation in ("zero", "mean"):
      out = tmp_path / f"{method}-{ablation}"
      options = {"position": "last", "site": "v"}
      assert call(method=method, ablation=ablation, out=out, **options) == 0
      found[method, ablation] = results.load(out / "effects.nc").effect
  for ablation in ("zero", "mean"):
    np.testing.assert_allclose(
      found["suffix", ablation], found["general", ablation], atol=2e-5
    )
  assert np.abs(found["suffix", "zero"] - found["suffix", "mean"]).max() > 1e-3


def test_several_models_make_one_table(call, inputs, tmp_path):
  other = tiny_folder.write(
    tmp_path / "other", ln_f__weight=np.ones(8, np.float32)
  )
  assert call(model=[inputs, other]) == 0
  with open(tmp_path / "out" / "summary.csv", newline="") as file:
    assert [row["model"] for row in csv.DictReader(file)] == ["model", "other"]
  for name in ("model-pairs", "other-pairs"):
    assert (tmp_path / "out" / name / "effects.nc").is_file()


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"model": "gpt5"}, ["model", "gpt5", "smollm2-135m"]),
    ({"task": "ioi"}, ["task", "ioi", "plural", "sva"]),
    ({"task": "missing.jsonl"}, ["missing.jsonl"]),
    ({"examples": 5}, ["examples", "got 5", "1 to 4"]),
    ({"examples": 0}, ["examples", "got 0"]),
    ({"examples": 1}, ["task pairs", "1 pair", "2 or more"]),
    ({"split": "test"}, ["--split", "holdout"]),
    ({"budget_gib": 1e-6}, ["budget_bytes", "at least"]),
    ({"method": "fast"}, ["--method", "suffix"]),
  ],
)
def test_bad_options_are_refused(
  options, parts, call, inputs, tmp_path, capsys
):
  assert call(**options) == 2
  refused(parts, capsys, tmp_path)


@pytest.mark.parametrize(
  ("line", "parts"),
  [
    (
      tiny_folder.pair("the key", "the old keys"),
      ["line 5", "reference", "3 tokens"],
    ),
    (tiny_folder.pair("the key", "the keys", "is old"), ["line 5", "answer"]),
    ('{"clean": " the"}', ["line 5", "reference", "no such field"]),
  ],
)
def test_bad_pairs_are_refused(line, parts, call, inputs, tmp_path, capsys):
  lines = [*tiny_folder.PAIRS, line]
  (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
  assert call() == 2
  refused(parts, capsys, tmp_path)


def test_bad_weights_are_refused(call, inputs, tmp_path, capsys):
  infinite = np.full(8, np.inf, np.float32)
  tiny_folder.write(inputs, ln_f__bias=infinite)
  assert call() == 2
  refused(["final_norm_bias", "NaN or infinite"], capsys, tmp_path)

  tiny_folder.write(inputs, wpe__weight=np.ones((3, 8), np.float32))
  assert call() == 2
  refused(["wpe.weight", "(3, 8)", "(16, 8)"], capsys, tmp_path)

  tiny_folder.write(inputs, wte__weight=np.ones((9, 8), np.float32))
  assert call() == 2
  refused(["wte.weight", "(9, 8)", "(13, 8)"], capsys, tmp_path)

  path = tiny_folder.write(inputs) / "model.safetensors"
  path.write_bytes(path.read_bytes()[:-5])
  assert call() == 2
  refused(["model.safetensors"], capsys, tmp_path)

  path.unlink()
  assert call() == 2
  refused(["model.safetensors"], capsys, tmp_path)


def test_a_prompt_longer_than_the_context_is_refused(
  call, inputs, tmp_path, capsys
):
  long = " the" * 17
  line = tiny_folder.pair(f"key{long}", f"keys{long}")
  (tmp_path / "pairs.jsonl").write_text(line)
  assert call() == 2
  refused(["18", "16"], capsys, tmp_path)


def test_an_output_folder_that_is_a_file_is_refused(
  call, inputs, tmp_path, capsys
):
  (tmp_path / "out").write_text("mine")
  assert call() == 2
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1 and "output folder" in lines[0]
  assert (tmp_path / "out").read_text() == "mine"


def refused(parts, capsys, tmp_path):
  """One line on standard error that names the fault, and nothing written."""
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1, lines
  for part in ["error: ", *parts]:
    assert part in lines[0], lines[0]
  assert not (tmp_path / "out").exists()
