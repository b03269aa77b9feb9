"""The two real vocabularies that the data tests run on."""

import pytest

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


@pytest.fixture(scope="session", params=["gpt2", "smollm2-135m"])
def tokenizer(request):
  if request.param == "gpt2":
    return request.getfixturevalue("gpt2_tokenizer")
  return _smollm2()
