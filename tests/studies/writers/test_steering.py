"""Are groups acted on as named, and vectors made of what they write?"""

import jax
import numpy as np
import planted_writers as planted
import pytest

from headjax.studies.writers import cell, explaining, steering
from headjax.studies.writers.steering import steering_vectors


def test_vectors_are_means_and_the_main_direction():
  writes = np.zeros((2, 3, 4))
  writes[0, 0], writes[1, 1], writes[1, 2] = (
    (2.0, 0, 0, 0), (4.0, 1, 0, 0), (-1.0, 0, 1, 0),
  )  # fmt: skip
  found = steering_vectors(writes, [(0, 0), (1, 1)], [(1, 2)])
  np.testing.assert_allclose(found["v_W"], [3, 0.5, 0, 0])
  np.testing.assert_allclose(found["v_C"], [-1, 0, 1, 0])
  np.testing.assert_allclose(found["v_FV"], [5 / 3, 1 / 3, 1 / 3, 0])
  table = np.stack([writes[0, 0], writes[1, 1], writes[1, 2]])
  _, vectors = np.linalg.eigh(table.T @ table)
  wanted = vectors[:, -1] * np.sign(vectors[:, -1] @ found["v_W"])
  size = np.linalg.norm(found["v_W"])
  np.testing.assert_allclose(found["v_PCA"], wanted * size, atol=1e-12)
  alone = steering_vectors(writes, [], [(1, 2)])
  assert alone.keys() == {"v_FV", "v_C", "v_PCA"}
  np.testing.assert_allclose(alone["v_PCA"], alone["v_FV"], atol=1e-12)


@pytest.mark.slow
def test_acts_on_planted_groups(monkeypatch):
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)
  model = planted.circuit()
  prompts = planted.prompts(model.tokenizer)
  data = cell.measure_cell(model, prompts, draws=200)
  found = cell.judge(data, draws=200)
  more, _ = explaining.explain(model, prompts, found, parts=["writes"])
  acted = steering.act_on_groups(model, prompts, found, more["writes"])
  rows = steering.acted(acted, draws=200)
  named = {(row["kind"], row["of"], row["strength"]): row for row in rows}
  zero = found.changes["zero"]
  for group in cell.GROUPS:
    # All prompts of the cell are there, and only the answer's row matters.
    assert named["lesion", group, 1.0]["logits"] == pytest.approx(
      zero[group].estimate, abs=1e-4
    )
    # Answers are A as often as B: the means are those of no answer.
    assert named["transplant", group, 1.0]["logits"] == pytest.approx(
      zero[group].estimate, abs=0.02
    )
  assert len(rows) == 6 + 4 * len(steering.STRENGTHS)
  up = np.zeros(model.config.d_model)
  up[len(planted.TOKENS)] = 30.0  # towards A, whatever the prompt shows
  pairs = prompts.shuffled[0].select(slice(6))
  texts = steering.write_on(model, pairs, {"up": up}, max_new=2)
  assert [row["vector"] for row in texts] == ["none"] * 6 + ["up"] * 6
  assert all(row["text"][0] == "A" for row in texts[6:])
  own = model.tokenizer.single("A")
  assert [row["answered"] for row in texts[6:]] == (
    (pairs.answer == own).tolist()
  )
