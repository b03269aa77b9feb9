"""Are the collectives of programs that are known to have them all counted?"""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec

from experiments.benchmarks import traffic
from experiments.benchmarks.traffic import Collective

SPLIT = PartitionSpec(("x", "y"))


@pytest.fixture
def mesh() -> Mesh:
  return jax.make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2)


def text(mesh, body, *shapes, out=SPLIT):
  """Compiles a body that every device runs on its part of each shape."""
  mapped = jax.shard_map(
    body, mesh=mesh, in_specs=SPLIT, out_specs=out, check_vma=False
  )
  return jax.jit(mapped).lower(*shapes).compile().as_text()


def floats(*shape):
  return jax.ShapeDtypeStruct(shape, jnp.float32)


@pytest.mark.parametrize(
  ("body", "expected", "sent"),
  [
    # Each device has 6 of 48 numbers of 4 bytes.
    (
      lambda x: jax.lax.psum(x, ("x", "y")),
      Collective("all-reduce", 24, 8, 1),
      2 * 7 / 8 * 24,
    ),
    (
      lambda x: jax.lax.psum(x, "y"),
      Collective("all-reduce", 24, 4, 1),
      2 * 3 / 4 * 24,
    ),
    (
      lambda x: jax.lax.all_gather(x, "x").sum(0),
      Collective("all-gather", 48, 2, 1),
      24,
    ),
    (
      lambda x: jax.lax.all_gather(x, "y", tiled=True)[:6],
      Collective("all-gather", 96, 4, 1),
      72,
    ),
    (
      lambda x: jax.lax.ppermute(x, "y", [(0, 1), (1, 0)]),
      Collective("collective-permute", 24, 1, 1),
      24,
    ),
  ],
  ids=["all", "four", "pair", "tiled", "permute"],
)
def test_kind_size_group_and_bytes_are_those_written(
  body, expected, sent, mesh
):
  [found] = traffic.collectives(text(mesh, body, floats(48)))
  assert found == expected
  assert found.sent == pytest.approx(sent)


def test_an_exchange_counts_all_its_parts(mesh):
  def body(x):
    return jax.lax.all_to_all(x, "y", 0, 0, tiled=True)

  [found] = traffic.collectives(text(mesh, body, floats(64)))
  assert (found.kind, found.n_bytes, found.group) == ("all-to-all", 32, 4)
  assert found.sent == 24


def test_a_loop_counts_as_often_as_it_turns(mesh):
  def body(x):
    def outer(_, x):
      x = jax.lax.fori_loop(0, 3, lambda _, x: jax.lax.psum(x, "x") / 2, x)
      return jax.lax.psum(x, "y") / 4

    return jax.lax.fori_loop(0, 5, outer, x)

  found = traffic.collectives(text(mesh, body, floats(48)))
  assert {(one.group, one.times) for one in found} == {(2, 15), (4, 5)}


def test_without_devices_that_talk_there_is_nothing(mesh):
  assert traffic.collectives(text(mesh, lambda x: 2 * x, floats(48))) == []


TPU = """\
%cond (p: (s32[], bf16[4,8])) -> pred[] {
  %limit = s32[]{:T(128)} constant(7)
  ROOT %lt = pred[]{:T(512)} compare(%i, %limit), direction=LT
}

%all-reduce-scatter.1 (input: bf16[4,8]) -> bf16[1,8] {
  %all-reduce.2 = bf16[4,8]{1,0:T(8,128)(2,1)} all-reduce(%input), \
channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, to_apply=%add
  ROOT %slice = bf16[1,8]{1,0:T(8,128)(2,1)} dynamic-slice(%all-reduce.2)
}

%begun (p: bf16[4]) -> bf16[4,8] {
  %all-gather.1 = bf16[4,8]{1,0:T(8,128)(2,1)S(1)} all-gather(%p), \
channel_id=2, replica_groups=[2,4]<=[8]
}

%ended (p: bf16[4]) -> bf16[4,8] {
  %all-gather.2 = bf16[4,8]{1,0:T(8,128)(2,1)S(1)} all-gather(%p), \
channel_id=2, replica_groups=[2,4]<=[8]
}

%body (p: (s32[], bf16[4,8])) -> (s32[], bf16[4,8]) {
  %a = bf16[1,8]{1,0} fusion(%x), kind=kCustom, calls=%all-reduce-scatter.1
  %b = bf16[4,8]{1,0} fusion(%x), kind=kCustom, calls=%begun
  %c = bf16[4,8]{1,0} fusion(%b), kind=kCustom, calls=%ended
  %e = (bf16[2,8]{1,0}, bf16[2,8]{1,0}, u32[]{:S(2)}, u32[]{:S(2)}) \
collective-permute-start(%a), channel_id=4, source_target_pairs={{0,1},{1,0}}
  %f = bf16[2,8]{1,0} collective-permute-done(%e)
  %g = (f32[2]{0}, bf16[3]{0}, f32[8]{0}, bf16[12]{0}) \
all-gather-start(%p, %q), \
channel_id=5, replica_groups=[2,4]<=[8]
  %h = (f32[8]{0}, bf16[12]{0}) all-gather-done(%g)
  %d = bf16[2,3]{1,0} all-reduce(%c), channel_id=3, \
replica_groups=mesh['a'=2,'b'=4] {'a','b':(2)2}, to_apply=%add
}

ENTRY %main (p: bf16[4,8]) -> bf16[4,8] {
  ROOT %loop = (s32[], bf16[4,8]) while(%t), condition=%cond, body=%body
}
"""


def test_a_tpu_s_own_forms_are_read():
  """Reduce-scatters in a fusion, parts of a gather, beginnings and ends."""
  assert sorted(traffic.collectives(TPU), key=repr) == [
    Collective("all-gather", 32 + 24, 4, 7),
    Collective("all-gather", 64, 4, 7),
    Collective("all-reduce", 12, 4, 7),
    Collective("collective-permute", 32, 1, 7),
    Collective("reduce-scatter", 64, 4, 7),
  ]


FUSED = """\
%inside (p: f32[2]) -> f32[2] {
  %huge = f32[999]{0} broadcast(%p)
  ROOT %small = f32[2]{0} slice(%huge)
}

ENTRY %main (p: f32[2]) -> f32[2] {
  %kept = bf16[3,2]{1,0} broadcast(%p)
  %pair = (f32[2]{0}, f32[777]{0}) custom-call(%p)
  ROOT %made = f32[2]{0} fusion(%p), kind=kLoop, calls=%inside
}
"""


def test_the_largest_array_is_one_that_exists():
  """What is inside a fusion does not."""
  assert traffic.largest_array(FUSED) == "bf16[3,2]"
  plain = jax.jit(jnp.dot).lower(floats(64, 3), floats(3, 64)).compile()
  assert traffic.largest_array(plain.as_text()) == "f32[64,64]"
