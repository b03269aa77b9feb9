"""Does the script score heads, and show tokens beside their ids?"""

import numpy as np
import pytest
import tiny_folder

from experiments import head_scores
from headjax import command_line, results
from headjax.models.copying import copying_scores
from headjax.models.load import load_model


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  tiny_folder.write(tmp_path / "model")

  def run(**options):
    given = {"model": tmp_path / "model", "out": tmp_path / "out", "length": 6}
    argv = [x for k, v in (given | options).items() for x in (f"--{k}", str(v))]
    with pytest.raises(SystemExit) as ended:
      command_line.run(head_scores.main, argv)
    return ended.value.code

  return run


def test_scores_are_saved_and_links_show_tokens_and_ids(call, tmp_path, capsys):
  assert call(text=" the key is the key") == 0
  saved = results.load(tmp_path / "out" / "scores.nc")
  assert saved.score.dims == ("kind", "example", "layer", "head")
  assert saved.sizes["example"] == 4
  copying = copying_scores(load_model(tmp_path / "model"))
  np.testing.assert_allclose(saved.copying, copying)
  printed = capsys.readouterr().out
  mean = saved.score.sel(kind="previous").mean("example").values
  layer, head = np.unravel_index(mean.argmax(), mean.shape)
  assert f"previous   L{layer}H{head} {mean.max():.2f}," in printed
  assert f"previous: L{layer}H{head}\n" in printed
  assert "\n    0 ' the' (0) -> 0 ' the' (0) 1.00\n" in printed
  assert "\n    4 ' key' (1) -> " in printed


def test_a_model_without_tokenizer_has_no_text(call, tmp_path, capsys):
  (tmp_path / "model" / "tokenizer.json").unlink()
  assert call() == 0
  capsys.readouterr()
  assert call(text="the key", out=tmp_path / "other") == 2
  [line] = capsys.readouterr().err.splitlines()
  assert "--text" in line and "tokenizer" in line
  assert not (tmp_path / "other").exists()
