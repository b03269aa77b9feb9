"""Does the script make what it says, and end well when it cannot?"""

import json

import numpy as np
import pytest
import tiny_corpus

from experiments import prepare_corpus
from headjax import command_line
from headjax.data.token_files import open_corpus

TEXTS = tiny_corpus.documents(300)


@pytest.fixture
def call(tmp_path, monkeypatch):
  """Runs the script; returns its exit status."""
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
  texts = tmp_path / "texts"
  texts.mkdir()
  lines = [json.dumps({"text": text}) + "\n" for text in TEXTS]
  (texts / "a.jsonl").write_text("".join(lines[:200]))
  (texts / "b.jsonl").write_text("".join(lines[200:]))
  tokenizer = tiny_corpus.tokenizer_file(tmp_path / "vocabulary")

  def run(**options):
    given = {"source": f"folder:{texts}", "tokenizer": tokenizer}
    given |= {"out": tmp_path / "out"} | options
    argv = []
    for name, value in given.items():
      argv += [f"--{name.replace('_', '-')}", str(value)]
    with pytest.raises(SystemExit) as ended:
      command_line.run(prepare_corpus.main, argv)
    return ended.value.code

  return run


def test_a_corpus_is_made_and_described(call, tmp_path, capsys):
  assert call() == 0
  corpus = open_corpus(tmp_path / "out", sampling="once", d_vocab=261)
  printed = capsys.readouterr()
  manifest = corpus.manifest
  n_train, n_validation = manifest.train_tokens, manifest.validation["tokens"]
  for part in (
    f"train: {n_train:,} tokens, {manifest.documents['train']:,} documents",
    f"validation: {n_validation:,} tokens",
    " tokens/s",
    "as stated by whoever made the folder",
    f"written to {tmp_path / 'out'}",
  ):
    assert part in printed.out
  assert "texts: " in printed.err  # the bar
  ids = [i for row in tiny_corpus.encoded(TEXTS) for i in row]
  assert n_train + n_validation == len(ids) - 3  # one is blank


def test_options_reach_the_corpus(call, tmp_path, capsys):
  assert call(train_tokens=900, validation_tokens=20, seed=4, workers=1) == 0
  assert call(validation=tmp_path / "out", seed=4, out=tmp_path / "S") == 0
  first, second = (
    open_corpus(tmp_path / name, sampling="once", d_vocab=261).manifest
    for name in ("out", "S")
  )
  assert (first.train_tokens, first.validation["tokens"]) == (900, 20)
  assert first.seed == second.seed == 4
  assert second.validation == first.validation
  assert "validation: 20 tokens, shared" in capsys.readouterr().out


def test_field_and_separator_reach_the_corpus(call, tmp_path):
  texts = tmp_path / "bodies"
  texts.mkdir()
  (texts / "a.jsonl").write_text('{"body": "he"}\n' * 3)
  options = {"field": "body", "separator": "or", "validation_tokens": 0}
  assert call(source=f"folder:{texts}", **options) == 0
  ids = np.fromfile(tmp_path / "out" / "train-00000.bin", "<u2")
  assert ids.tolist() == [257, 259] * 3


@pytest.mark.parametrize(
  ("options", "parts"),
  [
    ({"source": "web"}, ["source", "'web'", "packaged, folder:PATH"]),
    ({"source": "folder:nowhere"}, ["source", "no folder nowhere"]),
    ({"tokenizer": "nowhere.json"}, ["tokenizer", "nowhere.json"]),
    ({"separator": "<end>"}, ["<end>", "--separator"]),
    ({"train_tokens": 10**7}, ["train tokens", "at least 10,000,000"]),
    ({"train_tokens": "many"}, ["--train-tokens", "many"]),
    ({"validation": "nowhere"}, ["corpus nowhere", "no such folder"]),
    ({"workers": 0}, ["workers", "at least 1"]),
    ({"field": "body"}, ["a.jsonl, line 1, field body"]),
  ],
)
def test_bad_options_are_refused(options, parts, call, tmp_path, capsys):
  assert call(**options) == 2
  refused(parts, capsys)
  assert not list(tmp_path.glob("out*"))


def test_an_output_that_exists_is_refused(call, tmp_path, capsys):
  (tmp_path / "out").mkdir()
  assert call() == 2
  refused(["output folder", "does not exist yet"], capsys)


def refused(parts, capsys):
  """The last line on standard error names the fault; the bar stands above."""
  line = capsys.readouterr().err.splitlines()[-1]
  for part in ["error: ", *parts]:
    assert part in line, line
