"""Which English nouns can a prompt count? Pairs of singular and plural.

Only nouns whose plural is another word; no word is in two of the lists.
"""

_HISSING = ("s", "x", "z", "ch", "sh")


def _plural(noun):
  """The regular plural in English spelling."""
  if noun.endswith("y") and noun[-2] not in "aeiou":
    return noun[:-1] + "ies"
  return noun + ("es" if noun.endswith(_HISSING) else "s")


def _pairs(regular, irregular):
  """Pairs from nouns with a regular plural and from `singular/plural`."""
  pairs = [(noun, _plural(noun)) for noun in regular.split()]
  return tuple(pairs + [tuple(p.split("/")) for p in irregular.split()])


PEOPLE = _pairs(
  """
  actor actress adult advisor agent ambassador analyst architect artist
  assistant athlete attorney author baby banker barber bishop boss boy brother
  builder butcher buyer captain carpenter chef chief citizen clerk client
  coach colleague collector colonel comedian commander composer consultant
  contractor cook counselor cousin critic customer dancer daughter dealer
  defender dentist designer detective developer director doctor driver editor
  emperor employee employer engineer executive expert farmer father fighter
  filmmaker friend gardener girl governor graduate guard guest guide historian
  host hunter inspector instructor intern investor journalist judge juror king
  knight laborer lady lawyer leader lecturer librarian lover maker manager
  mayor mechanic member merchant miner minister monk mother musician neighbor
  nephew niece novelist nurse officer operator owner painter parent partner
  passenger pastor patient performer philosopher photographer physician pilot
  player poet porter president priest prince princess prisoner producer
  professor programmer prosecutor psychologist queen reader refugee relative
  reporter researcher resident rider ruler sailor scholar scientist secretary
  seller senator sergeant servant singer sister soldier son spouse student
  surgeon tailor teacher teenager tenant tourist trader trainer translator
  traveler tutor uncle victim visitor volunteer waiter warrior witch witness
  worker writer
  """,
  """
  businessman/businessmen child/children fireman/firemen fisherman/fishermen
  gentleman/gentlemen hero/heroes man/men policeman/policemen
  salesman/salesmen thief/thieves wife/wives woman/women
  """,
)

ANIMALS = _pairs(
  """
  ant ape bat bear bee beetle bird bug bull butterfly camel cat chicken cow
  crab crow dog dolphin dragon duck eagle elephant fox frog goat hawk hen
  horse kitten lamb lion lizard monkey moth owl parrot pig pigeon pony puppy
  rabbit rat raven rooster shark snail snake spider squirrel swan tiger turkey
  turtle whale worm zebra
  """,
  "calf/calves goose/geese mouse/mice wolf/wolves",
)

THINGS = _pairs(
  """
  apple arrow axe bag ball balloon banana barrel basket battery bed bell belt
  bench bicycle bike blanket boat book boot bottle bowl box bracelet brick
  bridge brush bucket bus button cabinet cage cake camera candle canoe cap car
  card carpet carrot cart chain chair chest clock cloak cloud coat coin
  computer cookie couch crate crown cube cup curtain cushion desk diamond dish
  doll door drawer dress drill drum egg engine envelope fan fence flag flower
  flute fork fountain frame garden gate gem glove gift guitar gun hammer
  handle hat hedge helmet hook hotel house jacket jar jewel key keyboard kite
  lamp lantern laptop lemon letter lock lotus magazine magnet map mask mat
  medal microphone mirror motor motorcycle mug nail necklace needle net
  notebook onion orchard oven painting pan parcel patch peach pear pearl pen
  pencil phone photo piano picture pillow pin pipe pizza plane plant plate
  plow pond pool poster pot pump purse puzzle radio ribbon ring robe robot
  rocket roof rope rose rug sail sandwich sculpture seat shed shell shield
  ship shirt shoe shovel sign skirt sock sofa spear spoon stamp statue stick
  stone stool stove sweater sword table tank tape telephone temple tent throne
  tie tile tool torch towel tower toy tractor train tray tree truck trumpet
  tube umbrella van vase vehicle violin wagon wallet watch wheel whistle
  window wire
  """,
  "knife/knives leaf/leaves loaf/loaves potato/potatoes shelf/shelves "
  "tomato/tomatoes tooth/teeth",
)
