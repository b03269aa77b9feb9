"""What holds in every test: eight CPU devices, and no silent broadcasting."""

import os
import pathlib

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Small decompositions crawl when several threads of BLAS share few cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Must be in place before JAX starts its backend.
os.environ["XLA_FLAGS"] = (
  os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import jax  # noqa: E402
import pytest  # noqa: E402

# Makes fixtures with packages that the tests do without.
collect_ignore = ["fixtures"]

jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="module", autouse=True)
def _programs_are_let_go():
  """Frees a file's compiled programs: each holds many mappings of memory.

  A process may have 65,530 of them; one more, and the compiler crashes.
  """
  yield
  jax.clear_caches()


@pytest.fixture
def x64():
  """Runs a test in float64."""
  with jax.enable_x64(True):
    yield


@pytest.fixture(scope="session")
def reference() -> pathlib.Path:
  """The folder of published values that are not part of the project."""
  folder = os.environ.get("HEADJAX_REFERENCE")
  if not folder:
    pytest.skip("HEADJAX_REFERENCE names no folder of published values")
  return pathlib.Path(folder)
