"""Is a measurement taken for that of the same things alone?"""

import pytest
from one_line import refusal
from spectral_series import series

from headjax.studies.spectral.store import ABLATIONS, HEADS, KEY, Store


@pytest.fixture
def store(tmp_path):
  return Store(tmp_path)


def test_heads_are_found_by_what_they_were_measured_with(store):
  assert store.names == [] and store.measured("one", "a") is None
  store.save("one", HEADS, series(**{KEY: "a"}))
  assert store.measured("one", "b") is None
  assert store.measured("one", "a").attrs[KEY] == "a"
  assert store.find("one", ABLATIONS) is None


def test_other_heads_remove_what_hung_on_the_former(store):
  for name in ("two", "one"):
    store.save(name, HEADS, series())
    store.save(name, ABLATIONS, series())
  assert store.names == ["one", "two"]
  assert list(store.every(ABLATIONS)) == ["one", "two"]
  store.save("two", HEADS, series())
  assert list(store.every(ABLATIONS)) == ["one"]
  assert list(store.every(HEADS)) == ["one", "two"]


def test_an_empty_folder_is_one_line(store):
  with refusal("--out: got no results in"):
    store.every(HEADS)
