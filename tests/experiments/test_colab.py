"""Do the notebooks run from their first cell to their last?"""

import os

import pytest
from document_blocks import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = ROOT / "experiments" / "colab"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Parameters of a run of seconds.
SMALL = {
  "patch_a_real_model": "EXAMPLES = 4",
  "train_and_dissect": "STEPS, EXAMPLES, TASKS = 60, 8, ['sva']",
  "spectral_circuits": "ROWS, LENGTH, NULL, DRAWS = 6, 64, 5, 2",
  "writers_and_cancellers": "EXAMPLES, SHUFFLES = 6, 2",
  "algorithmic_cores": "EPOCHS, SEQUENCES, TEST = 2, 300, 600",
}
ids = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def tagged(notebook, tag):
  return [c for c in notebook.cells if tag in c.metadata.get("tags", [])]


def test_every_notebook_has_small_parameters():
  assert {path.stem for path in NOTEBOOKS} == SMALL.keys()


@ids
def test_a_notebook_is_short_clean_and_installs_first(path):
  notebook = nbformat.read(path, as_version=4)
  nbformat.validate(notebook)
  assert 8 <= len(notebook.cells) <= 15
  assert "%pip install" in notebook.cells[0].source
  assert tagged(notebook, "install") == notebook.cells[:1]
  assert len(tagged(notebook, "parameters")) == 1
  for cell in notebook.cells:
    if cell.cell_type == "code":
      assert not cell.outputs and cell.execution_count is None
      # Calls, and loops that print: what has a name of its own is not here.
      assert not any(
        line.startswith(("def ", "class ", "while ", "try"))
        for line in cell.source.splitlines()
      )


@pytest.mark.slow
@ids
def test_a_notebook_runs(path, tmp_path, monkeypatch):
  pytest.importorskip("ipykernel")
  notebook = nbformat.read(path, as_version=4)
  del notebook.cells[0]
  [parameters] = tagged(notebook, "parameters")
  parameters.source += f"\n{SMALL[path.stem]}"
  parameters.source += f"\nWORKDIR = {str(tmp_path / 'run')!r}"
  monkeypatch.setenv("XLA_FLAGS", "")
  monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
  monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
  client = nbclient.NotebookClient(
    notebook,
    timeout=900,
    kernel_name="python3",
    resources={"metadata": {"path": str(ROOT)}},
  )
  client.execute()
  shown = [
    output
    for cell in notebook.cells
    for output in cell.get("outputs", ())
    if "image/png" in output.get("data", ())
  ]
  assert shown
