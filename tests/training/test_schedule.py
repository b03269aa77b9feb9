import pytest
from one_line import refusal

from headjax.training.schedule import Schedule

PAPER = Schedule(
  steps=65536, checkpoint_steps=(0, 256, 1024, 4096, 16384, 65536)
)


def steps(condition, schedule):
  return [n for n in range(schedule.steps + 1) if condition(n)]


def test_the_papers_checkpoints_are_those_of_its_text():
  assert steps(PAPER.keeps, PAPER) == [0, 256, 1024, 4096, 16384, 65536]


def test_the_last_step_is_always_kept_evaluated_and_told():
  short = Schedule(
    steps=10, log_every=4, evaluate_every=3, checkpoint_steps=(2,)
  )
  assert steps(short.keeps, short) == [2, 10]
  assert steps(short.evaluates, short) == [0, 3, 6, 9, 10]
  assert steps(short.logs, short) == [0, 1, 4, 8, 10]


def test_without_evaluation_there_is_none():
  assert not steps(Schedule(10, evaluate_every=0).evaluates, PAPER)


@pytest.mark.parametrize(
  ("field", "value"),
  [
    ("steps", 0),
    ("log_every", 0),
    ("evaluate_every", -1),
    ("evaluate_sequences", 0),
    ("checkpoint_minutes", -0.5),
    ("checkpoint_steps", (0, -4)),
    ("checkpoint_steps", (0, "q")),
    ("checkpoint_steps", (0, 1.5)),
  ],
)
def test_impossible_values_are_refused(field, value):
  with refusal(f"train.{field}: got {value}"):
    Schedule(**{"steps": 10, field: value})
