r"""What does a design cost in training? Forward and backward of every row.

Each row's gradient step is timed in turn with that of `learned`, so that the
ratio survives a machine whose speed drifts. `promised` is the ratio of their
multiply-adds, unembedding included; `reached` is what was measured. A rotated
write is timed in its structured form and as a dense matrix.

  python experiments/benchmarks/designs.py [--rows all-common-axis ...]
"""

import csv
import functools
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from configs.geometry import VARIANTS, get_config
from headjax import command_line
from headjax.geometry.kerdock import KerdockBasis
from headjax.models import cost
from headjax.models.config import ModelConfig
from headjax.models.decoder import Decoder, run, unembed
from headjax.models.from_config import model_config


def parse(argv):
  """The command line."""
  parser = command_line.Parser(__doc__)
  rows = [name for name in VARIANTS if not name.startswith("multiscreen")]
  parser.add_argument("--rows", nargs="+", choices=rows, default=rows)
  parser.add_argument("--tokens", type=int, default=512)
  parser.add_argument("--repeats", type=int, default=5)
  return parser.parse_args(argv)


def main(argv):
  """Prints one CSV line a row, and the two forms of a rotation."""
  args = parse(argv)
  learned = model_config(get_config("learned").model)
  baseline = Step(learned, args.tokens)
  names = ("row", "seconds", "reached", "promised", "share", "compile_s")
  writer = csv.DictWriter(sys.stdout, names)
  writer.writeheader()
  for name in args.rows:
    step = Step(model_config(get_config(name).model), args.tokens)
    ratios, seconds = [], []
    for _ in range(args.repeats):
      before, own, after = baseline.time(), step.time(), baseline.time()
      seconds.append(own)
      ratios.append((before + after) / 2 / own)
    promised = madds(learned, args.tokens) / madds(step.config, args.tokens)
    reached = statistics.median(ratios)
    writer.writerow(
      {
        "row": name,
        "seconds": f"{statistics.median(seconds):.2f}",
        "reached": f"{reached:.3f}",
        "promised": f"{promised:.3f}",
        "share": f"{reached / promised:.3f}",
        "compile_s": f"{step.compile_s:.1f}",
      }
    )
    sys.stdout.flush()
  rotations(args.tokens, args.repeats)


def madds(config: ModelConfig, tokens: int) -> int:
  """Multiply-adds of a forward over one sequence, logits included."""
  lengths = np.array([tokens])
  return cost.forward(config, lengths) + tokens * config.d_model * (
    config.d_vocab
  )


class Step:
  """The gradient of the next-token loss on one sequence of random tokens."""

  def __init__(self, config: ModelConfig, tokens: int):
    self.config, model = config, Decoder(config)
    ids = jax.random.randint(
      jax.random.key(1), (1, tokens + 1), 0, config.d_vocab
    )
    init = jax.jit(model.init)
    self.params = init(jax.random.key(0), ids[:, :1])["params"]
    self.ids = ids
    start = time.perf_counter()
    gradient = jax.jit(jax.grad(functools.partial(loss, model)))
    self.step = gradient.lower(self.params, ids).compile()
    self.compile_s = time.perf_counter() - start
    self.time()

  def time(self) -> float:
    """Seconds of one step."""
    start = time.perf_counter()
    jax.block_until_ready(self.step(self.params, self.ids))
    return time.perf_counter() - start


def loss(model: Decoder, params, ids: jax.Array) -> jax.Array:
  """Mean cross-entropy of the next token, in nats."""
  resid, _ = run(model, params, ids[:, :-1])
  log_p = jax.nn.log_softmax(unembed(model, params, resid))
  return -jnp.take_along_axis(log_p, ids[:, 1:, None], axis=-1).mean()


def rotations(tokens: int, repeats: int):
  """Times the two ways to apply one rotated basis, forward and backward."""
  basis = KerdockBasis(768, 1)
  dense = jnp.asarray(basis.dense(), jnp.float32)
  x = jax.random.normal(jax.random.key(0), (tokens, 768))
  forms = {"structured": basis.apply, "dense": lambda x: x @ dense.T}
  for name, apply in forms.items():
    step = jax.jit(jax.grad(lambda x, f=apply: (f(x) ** 2).sum()))
    step(x).block_until_ready()
    seconds = []
    for _ in range(20 * repeats):
      start = time.perf_counter()
      step(x).block_until_ready()
      seconds.append(time.perf_counter() - start)
    print(
      f"rotation of {tokens} rows, {name}: "
      f"{1e3 * statistics.median(seconds):.2f} ms"
    )


if __name__ == "__main__":
  command_line.run(main)
