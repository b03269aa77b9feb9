r"""Trains a model: flags to config to loop.

  python -m headjax.train --config=configs/geometry.py:write-common-axis@tiny \
    --workdir=runs/tiny --config.seed=43

The same command goes on with a run that was stopped. --config.FIELD=VALUE
changes a field of the config. The status is 0 when the run is complete, 143 or
130 when SIGTERM or Ctrl-C stopped it (nothing is lost), and 2 after an error,
which is one line; --debug adds the traceback.

Several processes that see one workdir work on one run, each with the same
command and --multihost where JAX finds the others by itself (Cloud TPU, SLURM),
else with --coordinator=HOST:PORT --processes=N --process=I.
"""

import dataclasses
import importlib.util
import logging
import re
import signal
import sys
from collections.abc import Sequence

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

from headjax import command_line
from headjax.checks import check, fail
from headjax.training import from_config
from headjax.training.loop import Outcome, train
from headjax.training.workdir import flat

_SECTIONS = ("data", "mesh", "model", "optimizer", "seed", "train")
_OVERRIDE = re.compile(r"--?(?:no)?config\.([^=]+)")


@dataclasses.dataclass(frozen=True)
class Command:
  """What the command line says.

  Attributes:
    config: of the run, with its overrides.
    workdir: folder of the run.
    multihost: whether JAX finds the other processes by itself.
    coordinator: address of process 0, or None.
    processes: how many there are, or None.
    process: which one this is, or None.
  """

  config: ConfigDict
  workdir: str
  multihost: bool
  coordinator: str | None
  processes: int | None
  process: int | None


def main(argv: Sequence[str]) -> None:
  """Trains as the command line says."""
  if "--help" in argv:
    print(__doc__)
    return
  command = parse(argv)
  # Orbax logs pages about what ends as one line here.
  logging.getLogger("absl").setLevel(logging.CRITICAL)
  connect(command)
  settings = from_config.settings(command.config)
  corpus = from_config.corpus(command.config)
  outcome = train(settings, corpus, command.workdir)
  if jax.process_index() == 0:
    report(outcome, command.workdir)
  if outcome.signal:
    sys.exit(128 + outcome.signal)


def parse(argv: Sequence[str]) -> Command:
  """Reads the command line.

  Raises:
    ValueError: a flag or field is unknown, missing or has a wrong value.
  """
  spec, others = take_config(argv)
  config = read_config(spec)
  check_fields(config, others)
  values = flags.FlagValues()
  flags.DEFINE_bool("debug", False, "traceback of errors", flag_values=values)
  flags.DEFINE_string("workdir", None, "folder of the run", flag_values=values)
  flags.DEFINE_bool("multihost", False, "meet others", flag_values=values)
  flags.DEFINE_string("coordinator", None, "HOST:PORT", flag_values=values)
  flags.DEFINE_integer("processes", None, "how many", flag_values=values)
  flags.DEFINE_integer("process", None, "which one", flag_values=values)
  command = ["headjax.train", *others]
  try:
    config_flags.DEFINE_config_dict(
      "config", config, flag_values=values, sys_argv=command
    )
    rest = values(command)[1:]
  except flags.Error as error:
    fail("command line", error, "known flags with their values", "see --help")
  check(not rest, "command line", rest, "flags only", "see --help")
  check(
    bool(values.workdir),
    "--workdir",
    "none",
    "a folder for the run",
    "give --workdir=FOLDER",
  )
  names = [field.name for field in dataclasses.fields(Command)]
  return Command(**{name: values[name].value for name in names})


def take_config(argv: Sequence[str]) -> tuple[str, list[str]]:
  """What --config says, and the other arguments.

  Raises:
    ValueError: it says nothing.
  """
  found, others = None, []
  arguments = iter(argv)
  for argument in arguments:
    name, equals, value = argument.partition("=")
    if name in ("--config", "-config"):
      found = value if equals else next(arguments, None)
    else:
      others.append(argument)
  check(
    bool(found),
    "--config",
    "none",
    "a config file",
    "give --config=configs/geometry.py:VARIANT",
  )
  return found, others


def read_config(text: str) -> ConfigDict:
  """The config of FILE or FILE:VARIANT.

  Raises:
    ValueError: there is none.
  """
  path, colon, variant = text.partition(":")
  wanted = (
    "a Python file whose get_config returns a config like configs/base.py"
  )
  fix = "check the path and the file"
  spec = importlib.util.spec_from_file_location("config", path)
  if spec is None:
    fail("--config", path, wanted, fix)
  module = importlib.util.module_from_spec(spec)
  try:
    spec.loader.exec_module(module)
    config = module.get_config(*[variant] * bool(colon))
  except (
    AttributeError,
    ImportError,
    OSError,
    SyntaxError,
    TypeError,
  ) as error:
    fail("--config", f"{path} ({error})", wanted, fix)
  check(
    isinstance(config, ConfigDict) and all(s in config for s in _SECTIONS),
    "--config",
    path,
    wanted,
    fix,
  )
  return config


def check_fields(config: ConfigDict, argv: Sequence[str]) -> None:
  """Fails unless the config has all the fields that are to be changed."""
  known = flat(config.to_dict())
  for argument in argv:
    override = _OVERRIDE.match(argument)
    if override:
      check(
        override[1] in known,
        f"--config.{override[1]}",
        "no such field",
        "one of " + ", ".join(known),
        "check the spelling",
      )


def connect(command: Command) -> None:
  """Meets the other processes, if there are any.

  Raises:
    ValueError: the flags do not say how.
  """
  manual = (command.coordinator, command.processes, command.process)
  given = [value is not None for value in manual]
  check(
    all(given) or not any(given),
    "--coordinator, --processes, --process",
    manual,
    "all three or none",
    "give the address of process 0, the number of processes and of this one",
  )
  if all(given):
    jax.distributed.initialize(*manual)
  elif command.multihost:
    jax.distributed.initialize()


def report(outcome: Outcome, workdir: str) -> None:
  """Says how the run ended."""
  if outcome.signal:
    name = signal.Signals(outcome.signal).name
    print(
      f"stopped by {name} and saved at step {outcome.step}; the same command"
      " goes on",
      file=sys.stderr,
    )
  else:
    print(f"complete at step {outcome.step}: {workdir}")


if __name__ == "__main__":
  command_line.run(main)
