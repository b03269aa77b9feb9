"""Do the pictures and tables of a geometry show the numbers measured?"""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from headjax.geometry import orthonormal_basis
from headjax.geometry.survey import survey
from headjax.reports import geometry_figures as figures
from headjax.reports import geometry_tables as tables
from headjax.reports.alignment_figure import alignment_figure

WORDS = {"title": "toy", "about": "two layers"}


@pytest.fixture(scope="module")
def found():
  rng = np.random.default_rng(0)

  def spaces(width):
    matrix = rng.normal(size=(3, 4, 12, width)).astype(np.float32)
    return orthonormal_basis(jnp.asarray(matrix))

  write = spaces(3)
  deficient = rng.normal(size=(3, 4, 12, 3))
  deficient[1, 2, :, 2] = deficient[1, 2, :, 0]
  reads = {"Q": orthonormal_basis(jnp.asarray(deficient)), "V": spaces(3)}
  return survey(write, {"weights": reads, "norm": reads})


def slow_across_layers(pk):
  n_layers, n_heads = pk.shape[:2]
  mean = np.zeros((n_heads, n_heads))
  for a in range(n_layers):
    for b in range(n_layers):
      if a != b:
        mean += pk[a, :, b, :] / (n_layers * (n_layers - 1))
  return mean


def numbers(ax):
  return [text.get_text() for text in ax.texts]


def test_pairs_and_their_mean_over_layers_are_drawn(found):
  pk = found.write_pk
  figure = figures.write_figure(pk, width=3, random=0.75, **WORDS)
  every, mean, bar = figure.axes
  [image] = every.images
  np.testing.assert_allclose(image.get_array(), pk.reshape(12, 12))
  assert image.origin == "lower"
  [mesh] = [m for m in mean.collections if isinstance(m, QuadMesh)]
  expected = slow_across_layers(pk)
  np.testing.assert_allclose(mesh.get_array(), expected, rtol=1e-5)
  assert numbers(mean) == [f"{value:.1f}" for value in expected.ravel()]
  assert image.get_clim() == mesh.get_clim() == (0, 3)
  assert "random\n0.75" in numbers(bar)


def test_only_earlier_layers_can_be_read(found):
  rows = {"a": found.read_pk["weights"], "b": found.read_pk["norm"]}
  figure = figures.read_figure(rows, width=3, random=0.75, **WORDS)
  maps = figure.axes[:-1]
  assert [ax.get_title(loc="left") for ax in maps] == [
    "Q reads, a", "V reads, a", "Q reads, b", "V reads, b",
  ]  # fmt: skip
  drawn = np.ma.filled(maps[1].images[0].get_array(), np.nan)
  drawn = drawn.reshape(3, 4, 3, 4)
  for reader in range(3):
    for writer in range(3):
      block = drawn[reader, :, writer]
      if writer < reader:
        pk = found.read_pk["weights"]["V"][reader, :, writer]
        np.testing.assert_array_equal(block, pk)
      else:
        assert np.isnan(block).all()


def test_alignment_dots_and_the_largest_excess_are_drawn():
  own = np.array([[0.2, 0.9], [0.1, 0.3]])
  best = np.array([[False, True], [True, False]])
  excess = np.zeros((2, 2, 2))
  excess[1, :, 0] = [0.1, -0.4]
  figure = alignment_figure(own, best, excess, random=0.1, **WORDS)
  left, _, right, _ = figure.axes
  dots = {tuple(xy) for xy in left.lines[0].get_xydata()}
  assert dots == {(1.5, 0.5), (0.5, 1.5)}
  [mesh] = [m for m in right.collections if isinstance(m, QuadMesh)]
  np.testing.assert_array_equal(mesh.get_array(), [[0, 0], [-0.4, 0]])
  assert mesh.get_clim() == (-0.4, 0.4)
  assert "at most 0.4" in right.get_title(loc="left")
  assert "mean 0.38" in left.get_title(loc="left")


def test_rounding_does_not_look_like_an_excess():
  excess = np.full((2, 2, 2), 1e-7)
  own = np.ones((2, 2))
  figure = alignment_figure(own, own.astype(bool), excess, random=0.1, **WORDS)
  [mesh] = [m for m in figure.axes[2].collections if isinstance(m, QuadMesh)]
  assert mesh.get_clim() == (-0.05, 0.05)


def test_angle_shares_count_every_known_angle_once():
  angles = np.radians([[0.5, 3.0], [3.5, np.nan]])
  angles = np.concatenate([angles, [[np.nextafter(np.pi / 2, 2), 1.0]]])
  edges, share = figures.angle_shares(angles)
  assert edges[0] == 0 and edges[-1] == 90
  assert share.sum() == pytest.approx(1)
  assert share[0] == 0.2 and share[1] == 0.4 and share[-1] == 0.2


def test_the_reference_is_drawn_last_and_dashed(found):
  figure = figures.angle_figure(found.angles, **WORDS)
  [ax] = figure.axes
  labels = [patch.get_label() for patch in ax.patches]
  assert labels == list(found.angles)
  assert [patch.get_linestyle() for patch in ax.patches] == ["-", "-", "--"]
  heights = ax.patches[0].get_data().values
  assert heights.sum() == pytest.approx(100)


def test_the_summary_separates_the_same_index_from_others(found):
  rows = {row["quantity"]: row["value"] for row in tables.summary(found)}
  mean = slow_across_layers(found.write_pk)
  same = np.diag(mean).mean()
  other = mean[~np.eye(4, dtype=bool)].mean()
  assert rows["writes, PK across layers, same index"] == f"{same:.4f}"
  assert rows["writes, PK across layers, other indices"] == f"{other:.4f}"
  pk = found.read_pk["norm"]["V"]
  later = [pk[a, :, b] for a in range(3) for b in range(a)]
  lane = np.mean([np.diag(block) for block in later])
  name = "V (norm), PK with earlier writes"
  assert rows[f"{name}, same index"] == f"{lane:.4f}"
  low, high = np.min(later), np.max(later)
  assert rows[f"{name}, range"] == f"{low:.4f} to {high:.4f}"
  own = found.alignment.own[1:].mean()
  assert rows["V self-alignment rho, from layer 1"] == f"{own:.4f}"


def test_a_deficient_head_is_reported(found):
  rows = {row["quantity"]: row["value"] for row in tables.summary(found)}
  assert rows["Q (weights), rank"] == "2 to 3 of 3; deficient heads: 1"
  assert rows["writes, rank"] == "3 to 3 of 3; deficient heads: 0"
  [head] = [row for row in tables.heads(found) if row["Q_norm_rank"] < 3]
  assert (head["layer"], head["head"]) == (1, 2)


def test_tables_have_a_row_for_every_pair_head_and_bin(found):
  rows = tables.pairs(found)
  assert len(rows) == 12 * 12
  row = rows[(2 * 4 + 1) * 12 + (0 * 4 + 3)]
  keys = ("layer", "head", "writer_layer", "writer_head")
  assert [row[key] for key in keys] == [2, 1, 0, 3]
  assert row["V_norm_pk"] == f"{found.read_pk['norm']['V'][2, 1, 0, 3]:.6g}"
  assert row["write_pk"] == f"{found.write_pk[2, 1, 0, 3]:.6g}"
  assert len(tables.heads(found)) == 12
  excess = tables.conservation(found)
  assert len(excess) == 12 * 3
  value = found.excess("weights", "Q")[1, 2, 0]
  assert excess[(4 + 2) * 3]["Q_weights_excess"] == f"{value:.6g}"
  bins = tables.angles(found)
  total = sum(float(row["random spaces"]) for row in bins)
  assert total == pytest.approx(1, abs=1e-4)
