"""What several tests of models start from."""

import shutil

import pytest
from fixture_folders import FIXTURES


@pytest.fixture
def copy(tmp_path):
  """Copies a folder of the fixtures, for a test to change."""
  return lambda name: shutil.copytree(FIXTURES / name, tmp_path / name)
