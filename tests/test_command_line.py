import os
import pathlib
import subprocess
import sys

import jax
import pytest

from headjax import command_line
from headjax.checks import fail
from headjax.command_line import Parser, run, writable_folder


@pytest.fixture(autouse=True)
def untouched_cache(monkeypatch, tmp_path):
  """Keeps the caller's compilation cache out of the tests, and back."""
  options = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
  )
  before = {name: getattr(jax.config, name) for name in options}
  monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  yield
  for name, value in before.items():
    jax.config.update(name, value)


def finish(main, *argv):
  with pytest.raises(SystemExit) as caught:
    run(main, list(argv))
  return caught.value.code


def raises(error):
  def main(argv):
    raise error

  return main


def parses(argv):
  parser = Parser("Adds examples.")
  parser.add_argument("--examples", type=int, required=True)
  print(parser.parse_args(argv).examples)


def test_a_script_that_ends_well_has_status_0(capsys):
  assert finish(parses, "--examples", "3") == 0
  assert capsys.readouterr() == ("3\n", "")


@pytest.mark.parametrize(
  ("error", "line"),
  [
    (ValueError("bad\n  value"), "error: bad value\n"),
    (FileNotFoundError(2, "No such file", "x"), "error: [Errno 2] No such"),
    (OSError(), "error: OSError\n"),
  ],
)
def test_bad_input_is_one_line_and_status_2(capsys, error, line):
  assert finish(raises(error)) == 2
  out, err = capsys.readouterr()
  assert err.startswith(line)
  assert (out, err.count("\n")) == ("", 1)


def test_the_refusals_of_checks_are_one_line(capsys):
  assert finish(lambda argv: fail("heads", 3, "2", "give 2")) == 2
  assert capsys.readouterr().err == "error: heads: got 3; expected 2; give 2\n"


def test_debug_shows_the_traceback_and_keeps_the_status(capsys):
  assert finish(raises(ValueError("bad")), "--debug") == 2
  err = capsys.readouterr().err
  assert "Traceback" in err
  assert "raise error" in err
  assert err.endswith("error: bad\n")


def test_a_defect_is_not_hidden():
  with pytest.raises(ZeroDivisionError):
    run(raises(ZeroDivisionError()), [])


def test_an_interrupt_has_status_130(capsys):
  assert finish(raises(KeyboardInterrupt())) == 130
  assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
  "argv",
  [
    [],
    ["--examples", "many"],
    ["--exam", "3"],
    ["--examples", "3", "--nonsense"],
    ["--examples", "3", "extra"],
  ],
)
def test_a_wrong_argument_is_one_line_and_status_2(capsys, argv):
  assert finish(parses, *argv) == 2
  out, err = capsys.readouterr()
  assert err.startswith("error: ")
  assert (out, err.count("\n")) == ("", 1)
  assert "--help" in err


def test_help_is_printed_with_status_0(capsys):
  assert finish(parses, "--help") == 0
  out = capsys.readouterr().out
  assert "--debug" in out
  assert "--examples" in out


def test_compiled_programs_are_kept_under_the_cache_home(tmp_path):
  finish(parses, "--examples", "3")
  assert jax.config.jax_compilation_cache_dir == str(
    tmp_path / "cache" / "headjax"
  )
  assert (tmp_path / "cache" / "headjax").is_dir()


def test_the_cache_folder_of_the_environment_wins(monkeypatch, tmp_path):
  before = jax.config.jax_compilation_cache_dir
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "own"))
  finish(parses, "--examples", "3")
  assert jax.config.jax_compilation_cache_dir == before
  assert not (tmp_path / "cache").exists()


def test_without_a_cache_folder_the_script_still_runs(tmp_path):
  (tmp_path / "cache").write_text("a file in the way")
  before = jax.config.jax_compilation_cache_dir
  assert finish(parses, "--examples", "3") == 0
  assert jax.config.jax_compilation_cache_dir == before


def test_a_second_process_reads_the_programs_of_the_first(tmp_path):
  script = (
    "import jax, jax.numpy as jnp, sys;"
    "from headjax.command_line import run;"
    "f = jax.jit(lambda x: jnp.linalg.svd(jnp.tanh(x @ x))[0]);"
    "main = lambda argv: print(jax.block_until_ready("
    "(jax.config.update('jax_persistent_cache_min_compile_time_secs', 0),"
    "f(jnp.ones((9, 9))))[1]).shape);"
    "run(main)"
  )
  environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
  kept = []
  for _ in range(2):
    done = subprocess.run(
      [sys.executable, "-c", script],
      cwd=pathlib.Path(command_line.__file__).parents[1],
      env=environment,
      capture_output=True,
      check=True,
      text=True,
    )
    assert (done.stdout, done.stderr) == ("(9, 9)\n", "")
    kept.append(sorted((tmp_path / "headjax").glob("*-cache")))
  assert kept[0]
  assert kept[0] == kept[1]


def test_a_folder_that_can_be_written_is_not_yet_made(tmp_path):
  wanted = tmp_path / "a" / "b"
  assert writable_folder(wanted) == wanted
  assert writable_folder(str(tmp_path)) == tmp_path
  assert not list(tmp_path.iterdir())


def test_a_relative_folder_is_looked_for_here(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  assert writable_folder("results/a") == pathlib.Path("results/a")


@pytest.mark.parametrize("name", ["file", "file/below", "loop/a"])
def test_a_folder_behind_a_file_is_refused(tmp_path, name):
  (tmp_path / "file").write_text("")
  (tmp_path / "loop").symlink_to(tmp_path / "loop")
  with pytest.raises(ValueError, match="output folder: got") as caught:
    writable_folder(tmp_path / name)
  assert "\n" not in str(caught.value)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs Linux")
def test_a_folder_that_refuses_files_is_refused_even_to_root():
  with pytest.raises(ValueError, match="output folder: got /proc/headjax"):
    writable_folder("/proc/headjax")
