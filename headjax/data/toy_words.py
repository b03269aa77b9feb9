"""Which words does the toy language have? 500 or so, all of them known.

The nouns, adjectives, variables and strings are those with which every split of
every built-in task has exactly the words that it needs, and every string word
is also one of the nouns or adjectives. Words that a task counts are pairs of
singular and plural.
"""

from headjax.data import nouns


def _pairs(singulars, *lists):
  """The pairs of those nouns, in the order of the lists."""
  wanted = singulars.split()
  pairs = [pair for pairs in lists for pair in pairs if pair[0] in wanted]
  return tuple(pairs)


def _forms(text):
  """Pairs from `singular/plural`."""
  return tuple(tuple(pair.split("/")) for pair in text.split())


PEOPLE = _pairs(
  """
  boy child cook driver farmer girl guard king man nurse queen singer soldier
  teacher woman
  """,
  nouns.PEOPLE,
)
THINGS = _pairs(
  """
  ant ape axe bag ball bat bear bed bee bell bird boat book boot box bug bus
  cap car card cart cat chair clock coat cow cup dog door egg fan flag flower
  fox gem gun hat hen hook horse house jar key knife lamp leaf letter lock map
  mat mouse mug nail net owl pan pear pen picture pig pin pot pump radio rat
  ring robe roof rope rose rug seat shed ship shoe stone table tent tie toy
  train tree van watch window wolf
  """,
  nouns.THINGS,
  nouns.ANIMALS,
)
FIRST_ADJECTIVES = tuple(
  """
  ancient big bright broken clean cute damaged famous fancy fine great heavy
  huge large light little long lovely modern narrow nice old perfect plain
  pretty quiet rare rough shiny short slim small smooth special strong sturdy
  superb tall thick thin tiny typical unusual wide young
  """.split()
)
LAST_ADJECTIVES = tuple(
  """
  African Asian Belgian black blue British brown Canadian Chinese Cuban Danish
  dark Dutch English Finnish French German golden gray Greek green Indian Irish
  Israeli Italian Japanese Korean Mexican orange pale Persian pink Polish
  purple red Roman Russian Scottish silver Spanish Swedish Swiss Turkish white
  yellow
  """.split()
)
VARIABLES = tuple(
  """
  body code entry field hint host id info item job key line link mode name note
  order owner path phone query role row state tag task term text theme user
  """.split()
)
STRING_WORDS = tuple(
  """
  bag ball bat bear bed bell big bird black blue boat book box boy bright brown
  bug cap car card cat chair child clean clock coat cow cup dark dog door egg
  flag flower fox girl gray green hat heavy horse house king knife lamp large
  leaf light little lock long man map mouse nail old orange pan picture pig
  pink purple quiet radio red ring roof rope rose ship shoe short small soldier
  stone strong table tall teacher thin toy train tree watch white window wolf
  woman yellow young
  """.split()
)
VERBS = tuple(
  "bought carried drew found kept lost painted saw sold took".split()
)
PREPOSITIONS = tuple("behind beside by facing near opposite with".split())
NUMERALS = _forms("one/two one/three one/four one/five one/six")

NAMES = tuple("Anna Ben Carla David Emma Frank".split())
PRONOUNS = tuple("She He They".split())
ADVERBS = tuple("always never now often still".split())
# Verbs that agree; a repeated pair is drawn more often.
COPULAS = _forms("is/are is/are is/are was/were")
INTRANSITIVES = _forms("runs/run sings/sing sleeps/sleep waits/wait")
TRANSITIVES = _forms("likes/like needs/need sees/see")
# What begins a question, and what points at something.
COPULAS_FIRST = _forms("Is/Are")
DEMONSTRATIVES = _forms("This/These")
# What the grammar writes out: at the start of a line, and after a space.
FIRST_WORDS = ("The", "List")
OTHER_WORDS = tuple("the and but that who not very said met".split())
MARKS = ("\n", ".", ",", ":", "?", "'", '"', " =", " '", ' "')
