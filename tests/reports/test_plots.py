"""Do results draw themselves, and with the right numbers and words?"""

import numpy as np
import pytest
import xarray as xr
from one_line import refusal
from saved_effects import saved

from headjax.reports import plots

EFFECT = np.random.default_rng(0).normal(size=(3, 2, 4))
AXES = ("layer", "head", "example", "query", "key")


def pattern(n=3, **coords):
  values = np.tril(np.ones((2, 2, 1, n, n)))
  values = values / values.sum(-1, keepdims=True)
  values[1, 0, 0] = np.eye(n)
  return xr.DataArray(values, dims=AXES, coords=coords)


def cells(plot):
  [mesh] = plot.figure.axes[0].collections[:1]
  return np.asarray(mesh.get_array())


def words(plot):
  ax = plot.figure.axes[0]
  return [label.get_text() for label in ax.get_yticklabels()]


def test_a_heat_map_shows_mean_effects_and_draws_itself():
  plot = plots.heatmap(saved(EFFECT))
  np.testing.assert_allclose(
    cells(plot), np.arcsinh(EFFECT.mean(0) / 0.2), atol=1e-12
  )
  assert "2 x 4 heads, 3 prompts" in repr(plot)
  assert plot._repr_png_().startswith(b"\x89PNG")


def test_an_attribution_is_drawn_as_such():
  plot = plots.heatmap(saved(EFFECT).rename(effect="attribution"))
  assert "attribution of" in repr(plot)


def test_a_plot_is_saved_twice(tmp_path):
  paths = plots.heatmap(saved(EFFECT)).save(tmp_path / "heads")
  assert [p.suffix for p in paths] == [".png", ".pdf"]
  assert all(p.is_file() for p in paths)


def test_attention_is_that_of_the_head_with_tokens_beside_ids():
  labels = {
    "id": (("example", "key"), [[5, 6, 7]]),
    "token": (("example", "key"), [["The", " key", "\n"]]),
  }
  plot = plots.attention(pattern(**labels), 1, 0)
  np.testing.assert_array_equal(cells(plot), np.eye(3))
  assert words(plot) == ["The  5", "\u2423key  6", "\\n  7"]
  assert words(plots.attention(pattern(), 0, 1)) == ["0", "1", "2"]


@pytest.mark.parametrize("n", [1, 90])
def test_prompts_of_any_length_are_drawn(n):
  plot = plots.attention(pattern(n), 0, 0)
  assert len(words(plot)) <= 32
  assert plot._repr_png_()


def test_what_cannot_be_drawn_is_refused():
  with refusal("result", "base", "patch_heads"):
    plots.heatmap(saved(EFFECT)[["base"]])
  with refusal("head", "got 2", "0 to 1"):
    plots.attention(pattern(), 0, 2)
  with refusal("patterns", "axes"):
    plots.attention(pattern()[0], 0, 0)
