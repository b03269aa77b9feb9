"""Do tables of frames spell the lines that the rules derive?"""

import re

import numpy as np
import pytest

from headjax.data import toy_frames, toy_pools
from headjax.data.toy_grammar import lines

WORD = re.compile(r"( ?)\{([a-z]+)([01]?)([/=]?)([a-z]*)\}")


@pytest.fixture(scope="module")
def frames(toy):
  return toy_frames.frames(toy)


@pytest.fixture(scope="module")
def pools(toy):
  return toy_pools.pools(toy)


def spell(toy, pools, text, draws):
  """One line by plain string work; draws count every token, in order."""
  pieces, drawn, start, repeated = [], [], 0, []
  while text:
    match = WORD.match(text)
    if match:
      piece = word(pools, match, draws[len(pieces)], drawn)
      pieces.append(piece)
    elif text.startswith("[=]"):
      match = re.match(r"\[=\]", text)
      pieces += repeated
    elif text[0] == "[":
      match, start = re.match(r"\[", text), len(pieces)
    elif text[0] == "]":
      match, repeated = re.match(r"\]", text), pieces[start:]
    else:
      match = re.match(r"[^{}\[\]]+?(?=$| ?\{|[\[\]])", text)
      pieces += [toy.decode([i]) for i in toy.encode(match[0])]
    text = text[match.end() :]
  return pieces


def word(pools, match, draw, drawn):
  """The drawn word in its form; `drawn` lists (pool, group, word)."""
  space, name, form, rule, other = match.groups()
  every = [(g, w) for g, group in enumerate(pools[name]) for w in group]
  if rule:
    _, group, said = [entry for entry in drawn if entry[0] == other][-1]
  if rule == "=":
    assert name == other
  elif rule == "/":
    # From the end of the group that is left out, and around.
    after = [g > group for g, _ in every]
    turned = [p for p, late in zip(every, after, strict=True) if late]
    turned += [p for p in every if p[0] < group]
    group, said = turned[draw % len(turned)]
  else:
    group, said = every[draw % len(every)]
  drawn.append((name, group, said))
  return space + (said[int(form)] if form else said)


def test_every_frame_spells_its_line(toy, frames, pools):
  texts = [text for _, text in lines()]
  draws = np.random.default_rng(0).integers(2**63, size=(3, *frames.pool.shape))
  for draw in draws:
    ids = frames.fill(np.arange(len(texts)), draw)
    for i, text in enumerate(texts):
      row = ids[i, : frames.lengths[i]].tolist()
      before = ["\n", "\n", "\n", "<|endoftext|>"][draw[i, 0] % 4]
      spelt = spell(toy, pools, text, draw[i, 1:].tolist())
      assert toy.decode(row) == before + "".join(spelt)
      assert len(row) == 1 + len(spelt)


def test_lines_do_not_depend_on_their_neighbours(frames):
  rng = np.random.default_rng(1)
  chosen = rng.integers(len(frames.lengths), size=40)
  draws = rng.integers(2**63, size=(40, frames.pool.shape[1]))
  together = frames.fill(chosen, draws)
  for i, frame in enumerate(chosen):
    alone = frames.fill(chosen[i : i + 1], draws[i : i + 1])[0]
    n = frames.lengths[frame]
    np.testing.assert_array_equal(together[i, :n], alone[:n])


def test_no_line_fills_nothing(frames):
  assert frames.fill(np.array([], int), np.zeros((0, 5), int)).shape == (0, 0)


def test_bounds_are_the_shares_of_the_frames(frames):
  shares = np.array([float(share) for share, _ in lines()])
  np.testing.assert_allclose(
    np.diff(frames.bounds.astype(float), prepend=0) / 2**32, shares, atol=1e-9
  )
  assert frames.bounds[-1] == 2**32


def test_words_of_a_pool_are_drawn_equally_often(toy, frames, pools):
  """All words after a word of another split are as likely as each other."""
  frame = [text for _, text in lines()].index(
    "The {person0} {preposition} the {thing0/person} {is0} {last}."
  )
  draws = np.random.default_rng(2).integers(
    2**63, size=(60000, frames.pool.shape[1])
  )
  ids = frames.fill(np.full(60000, frame), draws)
  for split in range(4):
    first = [toy.single(f" {pair[0]}") for pair in pools["person"][split]]
    others = [
      toy.single(f" {pair[0]}")
      for i, group in enumerate(pools["thing"])
      for pair in group
      if i != split
    ]
    things = ids[np.isin(ids[:, 2], first), 5]
    counts = np.bincount(things, minlength=toy.d_vocab)
    assert counts.sum() == counts[others].sum()
    expected = len(things) / len(others)
    assert (abs(counts[others] - expected) < 5 * np.sqrt(expected)).all()
