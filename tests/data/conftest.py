"""The vocabularies that the data tests run on: two real ones, and a toy."""

import pytest

from headjax.data import toy_tokenizer
from headjax.models import gguf, tokenizers
from headjax.models.gguf_header import read_header
from headjax.models.load import PACKAGED
from headjax.models.packages import data_folder


def _smollm2():
  package, install, file = PACKAGED["smollm2-135m"]
  header = read_header(data_folder(package, install) / file, gguf.KINDS)
  return tokenizers.from_gguf(header.fields, name="smollm2-135m")


@pytest.fixture(scope="session")
def gpt2_tokenizer():
  return tokenizers.gpt2()


@pytest.fixture(scope="session")
def toy():
  return toy_tokenizer.tokenizer()


@pytest.fixture(scope="session", params=["gpt2", "smollm2-135m", "toy"])
def tokenizer(request):
  if request.param == "gpt2":
    return request.getfixturevalue("gpt2_tokenizer")
  if request.param == "toy":
    return request.getfixturevalue("toy")
  return _smollm2()
