r"""Do the tests of writers and cancellers err as often as they say?

No model runs: attributions are drawn with the correlations of a released cell,
in which it is known which heads write. Three tables are printed: the realised
false discovery rate of both discovery rules, p-values of the sign-shuffle where
labels mean nothing, and the coverage of BCa intervals.

  python experiments/benchmarks/writers_calibration.py --repeats 200
"""

import dataclasses

import numpy as np
from scipy import stats

from headjax import command_line
from headjax.checks import check
from headjax.reports.rows import text_table
from headjax.statistics.bca import bca_mean
from headjax.statistics.partitions import partitions
from headjax.studies.writers.discovery import RULES, discover

Q, LEVEL = 0.10, 0.95


@dataclasses.dataclass(frozen=True)
class Cell:
  """How attributions are drawn; variances are shares of a prompt's 1.

  Attributes:
    prompts: of the discovery.
    heads: of the model.
    shuffles: of the labels.
    strata: kinds of prompts, equally many of each; they differ in mean, but not
      on the average.
    between: variance between these kinds.
    labels: variance that comes with the labels; what is left is the prompt's
      own, and stays when its labels are shuffled.
    shared: correlation of two heads, up to sign, from a common factor.
    together: prompts in a row whose labels' part is the same.
    skewed: whether the labels' part is.
    planted: heads that write, half of them against the answer.
    strength: their mean, in standard errors of a head's mean.
  """

  prompts: int = 192
  heads: int = 384
  shuffles: int = 20
  strata: int = 16
  between: float = 0.6
  labels: float = 0.2
  shared: float = 0.25
  together: int = 1
  skewed: bool = False
  planted: int = 12
  strength: float = 4.0

  @property
  def truth(self) -> np.ndarray:
    """`[layer, head]` mean attributions, in standard deviations of a prompt."""
    mean = np.zeros(self.heads)
    mean[: self.planted] = self.strength / np.sqrt(self.prompts)
    mean[: self.planted : 2] *= -1
    return mean[None]

  @property
  def group(self) -> np.ndarray:
    """`[prompt]` which prompts share their labels' part."""
    return np.arange(self.prompts) // self.together


# In the released cell, means of two seeds differ by 0.62 of what their standard
# errors say, so about 0.6 of the variance is between kinds of prompts; means
# with shuffled labels vary by 0.46 of the standard error, so 0.2 of it comes
# with the labels; and attributions of two heads correlate by 0.25.
CELLS = {
  "as released": Cell(),
  "independent": Cell(between=0.0, labels=1.0, shared=0.0),
  "skewed": Cell(skewed=True),
  "eight together": Cell(together=8),
}


def draw(cell: Cell, seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Attributions and those with shuffled labels, as `discover` takes them."""
  rng = np.random.default_rng(seed)
  signs = rng.choice([-1.0, 1.0], cell.heads)

  def noise(*rows, skewed=False):
    """Of variance 1, correlated between heads."""
    sample = rng.exponential if skewed else rng.standard_normal
    own, common = sample(size=(*rows, cell.heads)), sample(size=(*rows, 1))
    mixed = np.sqrt(cell.shared) * common + np.sqrt(1 - cell.shared) * own
    if skewed:
      mixed -= np.sqrt(cell.shared) + np.sqrt(1 - cell.shared)
    return mixed * signs

  kinds = noise(cell.strata)
  kinds -= kinds.mean(axis=0)
  stays = np.sqrt(1 - cell.between - cell.labels) * noise(cell.prompts)
  stays += np.sqrt(cell.between) * kinds[np.arange(cell.prompts) % cell.strata]
  groups = cell.group[-1] + 1
  labels = noise(1 + cell.shuffles, groups, skewed=cell.skewed)
  labels = np.sqrt(cell.labels) * labels[:, cell.group]
  values = stays + labels
  values[0] += cell.truth
  return values[0][:, None], values[1:, :, None]


def discoveries(cell: Cell, repeats: int, draws: int = 10_000) -> list[dict]:
  """One row for each rule: how many heads it finds, and how many falsely."""
  wrong, power = {}, {}
  for seed in range(repeats):
    values, shuffled = draw(cell, seed)
    for rule in (*RULES, "sign-flip, together"):
      kind, _, together = rule.partition(",")
      if together and cell.together == 1:
        continue
      found = discover(
        values,
        shuffled,
        rule=kind,
        q=Q,
        draws=draws,
        seed=seed,
        group=cell.group if together else None,
      )
      planted = cell.truth != 0
      false = (found.significant & ~planted).sum()
      wrong.setdefault(rule, []).append(false / max(1, found.n_significant))
      hits = (found.significant & planted).sum()
      power.setdefault(rule, []).append(hits / max(1, cell.planted))
  return [
    {
      "rule": rule,
      "realised FDR": float(np.mean(wrong[rule])),
      "allowed": Q + 2 * np.sqrt(Q * (1 - Q) / repeats),
      "found": float(np.mean(power[rule])),
    }
    for rule in wrong
  ]


def shuffle_p(repeats: int, *, members: int = 14, first: int = 8) -> np.ndarray:
  """`[repeat]` p of groups whose labels mean nothing.

  What a group's lesion changes saturates, so it is not the sum of its heads.
  """
  p = []
  for seed in range(repeats):
    rng = np.random.default_rng(seed)
    effects = rng.standard_t(4, members)
    labels = rng.permutation(members) < first
    splits = partitions(labels, seed=seed)
    without = [
      np.tanh(0.3 * s @ effects) for s in (splits.first, ~splits.first)
    ]
    p.append(splits.p_value(without[0] - without[1]))
  return np.array(p)


# Changes of the logit difference by prompt, each with mean 0.
CHANGES = {
  "normal": lambda rng, n: rng.normal(size=n),
  "heavy tails": lambda rng, n: rng.standard_t(5, n),
  "skewed": lambda rng, n: rng.exponential(size=n) - 1,
  "very skewed": lambda rng, n: rng.lognormal(0, 1, n) - np.exp(0.5),
}


def coverage(name: str, n: int, repeats: int, draws: int = 2000) -> dict:
  """How often the BCa interval holds the mean, and on which side not."""
  low, high = 0, 0
  for seed in range(repeats):
    values = CHANGES[name](np.random.default_rng(seed), n)
    found = bca_mean(values, draws=draws, seed=seed, level=LEVEL)
    low += found.low > 0
    high += found.high < 0
  return {
    "changes": name,
    "examples": n,
    "coverage": 1 - (low + high) / repeats,
    "too high": low / repeats,
    "too low": high / repeats,
    "error": float(np.sqrt(LEVEL * (1 - LEVEL) / repeats)),
  }


def main(argv):
  """Prints the three tables."""
  parser = command_line.Parser(__doc__)
  parser.add_argument("--repeats", type=int, default=200, help="of every row")
  repeats = parser.parse_args(argv).repeats
  check(repeats >= 2, "--repeats", repeats, "2 or more", "repeat more often")
  rows = [
    {"cell": name} | row
    for name, cell in CELLS.items()
    for row in discoveries(cell, repeats)
  ]
  print(text_table(rows, rows[0]))
  p = shuffle_p(repeats)
  uniform = stats.kstest(p, "uniform").pvalue
  print(
    f"\nsign-shuffle, {repeats} cells: p <= 0.05 in {(p <= 0.05).mean():.3f}, "
    f"p <= 0.5 in {(p <= 0.5).mean():.3f}; uniform, p = {uniform:.2g}\n"
  )
  rows = [coverage(name, n, repeats) for name in CHANGES for n in (100, 500)]
  print(text_table(rows, rows[0]))


if __name__ == "__main__":
  command_line.run(main)
