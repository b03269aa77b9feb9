"""Do rows come back from the file as they were?"""

import numpy as np
from helpers import GPT2, random_model
from one_line import refusal

from headjax import results
from headjax.studies.cores.tables import Text, labelled, provenance

ROWS = [
  {"model": "a", "rank": 1, "keep": 0.5, "first": None, "word": "x"},
  {"model": "a", "rank": 3, "keep": 0.75, "first": 2, "word": "y"},
  {"model": "b", "rank": 3, "keep": 0.25, "first": 4, "word": "z"},
]


def attrs(**settings):
  model, _ = random_model(GPT2, dtype="float32")
  text = Text.of("chain", np.arange(6).reshape(2, 3))
  return provenance([model, model], text, 1.5, **settings)


def test_rows_are_saved_and_loaded(tmp_path):
  found = labelled(
    ROWS, ["model", "rank"], attrs(seed=3), {"keep": "share of tokens"}
  )
  results.save(found, tmp_path / "cores.nc")
  again = results.load(tmp_path / "cores.nc")
  for row in ROWS:
    here = again.sel(model=row["model"], rank=row["rank"])
    assert here["keep"] == row["keep"] and here["word"] == row["word"]
    assert np.isnan(here["first"]) == (row["first"] is None)
  missing = again.sel(model="b", rank=1)
  assert np.isnan(missing["keep"]) and missing["word"] == ""
  assert again["keep"].attrs["units"] == "share of tokens"
  assert again["first"].attrs["units"] == "1"
  assert again.attrs["seed"] == 3 and again.attrs["task"] == "chain"
  assert again.attrs["models"] == '["random", "random"]'


def test_another_text_has_another_digest():
  tokens = np.arange(6)
  digests = {
    Text.of("chain", x).digest
    for x in (tokens, tokens[::-1], tokens.reshape(2, 3))
  }
  assert len(digests) == 3


def test_rows_that_nothing_tells_apart_are_refused():
  with refusal("rows: got two with the same labels", "model"):
    labelled(ROWS, ["model"], {})
