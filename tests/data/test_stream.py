"""Are draws the same everywhere, spread evenly, and separate by label?"""

import collections

from headjax.data.stream import draw, shuffled


def test_draws_never_change():
  # The first eight bytes that `printf '["task", 3]' | sha256sum` prints.
  assert draw(10**4, "task", 3) == 0x9F57702D6A455CCA % 10**4


def test_draws_cover_their_range_evenly():
  counts = collections.Counter(draw(8, "even", i) for i in range(8000))
  assert sorted(counts) == list(range(8))
  # Five standard deviations of a binomial count around 1000.
  assert all(abs(count - 1000) < 150 for count in counts.values())


def test_other_labels_are_other_draws():
  a = [draw(10**4, "a", i) for i in range(50)]
  b = [draw(10**4, "b", i) for i in range(50)]
  assert a != b and a == [draw(10**4, "a", i) for i in range(50)]


def test_leaving_words_out_keeps_the_order_of_the_others():
  words = [f"word{i}" for i in range(50)]
  order = shuffled(words, "label")
  assert order != words and sorted(order) == sorted(words)
  kept = [word for word in words if not word.endswith("3")]
  assert shuffled(kept, "label") == [w for w in order if w in kept]
