"""Which words do the prompts share, and which do they draw per split?

Words of one list never occur in another list of the same task, so drawing
disjoint parts of a list keeps the splits of a task disjoint.
"""

# Between "The farmers" and "the window": any person, any thing or animal.
PREPOSITIONS = tuple("behind beside by facing near opposite with".split())

# After "She" and before any countable thing or animal.
VERBS = tuple(
  """
  bought brought carried chose drew found got had kept liked lost loved needed
  noticed owned painted photographed saw sold took wanted
  """.split()
)

# The singular numeral and the plural ones, each of them paired with it.
NUMERALS = tuple(
  ("one", numeral)
  for numeral in "two three four five six seven eight nine ten".split()
)

# In English order: what comes first, and what comes right before the noun.
FIRST_ADJECTIVES = tuple(
  """
  ancient attractive beautiful big bright broken charming clean cute damaged
  elegant enormous expensive famous fancy favorite fine gorgeous great heavy
  huge impressive large light little long lovely magnificent massive modern
  narrow nice old ordinary perfect plain precious pretty quiet rare remarkable
  rough shiny short slim small smooth special splendid strong sturdy superb
  tall thick thin tiny typical unusual valuable wide wonderful young
  """.split()
)
LAST_ADJECTIVES = tuple(
  """
  American African Asian Australian Austrian Belgian black blue Brazilian
  British brown Canadian Chinese crimson Cuban Danish dark Dutch Egyptian
  English European Finnish French German golden gray Greek green Hungarian
  Indian Irish Israeli Italian Japanese Korean Mexican Norwegian orange pale
  Persian pink Polish Portuguese purple red Roman Russian Scottish silver
  Spanish Swedish Swiss Turkish white yellow
  """.split()
)

# Names that a Python programmer gives to a string.
VARIABLES = tuple(
  """
  account action address author body brand caption category channel code color
  column command comment company content country customer data default
  description domain email entry error field footer group header hint host id
  image info item job key keyword label language line link location message
  method mode model module name nickname note number option order owner parent
  password path payload phone pattern platform prefix product profile project
  prompt query quote reason region reply request response result role row
  section server service source state status style subject suffix summary
  symbol tag target task template term text theme title token topic user
  username value version
  """.split()
)

# What such a string says.
STRING_WORDS = tuple(
  """
  air animal apple arm art baby back bag ball band bank bar bat bay beach bean
  bear bed bell berry big bird black blade block blue board boat bone book
  boot bottle bow box boy brain bread brick bridge bright brown bug bull burn
  bus butter button cake camera camp cap car card cat chain chair cheese child
  church circle city class clean clear clock cloud club coat cold cool copper
  corn cow cream cross crown cup cut dark day deep desk diamond dinner dirty
  dog door double down dragon dream dress drink drive dry dust eagle ear earth
  east easy eat edge egg empty engine eye face fair fall family farm fast
  feather fire fish flag flash flat flight floor flower fly foot forest fox
  free fresh friend front fruit full game garden gate ghost giant girl glass
  gold good grand grass gray green ground guitar gun hair half hand happy hard
  hat head heart heat heavy high hill home honey horse hot house human ice
  iron island jack jump king kitchen knife lady lake lamp land large laser
  leaf leather left lemon level light lion little live lock long love low
  lucky machine magic mail man map mark market master metal milk mind mirror
  money monkey moon morning mother motor mountain mouse mouth movie music nail
  neck needle new night noise north nose ocean office oil old open orange
  paint pan paper park party people pepper piano picture pig pink pipe plain
  plane plant plastic plate play pocket poem poet pool potato power press
  prince purple quick quiet rabbit race radio rain red rice rich right ring
  river road rock roof room rope rose rough round royal rubber run salt sand
  school sea seat secret seed shadow sharp sheep sheet shell ship shoe shop
  short show silence silver simple sister skin sky sleep slow small smile
  smoke snake snow soap soft soldier song soul sound soup south space spell
  spider spirit spring square star station stone storm strange stream street
  strong sugar summer sun sweet table tail tall tea teacher thin thunder
  ticket tiger time tin toe top touch tower town toy train travel tree truck
  tube under valley village violet voice walk wall war warm watch water wave
  weather west wheel white wild wind window wine winter wise wolf woman wonder
  wood wool word world yellow young zero
  """.split()
)
