"""Which update does a gradient become? AdamW, as the recipe says."""

import jax
import optax

from headjax.checks import check_choice
from headjax.training.recipe import Optimizer

# Matrices and embeddings, not biases, gains and scales. Stacked over layers a
# bias has two axes as well, so the name decides.
_MATRICES = ("W_", "adapter_")
DECAYING = ("all", "matrices")


def schedule(recipe: Optimizer) -> optax.Schedule:
  """Step -> learning rate: up in a line, down in half a cosine.

  Step 0 is the first update; with a warm-up of n steps, update n is the first
  at the peak, and the last update has the final rate.
  """
  last = max(1, recipe.steps - 1)
  return optax.warmup_cosine_decay_schedule(
    init_value=recipe.peak / (recipe.warmup + 1),
    peak_value=recipe.peak,
    warmup_steps=recipe.warmup,
    decay_steps=last,
    end_value=recipe.final,
  )


def make(
  recipe: Optimizer,
  weight_decay: jax.Array | None = None,
  *,
  decaying: str = "matrices",
) -> optax.GradientTransformation:
  """Clipping, then AdamW.

  Args:
    recipe: of the updates.
    weight_decay: a traced scalar in place of the recipe's.
    decaying: which parameters decay: "matrices", with the embeddings, or "all",
      with biases and gains, as `torch.optim.AdamW` does if nobody stops it.
  """
  check_choice("decaying", decaying, DECAYING)
  clip = optax.clip_by_global_norm(recipe.clip)
  return optax.chain(
    clip if recipe.clip else optax.identity(),
    optax.adamw(
      schedule(recipe),
      b1=recipe.beta_1,
      b2=recipe.beta_2,
      eps=recipe.epsilon,
      weight_decay=(
        recipe.weight_decay if weight_decay is None else weight_decay
      ),
      mask=decays if decaying == "matrices" else None,
    ),
  )


def decays(params):
  """A tree of bools: whether a parameter is a matrix or an embedding."""

  def one(path, _):
    return path[-1].key.startswith(_MATRICES)

  return jax.tree_util.tree_map_with_path(one, params)
