"""What does a compiled program send between devices? Read from its text.

A collective inside a loop counts as often as the loop turns. What a device
sends is counted as for rings: of an array of n bytes on g devices, that is
n (g - 1) / g bytes to gather it, to exchange its parts, or to leave each device
a part of the sum, and twice that to have the sum everywhere.
"""

import dataclasses
import math
import re
from collections import defaultdict

KINDS = (
  "all-gather", "all-reduce", "all-to-all", "collective-permute",
  "reduce-scatter",
)  # fmt: skip
_BITS = {"pred": 8, "bf16": 16}  # of types whose name does not end in bits
_ARRAY = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")
_HEADER = re.compile(r"(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_COLLECTIVE = re.compile(rf" = (.*?) ({'|'.join(KINDS)})(-start)?\(")
_CALLED = re.compile(r"(?:calls|to_apply|body|condition)=%?([\w.-]+)")


@dataclasses.dataclass(frozen=True)
class Collective:
  """A collective operation of a compiled program.

  Attributes:
    kind: one of `KINDS`.
    n_bytes: of the whole arrays that are gathered, summed or exchanged.
    group: devices that take part together.
    times: how often one run of the program does it.
  """

  kind: str
  n_bytes: int
  group: int
  times: int

  @property
  def sent(self) -> float:
    """Bytes that each device sends in one run of the program."""
    if self.kind == "collective-permute":
      return self.n_bytes * self.times
    passes = 2 if self.kind == "all-reduce" else 1
    part = (self.group - 1) / self.group
    return passes * part * self.n_bytes * self.times


def collectives(text: str) -> list[Collective]:
  """The collectives of a program.

  Args:
    text: of the compiled program, by `as_text`.
  """
  bodies = _computations(text)
  runs, fused = _runs(bodies), _fused(bodies)
  found = {}
  for name, lines in bodies.items():
    for line in lines:
      match = _COLLECTIVE.search(line)
      if match and runs[name]:
        # TPUs take a collective apart, into fusions with the work that it goes
        # on beside: there it shows several times under one channel.
        channel = re.search(r"channel_id=(\d+)", line)
        key = channel[1] if name in fused else line
        found.setdefault(key, _collective(match, name, line, runs[name]))
  return list(found.values())


def largest_array(text: str) -> str:
  """Type and shape of the largest array that a device holds.

  Args:
    text: of the compiled program, by `as_text`.
  """
  bodies = _computations(text)
  # What is inside a fusion exists element by element only.
  fused = _fused(bodies)
  arrays = {
    array
    for name, lines in bodies.items()
    for line in lines
    if name not in fused
    for array in _ARRAY.findall(line.partition(" = ")[2].partition("(")[0])
  }
  dtype, shape = max(arrays, key=lambda array: _n_bytes(*array))
  return f"{dtype}[{shape}]"


def _collective(match, computation, line, times):
  arrays, kind, start = match.groups()
  found = _ARRAY.findall(arrays)
  if start and kind != "all-reduce":
    # Operands, as many results, and perhaps marks of the operation's progress.
    found = [array for array in found if array != ("u32", "")]
    found = found[len(found) // 2 :]
  sizes = [_n_bytes(*array) for array in found]
  group = _group(line)
  n_bytes = sum(sizes)
  if kind == "reduce-scatter":
    n_bytes *= group
  # How TPUs write a reduce-scatter: an all-reduce, fused with the slice.
  if computation.startswith("all-reduce-scatter"):
    kind = "reduce-scatter"
  return Collective(kind, n_bytes, group, times)


def _n_bytes(dtype: str, shape: str) -> int:
  bits = _BITS.get(dtype) or int(re.sub(r"\D", "", dtype))
  return math.prod(int(n) for n in shape.split(",") if n) * bits // 8


def _group(line: str) -> int:
  """How many devices a collective joins."""
  if match := re.search(r"replica_groups=\{\{([\d,]+)\}", line):
    return match[1].count(",") + 1
  if match := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
    return int(match[1])
  if match := re.search(r"replica_groups=mesh\[(.*?)\].*?\{(.*?)\}", line):
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", match[1]))
    # An axis may take part in part: 'axis':(1)2 is 2 of its devices.
    axes = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", match[2])
    return math.prod(int(part or sizes[axis]) for axis, part in axes)
  return 1


def _computations(text: str) -> dict[str, list[str]]:
  """Name -> instructions, the callees before their callers."""
  bodies, name = {}, None
  for line in text.splitlines():
    if match := _HEADER.match(line):
      name = match[1]
      bodies[name] = []
    elif line.startswith("}"):
      name = None
    elif name is not None:
      bodies[name].append(line)
  return bodies


def _fused(bodies: dict[str, list[str]]) -> set[str]:
  """The computations that are the inside of a fusion."""
  return {
    called
    for lines in bodies.values()
    for line in lines
    for called in re.findall(r" fusion\(.*calls=%?([\w.-]+)", line)
  }


def _runs(bodies: dict[str, list[str]]) -> dict[str, int]:
  """How often each computation runs when the last one, the entry, does."""
  runs = defaultdict(int)
  runs[next(reversed(bodies))] = 1
  for name in reversed(bodies):
    for line in bodies[name]:
      turns = _turns(line, bodies) if " while(" in line else 1
      for called in set(_CALLED.findall(line)):
        runs[called] += runs[name] * turns
  return runs


def _turns(line: str, bodies: dict[str, list[str]]) -> int:
  """How often a loop turns: as it says, or up to the constant it tests."""
  if match := re.search(r'known_trip_count":\{"n":"(\d+)"', line):
    return int(match[1])
  condition = re.search(r"condition=%?([\w.-]+)", line)[1]
  [turns] = re.findall(r"constant\((\d+)\)", "\n".join(bodies[condition]))
  return int(turns)
