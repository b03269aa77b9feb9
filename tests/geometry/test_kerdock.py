import functools
import hashlib
import statistics

import jax
import jax.numpy as jnp
import numpy as np
import one_line
import pytest
import slow_kerdock

from headjax.geometry import KerdockBasis, kerdock_basis, rotate, rotate_back

# (d_model, n): n is what a missing n stands for, except where it is given.
SIZES = [(768, 256), (384, 64), (192, 64), (128, 64), (48, 16), (16, 16)]


@pytest.mark.parametrize(
  ("d_model", "n", "member"), [(768, 256, 5), (128, 64, 31), (48, 16, 3)]
)
def test_the_dense_basis_is_that_of_the_definition(d_model, n, member):
  mixer = KerdockBasis(d_model, member).mixer
  expected = slow_kerdock.dense(n, member, mixer)
  np.testing.assert_allclose(
    kerdock_basis(d_model, member), expected, rtol=0, atol=1e-15
  )


@pytest.mark.parametrize(("d_model", "n"), SIZES)
def test_every_basis_is_orthogonal(d_model, n):
  for member in (0, 1, n // 2 - 1):
    basis = kerdock_basis(d_model, member)
    assert basis.dtype == np.float64
    np.testing.assert_allclose(
      basis.T @ basis, np.eye(d_model), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(("d_model", "n"), SIZES)
def test_the_widest_hadamard_factor_is_the_default(d_model, n):
  basis = KerdockBasis(d_model, 0)
  assert (basis.n, basis.r) == (n, d_model // n)


def test_a_narrower_hadamard_factor_can_be_asked_for():
  basis = KerdockBasis(768, 0, n=64)
  assert (basis.n, basis.r) == (64, 12)
  assert basis.dense().shape == (768, 768)


@pytest.mark.parametrize("r", [1, 2, 3, 6])
@pytest.mark.parametrize("member", [0, 7])
def test_the_mixer_is_the_positive_qr_factor_of_the_published_stream(member, r):
  normal = statistics.NormalDist()
  gaussian = np.empty((r, r))
  for k in range(r * r):
    text = f"kerdock-C/{member}/{k}".encode()
    integer = int(hashlib.sha256(text).hexdigest()[:16], 16) // 2**11
    gaussian[k // r, k % r] = normal.inv_cdf((integer + 0.5) / 2**53)
  mixer = KerdockBasis(16 * r, member, n=16).mixer
  np.testing.assert_allclose(mixer.T @ mixer, np.eye(r), atol=1e-14)
  triangle = mixer.T @ gaussian
  np.testing.assert_allclose(np.tril(triangle, -1), 0, atol=1e-13)
  assert np.all(np.diag(triangle) > 0)


def test_the_mixer_does_not_change_between_versions():
  np.testing.assert_allclose(
    KerdockBasis(768, 3).mixer[0],
    [0.2699148086483858, -0.9375500636590983, -0.21942168125581024],
    rtol=1e-12,
  )


def test_members_have_different_mixers():
  mixers = [KerdockBasis(768, member).mixer for member in range(24)]
  assert len({mixer.tobytes() for mixer in mixers}) == 24


@pytest.mark.parametrize(("d_model", "n"), SIZES)
def test_structured_application_equals_the_dense_matrix(d_model, n, x64):
  basis = KerdockBasis(d_model, n // 2 - 1)
  x = np.random.default_rng(0).normal(size=(2, 3, d_model))
  dense = basis.dense()
  for applied, matrix in (
    (basis.apply, dense),
    (basis.apply_transpose, dense.T),
  ):
    y = jax.jit(applied)(jnp.asarray(x))
    assert y.shape == x.shape and y.dtype == jnp.float64
    np.testing.assert_allclose(y, x @ matrix.T, rtol=0, atol=1e-12)


def test_application_keeps_the_dtype_and_takes_a_single_vector():
  x = jnp.ones(128, jnp.bfloat16)
  assert KerdockBasis(128, 3).apply(x).dtype == jnp.bfloat16
  assert KerdockBasis(128, 3).apply_transpose(x).shape == (128,)


def test_the_parts_of_all_layers_can_be_scanned(x64):
  layers = [KerdockBasis(192, member) for member in range(4)]
  signs = jnp.array([basis.signs for basis in layers])
  mixers = jnp.array([basis.mixer for basis in layers])
  x = np.random.default_rng(0).normal(size=(5, 192))

  def step(x, parts):
    y = rotate(x, *parts)
    return y, rotate_back(y, *parts)

  end, back = jax.lax.scan(step, jnp.asarray(x), (signs, mixers))
  matrix = functools.reduce(np.matmul, [b.dense() for b in reversed(layers)])
  np.testing.assert_allclose(end, x @ matrix.T, rtol=0, atol=1e-12)
  np.testing.assert_allclose(back[0], x, rtol=0, atol=1e-12)


def test_a_basis_is_a_static_value():
  traces = []

  @functools.partial(jax.jit, static_argnums=0)
  def apply(basis, x):
    traces.append(basis)
    return basis.apply(x)

  apply(KerdockBasis(128, 2), jnp.ones(128))
  apply(KerdockBasis(128, 2, n=64), jnp.ones(128))
  apply(KerdockBasis(128, 3), jnp.ones(128))
  assert [basis.member for basis in traces] == [2, 3]


@pytest.mark.parametrize(
  ("arguments", "words"),
  [
    ((100, 0), "d_model: got 100; expected n r with n = one of 16, 64, 256"),
    ((0, 0), "d_model: got 0;"),
    ((768, 0, 128), "n: got 128; expected an even power of two"),
    ((768, 0, 1024), "16, 64, 256"),
    ((192, 0, 256), "d_model: got 192; expected n r with n = 256"),
    ((768, 128), "member: got 128; expected 0 to 127, the n / 2 = 128 members"),
    ((128, 32), "d_model 128 = 64 x 2"),
    ((128, -1), "member: got -1;"),
    ((128, 0.5), "member: got 0.5;"),
  ],
)
def test_a_basis_that_does_not_exist_is_refused(arguments, words):
  with one_line.refusal(words):
    KerdockBasis(*arguments)
  with one_line.refusal(words):
    kerdock_basis(*arguments)


def test_vectors_of_another_width_are_refused():
  with one_line.refusal("width 96; expected the basis' 64 x 2"):
    KerdockBasis(128, 0).apply(jnp.ones((3, 96)))
  with one_line.refusal("width 256; expected the basis' 64 x 2"):
    KerdockBasis(128, 0).apply_transpose(jnp.ones((3, 256)))
