import json
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest
from one_line import refusal

from experiments.loss_curves import main, read_curve
from headjax.reports.loss_curves import Curve, loss_figure


def write_run(folder, losses=(3.0, 2.0, 1.0), validation=(3.5, 1.5)):
  lines = [{"step": 0, "validation_loss": validation[0]}] if validation else []
  lines += [
    {"step": 4 * i, "loss": loss, "tokens": 400 * i}
    for i, loss in enumerate(losses, 1)
  ]
  if validation:
    lines.append({"step": 12, "validation_loss": validation[1]})
  folder.mkdir(exist_ok=True)
  text = "".join(json.dumps(line) + "\n" for line in lines)
  (folder / "metrics.jsonl").write_text(text)
  return folder


def test_curves_have_tokens_for_both_kinds_of_loss(tmp_path):
  curve = read_curve(write_run(tmp_path / "one"))
  assert curve.name == "one"
  assert curve.tokens.tolist() == [400, 800, 1200]
  assert curve.loss.tolist() == [3, 2, 1]
  assert curve.validation_tokens.tolist() == [0, 1200]
  assert curve.validation_loss.tolist() == [3.5, 1.5]


def test_the_script_draws_all_runs_and_prints_their_ends(tmp_path, capsys):
  runs = [
    str(write_run(tmp_path / "a")),
    str(write_run(tmp_path / "b", validation=(3.4, 1.25))),
  ]
  main([*runs, "--out", str(tmp_path / "out"), "--title", "Two runs"])
  printed = capsys.readouterr().out
  assert "a: 1,200 tokens, loss 1.0000, validation loss 1.5000" in printed
  assert "b: 1,200 tokens, loss 1.0000, validation loss 1.2500" in printed
  picture = matplotlib.image.imread(tmp_path / "out" / "loss.png")
  assert np.ptp(picture[..., :3]) > 0.5
  assert (tmp_path / "out" / "loss.pdf").stat().st_size > 1000


def test_equal_ends_get_labels_that_do_not_meet():
  line = np.array([1.0, 2.0])
  curves = [Curve(name, line, line, line, line) for name in ("a", "b")]
  figure = loss_figure(curves, "title")
  heights = [text.xy[1] for text in figure.axes[0].texts]
  assert abs(heights[0] - heights[1]) > 0.05


def test_what_cannot_be_drawn_is_refused(tmp_path):
  with refusal("run: got no file", "the folder of a run"):
    read_curve(tmp_path)
  with refusal("metrics of one", "0 validation losses"):
    read_curve(write_run(tmp_path / "one", validation=()))
  line = np.array([1.0, 2.0])
  with refusal("curves: got 7", "1 to 6"):
    loss_figure([Curve("a", line, line, line, line)] * 7, "title")


@pytest.mark.slow
def test_a_missing_run_is_one_line_and_status_2(tmp_path):
  done = subprocess.run(
    [sys.executable, "experiments/loss_curves.py", "none", "--out", tmp_path],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 2 and done.stdout == ""
  assert done.stderr.startswith("error: run: got no file")
  assert done.stderr.count("\n") == 1
