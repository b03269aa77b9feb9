"""How does headjax refuse bad input? One sentence: field, got, expected, fix.

Every refusal of user input in the package is raised here, on the host, before
anything compiles. Scripts print the sentence and exit with status 2
(`headjax.command_line`).
"""

from typing import Any, NoReturn


def fail(field: str, got: Any, expected: Any, fix: str) -> NoReturn:
  """Raises the one error that a user can act on.

  Args:
    field: the argument, config field, file or tensor that is wrong.
    got: what was given.
    expected: what would have been accepted.
    fix: what to do about it, as a short imperative.

  Raises:
    ValueError: always; the message is a single line.
  """
  message = f"{field}: got {got}; expected {expected}; {fix}"
  raise ValueError(" ".join(message.split()))


def check(
  condition: bool, field: str, got: Any, expected: Any, fix: str
) -> None:
  """Calls `fail` unless `condition` holds."""
  if not condition:
    fail(field, got, expected, fix)


def check_choice(field: str, got: Any, choices) -> None:
  """Fails unless `got` is one of `choices`, which the message lists."""
  choices = sorted(choices)
  check(
    got in choices,
    field,
    repr(got),
    "one of " + ", ".join(map(str, choices)),
    "choose one of them",
  )
