"""When does a run do something beside training? One frozen value."""

import dataclasses

from headjax.checks import check


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Steps at which a run writes a line, evaluates or saves.

  A step counts the updates made: step 0 is the first state.

  Attributes:
    steps: of the whole run.
    log_every: steps between lines of metrics.
    evaluate_every: steps between validation losses, of which one is at step 0
      and one at the end; 0 means none.
    evaluate_sequences: of the validation text, its first.
    checkpoint_steps: checkpoints that stay; the last step is always one.
    checkpoint_minutes: between others, of which the newest stays; 0 means none.
  """

  steps: int
  log_every: int = 16
  evaluate_every: int = 1024
  evaluate_sequences: int = 256
  checkpoint_steps: tuple[int, ...] = ()
  checkpoint_minutes: float = 15.0

  def __post_init__(self):
    for field, least in (
      ("steps", 1),
      ("log_every", 1),
      ("evaluate_every", 0),
      ("evaluate_sequences", 1),
      ("checkpoint_minutes", 0),
    ):
      got = getattr(self, field)
      check(
        got >= least, f"train.{field}", got, f"at least {least}", "raise it"
      )
    chosen = self.checkpoint_steps
    check(
      all(type(step) is int and step >= 0 for step in chosen),
      "train.checkpoint_steps",
      chosen,
      "a tuple of steps, integers from 0",
      "write it as (0,256,1024)",
    )

  def logs(self, step: int) -> bool:
    """Whether there is a line of metrics after so many updates."""
    return step % self.log_every == 0 or step in (1, self.steps)

  def evaluates(self, step: int) -> bool:
    """Whether there is a validation loss."""
    every = self.evaluate_every
    return bool(every) and (step % every == 0 or step == self.steps)

  def keeps(self, step: int) -> bool:
    """Whether there is a checkpoint that stays."""
    return step in self.checkpoint_steps or step == self.steps
