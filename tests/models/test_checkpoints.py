"""Is what is read from a checkpoint what was saved, or else refused by name?"""

import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from one_line import refusal

from headjax.models.checkpoint_writer import Writer
from headjax.models.checkpoints import (
  DamagedCheckpointError,
  read_meta,
  restore,
  steps,
)


def state(seed=0):
  """Parameters of several types, and the state of an optimiser."""
  keys = jax.random.split(jax.random.key(seed), 3)
  params = {
    "embed": {"W_E": jax.random.normal(keys[0], (64, 32))},
    "blocks": {
      "W": jax.random.normal(keys[1], (2, 32, 32), jnp.bfloat16),
      "b": jax.random.normal(keys[2], (2, 32)),
    },
  }
  return {"params": params, "optimizer": optax.adamw(0.1).init(params)}


def like(tree):
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), tree
  )


def save(folder, step, parts, **options):
  with Writer(folder) as writer:
    writer.save(step, parts, **options)


def assert_same(found, wanted):
  assert jax.tree.structure(found) == jax.tree.structure(wanted)
  pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
  for a, b in pairs:
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
  """A folder with checkpoints 3 and 7, not to be changed."""
  folder = tmp_path_factory.mktemp("saved")
  save(folder, 3, state(3))
  save(folder, 7, state(7))
  return folder


FILES = [
  "_CHECKPOINT_METADATA", "commit_success.txt", "meta/metadata",
  "params/_METADATA", "params/manifest.ocdbt", "params/_sharding",
  "params/array_metadatas/process_0", "optimizer/manifest.ocdbt",
  "optimizer/ocdbt.process_0/manifest.ocdbt",
]  # fmt: skip


def test_a_state_comes_back_bit_by_bit(saved):
  for step in (3, 7):
    parts, meta = restore(saved, step, like(state()))
    assert_same(parts, state(step))
    assert (meta.step, meta.kept) == (step, True)


def test_one_part_is_read_alone(saved):
  parts, _ = restore(saved, 7, {"params": like(state()["params"])})
  assert_same(parts, {"params": state(7)["params"]})


def test_a_path_may_lead_up_and_down_again(saved):
  path = saved / "7" / ".." / ".." / saved.name
  assert_same(restore(path, 7, like(state()))[0], state(7))


def test_it_comes_back_to_where_it_is_expected(saved):
  mesh = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
  sharding = NamedSharding(mesh, PartitionSpec("b"))
  wanted = jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
    state()["params"],
  )
  parts, _ = restore(saved, 7, {"params": wanted})
  assert_same(parts["params"], state(7)["params"])
  for leaf in jax.tree.leaves(parts):
    assert leaf.sharding == sharding


def test_a_sharded_state_is_saved_whole(tmp_path):
  mesh = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
  sharding = NamedSharding(mesh, PartitionSpec("b"))
  parts = {"params": jax.device_put(state()["params"], sharding)}
  save(tmp_path, 1, parts)
  found, _ = restore(tmp_path, 1, {"params": like(state()["params"])})
  assert_same(found["params"], state()["params"])


def test_what_is_donated_after_save_is_saved_as_it_was(tmp_path):
  overwrite = jax.jit(lambda x: x * 0 - 1, donate_argnums=0)
  params = {"W": jax.random.normal(jax.random.key(0), (512, 512))}
  kept = np.array(params["W"])
  with Writer(tmp_path) as writer:
    writer.save(1, {"params": params})
    for _ in range(20):
      params = {"W": overwrite(params["W"])}
  found, _ = restore(tmp_path, 1, {"params": like(params)})
  np.testing.assert_array_equal(found["params"]["W"], kept)


def test_orbax_reads_it_too(saved):
  with ocp.StandardCheckpointer() as checkpointer:
    target = {"blocks.W": 0, "blocks.b": 0, "embed.W_E": 0}
    params = state(7)["params"]
    target = {
      "blocks.W": params["blocks"]["W"],
      "blocks.b": params["blocks"]["b"],
      "embed.W_E": params["embed"]["W_E"],
    }
    assert_same(checkpointer.restore(saved / "7" / "params", target), target)


def test_only_the_newest_of_those_to_be_replaced_stays(tmp_path):
  with Writer(tmp_path) as writer:
    for step, kept in ((0, True), (2, False), (5, False), (6, True)):
      writer.save(step, {"params": state()["params"]}, kept=kept)
      writer.wait()
      assert step in steps(tmp_path)
    assert steps(tmp_path) == [0, 5, 6]
    writer.save(9, {"params": state()["params"]}, kept=False)
  assert steps(tmp_path) == [0, 6, 9]
  assert not list(tmp_path.glob("*tmp*"))


def test_an_unfinished_checkpoint_is_none_and_goes(saved, tmp_path):
  shutil.copytree(saved / "7", tmp_path / "7")
  with Writer(tmp_path) as writer:
    writer.save(9, {"params": state()["params"]})
  (tmp_path / "9").rename(tmp_path / f"9{ocp.utils.TMP_DIR_SUFFIX}")
  assert steps(tmp_path) == [7]
  Writer(tmp_path)
  assert [path.name for path in tmp_path.iterdir()] == ["7"]


def test_there_are_no_steps_without_a_folder(tmp_path):
  assert steps(tmp_path / "nowhere") == []


def test_a_checkpoint_of_that_number_is_replaced(saved, tmp_path):
  shutil.copytree(saved / "7", tmp_path / "7")
  (tmp_path / "7" / "params" / "manifest.ocdbt").write_bytes(b"")
  save(tmp_path, 7, state(1))
  assert_same(restore(tmp_path, 7, like(state()))[0], state(1))


def test_every_file_of_a_checkpoint_is_known(saved):
  files = {
    str(path.relative_to(saved / "7"))
    for path in (saved / "7").rglob("*")
    if path.is_file()
  }
  assert set(FILES) <= files


def truncated(raw):
  return [raw[:n] for n in {0, 1, len(raw) // 2, len(raw) - 1} if n < len(raw)]


def flipped(raw):
  rng = np.random.default_rng(len(raw))
  found = []
  for place in rng.integers(0, 8 * len(raw), 8):
    changed = bytearray(raw)
    changed[place // 8] ^= 1 << (place % 8)
    found.append(bytes(changed))
  return found


@pytest.mark.parametrize("damage", [truncated, flipped, lambda raw: [None]])
def test_damage_to_any_file_is_refused_by_name_or_harmless(
  saved, tmp_path, damage, capfd
):
  folder = pathlib.Path(shutil.copytree(saved / "7", tmp_path / "7")).parent
  refused = set()
  for path in sorted(p for p in folder.rglob("*") if p.is_file()):
    raw = path.read_bytes()
    for damaged in damage(raw):
      path.unlink() if damaged is None else path.write_bytes(damaged)
      try:
        assert_same(restore(folder, 7, like(state()))[0], state(7))
      except DamagedCheckpointError as error:
        assert str(folder / "7") in str(error)
        assert "\n" not in str(error) and len(str(error)) < 500
        refused.add(str(path.relative_to(folder / "7")).split("/d/")[0])
    path.write_bytes(raw)
  assert_same(restore(folder, 7, like(state()))[0], state(7))
  assert {"meta/metadata", "params/manifest.ocdbt"} <= refused
  assert {"optimizer/manifest.ocdbt", "params/ocdbt.process_0"} <= refused
  assert capfd.readouterr() == ("", "")


def test_another_array_in_a_sound_file_is_refused(saved, tmp_path):
  """What no format notices: the files of another state."""
  shutil.copytree(saved / "7", tmp_path / "7")
  shutil.rmtree(tmp_path / "7" / "params")
  shutil.copytree(saved / "3" / "params", tmp_path / "7" / "params")
  with pytest.raises(DamagedCheckpointError, match="params blocks.W with an"):
    restore(tmp_path, 7, like(state()))


def test_a_checkpoint_under_another_number_is_refused(saved, tmp_path):
  shutil.copytree(saved / "7", tmp_path / "8")
  with pytest.raises(DamagedCheckpointError, match="/8: got a meta"):
    restore(tmp_path, 8, like(state()))


def test_a_meta_that_somebody_changed_is_refused(saved, tmp_path):
  shutil.copytree(saved / "7", tmp_path / "7")
  path = tmp_path / "7" / "meta" / "metadata"
  meta = json.loads(path.read_text())
  meta["parts"]["params"]["blocks.W"]["checksum"] ^= 1
  path.write_text(json.dumps(meta))
  with pytest.raises(DamagedCheckpointError, match="/7: got a meta"):
    restore(tmp_path, 7, like(state()))


def test_arrays_that_do_not_fit_are_named(saved):
  params = like(state()["params"])
  wide = params["embed"]["W_E"]
  params["embed"]["W_E"] = jax.ShapeDtypeStruct(
    (65, 32), wide.dtype, sharding=wide.sharding
  )
  with refusal(f"{saved}/7: params embed.W_E", "[64, 32]", "[65, 32]"):
    restore(saved, 7, {"params": params})
  del params["embed"]
  with refusal("params embed.W_E", "no such array"):
    restore(saved, 7, {"params": params})


def test_the_digest_is_that_of_one_part(saved, tmp_path):
  digest = read_meta(saved, 7).digest("params")
  assert len(digest) == 64
  assert read_meta(saved, 3).digest("params") != digest
  save(tmp_path, 9, state(7) | {"optimizer": jnp.ones(3)})
  assert read_meta(tmp_path, 9).digest("params") == digest


def test_a_full_disk_is_one_line_and_leaves_the_last(
  saved, tmp_path, monkeypatch
):
  shutil.copytree(saved / "7", tmp_path / "7")
  usage = shutil.disk_usage(tmp_path)._replace(free=1000)
  with Writer(tmp_path) as writer:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="/9: not written .needs 1.1 MB") as error:
      writer.save(9, state(9))
  assert "step 7 is the newest" in str(error.value)
  assert "\n" not in str(error.value)
  assert_same(restore(tmp_path, 7, like(state()))[0], state(7))
  assert [path.name for path in tmp_path.iterdir()] == ["7"]


# TensorStore tells a loop that Orbax has closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failure_in_the_background_is_raised_and_leaves_the_last(
  saved, tmp_path, monkeypatch
):
  shutil.copytree(saved / "7", tmp_path / "7")

  def full(*args, **kwargs):
    raise OSError(28, "No space left on device")

  writer = Writer(tmp_path)
  with monkeypatch.context() as patched:
    handler = ocp.JsonCheckpointHandler
    patched.setattr(handler, "_save_fn", full)
    with pytest.raises(OSError, match="/9: not written .*No space") as error:
      writer.save(9, state(9))
      writer.wait()
  assert "\n" not in str(error.value)
  assert steps(tmp_path) == [7]
  save(tmp_path, 11, state(11))
  assert steps(tmp_path) == [7, 11]
