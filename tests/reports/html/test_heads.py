import numpy as np
import xarray as xr

import headjax
from headjax import results
from headjax.reports.html import heads, linked, maps
from headjax.reports.html.packing import unpack
from headjax.reports.html.source import Source
from headjax.statistics import head_intervals

RANDOM = np.random.default_rng(0)


def array(*dims: str, **sizes: int) -> xr.DataArray:
  sizes = {"layer": 2, "head": 3, "example": 5} | sizes
  return xr.DataArray(
    RANDOM.normal(size=[sizes.get(d, 4) for d in dims]), dims=dims
  )


def of(**arrays) -> xr.Dataset:
  return xr.Dataset(arrays)


def test_arrays_are_known_by_their_dimensions():
  found = heads.placed(
    of(
      effect=array("example", "layer", "head"),
      base=array("example"),
      words=xr.DataArray([["a"] * 3] * 2, dims=("layer", "head")),
      seen=array("layer", "head", "query", "key"),
      both=array("source_layer", "source_head", "layer", "head"),
    )
  )
  assert set(found) == {"effect", "seen", "both"}
  assert heads.is_attention(found["seen"]) and heads.is_pairs(found["both"])
  assert not heads.is_attention(found["effect"])
  assert not heads.is_pairs(found["effect"])


def test_an_array_of_sources_alone_is_one_of_heads():
  data = of(energy=array("source_head", "source_layer", source_layer=2))
  [found] = heads.placed(data).values()
  np.testing.assert_array_equal(
    found.transpose("head", "layer").values, data.energy.values
  )
  assert found.attrs["axes"] == ("source_layer", "source_head")


def listed(at) -> xr.Dataset:
  """Values of a list of heads, by two kinds of coordinates."""
  values = xr.DataArray(
    np.arange(2.0 * len(at)).reshape(2, -1), dims=("example", "one")
  )
  layer, head = zip(*at, strict=True)
  return xr.Dataset(
    {"direct": values}, attrs={"model_config": '{"n_layers": 4, "n_heads": 3}'}
  ).assign_coords(
    source_layer=("one", list(layer)), source_head=("one", list(head))
  )


def test_a_list_of_heads_is_laid_out_on_all_heads():
  [found] = heads.placed(listed([(3, 1), (0, 2)])).values()
  assert found.sizes == {"example": 2, "layer": 4, "head": 3}
  assert found.sel(example=1, layer=3, head=1) == 2
  assert found.sel(example=0, layer=0, head=2) == 1
  assert np.isnan(found.values).sum() == 20
  assert found.attrs["list"] == [[3, 1], [0, 2]]


def test_all_heads_for_each_of_a_list_of_sources_are_pairs(tmp_path):
  changed = array("one", "example", "layer", "head", one=2)
  data = of(changed=changed).assign_coords(
    source_layer=("one", [1, 0]), source_head=("one", [2, 1])
  )
  [found] = heads.placed(data).values()
  assert heads.is_pairs(found) and {*heads.HEAD} <= {*found.dims}
  place = {"source_layer": 1, "source_head": 2}
  np.testing.assert_array_equal(found[place], changed[0])
  assert np.isnan(found[{"source_layer": 0, "source_head": 0}]).all()
  entry = linked.pair_values(source(tmp_path), "changed", found)
  values = unpack(entry["values"])
  mean = changed[1].mean("example")
  np.testing.assert_allclose(values[0, 1], mean, rtol=1e-3, atol=1e-3)
  code = entry["code"]
  assert (code["listed"], code["list"]) == ("one", [[1, 2], [0, 1]])
  assert code["mean"] == ["example"]


def test_a_list_with_a_head_twice_is_none_of_heads_unless_of_edges():
  edges = listed([(0, 1), (1, 1)]).assign_coords(
    layer=("one", [2, 3]), head=("one", [0, 0])
  )
  assert {*heads.placed(edges)} == {"direct by source", "direct by reader"}
  assert heads.placed(listed([(0, 1), (0, 1)])) == {}


def test_names_make_a_switch_and_draws_a_mean():
  found = array("kind", "draw", "layer", "head", kind=2).assign_coords(
    kind=["a", "b"]
  )
  assert heads.switches(found) == ["kind"] and heads.averaged(found) == ["draw"]
  assert maps.switch_list(found) == [{"name": "kind", "values": ["a", "b"]}]
  mean, low, _ = maps.estimates(found)
  np.testing.assert_allclose(mean, found.values.mean(1))
  assert low is None


def test_means_and_intervals_are_those_of_the_statistics():
  found = array("head", "kind", "example", "layer", kind=2).assign_coords(
    kind=[10, 20]
  )
  mean, low, high = maps.estimates(found)
  for i in range(2):
    table = found.isel(kind=i).transpose("example", "layer", "head").values
    expected = head_intervals(table)
    np.testing.assert_allclose(mean[i], expected.estimate)
    np.testing.assert_array_equal(low[i], expected.low)
    np.testing.assert_array_equal(high[i], expected.high)


def test_a_head_that_lacks_a_value_has_a_mean_and_no_interval():
  found = array("example", "layer", "head")
  found[0, 1, 2] = np.nan
  found[:, 0, 0] = np.nan
  mean, low, high = maps.estimates(found)
  np.testing.assert_allclose(mean[1, 2], found.values[1:, 1, 2].mean())
  assert np.isnan([mean[0, 0], low[0, 0], low[1, 2], high[1, 2]]).all()
  rest = head_intervals(found.values[:, 1:, :2])
  np.testing.assert_array_equal(low[1:, :2], rest.low)


def test_colours_are_those_of_the_figures_for_nats_alone():
  nats = maps.colour(np.array([0.01, np.nan]), "logits (nats)")
  assert nats["limit"] == 0.2 and nats["width"] == 0.2 and nats["signed"]
  assert nats["ticks"][len(nats["ticks"]) // 2] == 0
  plain = maps.colour(np.array([1.0, 3.0]), "1")
  assert (plain["limit"], plain["width"], plain["signed"]) == (3, None, False)
  assert maps.colour(np.zeros(3), "1")["limit"] == 1


def source(tmp_path) -> Source:
  attrs = {"model": "m", "run": "r", "task": "sva", "pairs_digest": "p"}
  return Source(tmp_path / "heads-sva.nc", "x/heads-sva.nc", attrs)


def test_pairs_keep_the_order_of_source_and_head(tmp_path):
  found = array(
    "head",
    "input",
    "source_head",
    "layer",
    "source_layer",
    source_layer=2,
    source_head=3,
    input=2,
  )
  found = found.assign_coords(input=["Q", "K"])
  entry = linked.pair_values(source(tmp_path), "pk", found)
  values = unpack(entry["values"])
  assert values.shape == (2, 2, 3, 2, 3)
  one = found.sel(input="K", source_layer=1, source_head=2, layer=0, head=1)
  np.testing.assert_allclose(values[1, 1, 2, 0, 1], one, rtol=1e-3)
  assert entry["quantity"] == "heads: pk" and entry["model"] == "r"


def test_patterns_have_the_tokens_of_their_prompt(tmp_path):
  sizes = {"prompt": 2, "query": 3, "key": 3}
  found = np.abs(array("layer", "head", "prompt", "query", "key", **sizes))
  found[:, :, 1, 2] = 0  # the second prompt has two tokens
  tokens = [["a", "b", "c"], ["d", "e", ""]]
  found = found.assign_coords(token=(("prompt", "key"), tokens))
  entry = linked.pattern_values(source(tmp_path), "pattern", found)
  assert entry["tokens"] == tokens and entry["lengths"] == [3, 2]
  values = unpack(entry["values"])
  np.testing.assert_allclose(
    values[1, 0, 2], found[0, 2, 1], rtol=1e-2, atol=1e-4
  )
  bare = linked.pattern_values(source(tmp_path), "p", found.drop_vars("token"))
  assert bare["tokens"][1] == ["0", "1", "2"]


def test_labels_are_those_of_examples_alone():
  data = of(base=array("example"), effect=array("example", "layer", "head"))
  data = data.assign_coords(group=("example", list("abcde")))
  data.base[1] = np.nan
  found = linked.example_labels(data)
  assert found["group"] == list("abcde") and set(found) == {"base", "group"}
  assert found["base"][1] is None


def test_a_list_of_edges_is_gathered_by_each_end(tmp_path):
  ends = [(0, 0, 1, 1), (0, 0, 1, 0), (0, 2, 1, 1), (0, 0, 1, 1)]
  names = ("source_layer", "source_head", "layer", "head")
  columns = dict(zip(names, np.transpose(ends), strict=True))
  kl = np.arange(8.0).reshape(2, 4)
  data = xr.Dataset(
    {"kl": (("example", "edge"), kl, {"units": "nats"})},
    {k: ("edge", v) for k, v in columns.items()}
    | {"input": ("edge", ["Q", "Q", "Q", "K"])},
  )
  found = heads.placed(data)
  assert set(found) == {"kl by source", "kl by reader"}
  left = found["kl by source"]
  assert {*left.dims} == {"example", "layer", "head", "input"}
  one = left.sel(layer=0, head=0, input="Q")
  np.testing.assert_array_equal(one, kl[:, :2].mean(1))
  assert np.isnan(left.sel(layer=0, head=2, input="K")).all()
  come = found["kl by reader"].sel(layer=1, head=1)
  np.testing.assert_array_equal(come.sel(input="Q"), kl[:, [0, 2]].mean(1))
  np.testing.assert_array_equal(come.sel(input="K"), kl[:, 3])
  path = tmp_path / "edges.nc"
  results.save(data.assign_attrs({results.MARK: "0"}), path)
  code = Source(path, "edges.nc", {}).code("kl by source", left)
  again = eval(code["load"], {"headjax": headjax})
  assert code["axes"] == ["source_layer", "source_head"]
  np.testing.assert_array_equal(
    again.sel(source_layer=0, source_head=0, input="Q"), one
  )
