"""Is a sequence of the first corpus before the change, then of the other?"""

import numpy as np
import pytest
from one_line import refusal

from headjax.data.generated import GENERATED
from headjax.data.keys import Keys
from headjax.data.phases import CHANGE, KeysThenToy, Phases
from headjax.data.rule_text import RuleText
from headjax.data.toy import Toy


def test_sequences_before_and_after_the_change():
  corpus = KeysThenToy()
  indices = np.array([CHANGE, 3, CHANGE - 1, CHANGE + 5])
  found = corpus.sequences(2, indices, 90)
  wanted = [
    Toy().sequences(2, np.array([0]), 90)[0],
    Keys().sequences(2, np.array([3]), 90)[0],
    Keys().sequences(2, np.array([CHANGE - 1]), 90)[0],
    Toy().sequences(2, np.array([5]), 90)[0],
  ]
  np.testing.assert_array_equal(found, wanted)
  for some in ([0, 2], [1]):  # all of one phase
    np.testing.assert_array_equal(
      corpus.sequences(2, indices[some], 90), found[some]
    )


def test_it_is_a_corpus():
  corpus = GENERATED["keys-then-toy"]()
  digests = {x.digest for x in (corpus, Keys(), Toy())}
  digests.add(Phases(Keys(), Toy(), 5, "other").digest)
  assert len(digests) == 4
  np.testing.assert_array_equal(
    corpus.validation(np.arange(3), 70), Keys().validation(np.arange(3), 70)
  )
  assert corpus.d_vocab == Keys().d_vocab
  corpus.check(60, CHANGE, 8)
  with refusal("length: got 46; expected at least 47"):
    corpus.check(46, 1, 1)


@pytest.mark.parametrize(("first", "second"), [(Toy, Keys), (Keys, RuleText)])
def test_ids_with_other_meanings_are_refused(first, second):
  other = second() if second is Keys else second("modular")
  with refusal("second corpus: got vocabulary of"):
    Phases(first(), other, 5, "bad")
  with refusal("change: got 0"):
    Phases(Keys(), Toy(), 0, "bad")
