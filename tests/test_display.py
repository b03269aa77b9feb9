"""Is every public object short at the prompt, and a table in a notebook?"""

import dataclasses
import importlib
import inspect
import re

import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_docstrings
import xarray as xr

import headjax
from headjax import Edit, Edits, LinearEdit, geometry, statistics
from headjax.data import TASKS, toy_tokenizer
from headjax.interventions import (
  ablations,
  circuits,
  edits,
  graph,
  metrics,
  nodes,
  questions,
  responses,
)
from headjax.models.decoder import default_context
from headjax.outline import of_fields, table, table_of_fields
from headjax.reports import plots
from headjax.reports.figures import Panel
from headjax.reports.summary import summarise

PACKAGES = (*test_docstrings.PACKAGES, "headjax.interventions")
# Inside of a compiled sweep, or two numbers: nobody is shown them.
INNER = {"Leakage", "WriteError"}
LONGEST = 500  # characters of a repr, ten short lines


def public_classes():
  """Name -> class, of the packages and of what docs/api shows."""
  found = {}
  for package in PACKAGES[:4]:
    module = importlib.import_module(package)
    found |= {name: getattr(module, name) for name in module.__all__}
  for target in test_docstrings.SHOWN:
    if target.startswith(("headjax.interventions", "headjax.reports")):
      module = importlib.import_module(target)
      found |= {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == target and name[0] != "_"
      }
  return {k: v for k, v in found.items() if inspect.isclass(v)}


@pytest.fixture(scope="module")
def values():
  """An instance of every public class, with sizes that are seen in it."""
  model, _ = helpers.random_model(helpers.GPT2, dtype="float32")
  toy = toy_tokenizer.tokenizer()
  pairs = headjax.load_task("sva", toy, examples=8)
  own = helpers.random_pairs(model.config, [7] * 3, [1] * 3)
  batch = questions.batch_of(own, np.arange(3))
  random = np.random.default_rng(0)
  effects = random.normal(size=(8, 3, 4))
  result = xr.Dataset(
    {"effect": (("example", "layer", "head"), effects),
     "base": ("example", np.ones(8))},
    attrs={"model": "random", "task": "sva", "split": "evaluation"},
  )  # fmt: skip
  summary = summarise(result)
  _, acts = jax.jit(headjax.run, static_argnums=0)(
    model.model, model.params, np.zeros((3, 7), int)
  )
  answer = jnp.zeros(7, int)
  writes = geometry.write_space(jnp.ones((3, 4, 2, 16)))
  ov = geometry.ov_circuit(jnp.ones((3, 4, 16, 2)), jnp.ones((3, 4, 2, 16)))
  sent = jnp.zeros((16, 3, 7, 16))
  many = [f"word{i % 4}" for i in range(8)]
  found = [
    acts,
    Edit(jnp.ones((3, 1)), jnp.ones((3, 16))),
    LinearEdit(jnp.ones(3), jnp.ones((3, 16, 16))),
    edits.zero(model.config, "z"),
    model,
    pairs,
    headjax.show_tokens(toy, pairs.select([0])),
    writes,
    geometry.conservation(writes, jnp.ones((3, 16, 1))),
    ov,
    geometry.KerdockBasis(192, 5),
    TASKS["sva"],
    TASKS["sva"].pools["subject"],
    summary.concentration,
    statistics.factorise(effects),
    statistics.half_lanes(effects, [True, True, False, False], draws=20),
    statistics.head_intervals(effects, draws=20),
    summary.lanes,
    statistics.leave_one_group_out(statistics.neff, effects, many),
    statistics.partitions([0, 0, 0, 1, 1, 1]),
    statistics.mean_ratios(effects[:, 0], np.ones(8), draws=20),
    statistics.seed_interval([1.0, 2.0, 4.0]),
    statistics.confirm_heads(effects, effects, count=1)[0],
    metrics.LogitDifference(answer, answer),
    metrics.LogProbability(answer),
    nodes.Node("head", 1, 2, "K"),
    ablations.Start(
      jnp.zeros((3, 7, 16)), default_context(own.clean), answer, answer, answer
    ),
    graph.Resume(jnp.asarray(1), sent),
    responses.Responses(jnp.ones(7, bool)),
    circuits.PromptGraph(model, batch, "zero", metrics.LogProbability(answer)),
    plots.heatmap(result),
    Panel(effects, "sva", np.ones(8)),
    summary.top[0],
    summary,
  ]
  return {type(value).__name__: value for value in found}


def plain(shown):
  """HTML without its styles."""
  return re.sub(' style="[^"]*"', "", shown)


def arrays(value):
  """The arrays that a dataclass or named tuple holds itself."""
  names = getattr(value, "_fields", None) or [
    field.name
    for field in (
      dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    )
    if field.repr
  ]
  own = (getattr(value, name) for name in names)
  return [x for x in own if isinstance(x, np.ndarray | jax.Array) and x.ndim]


def test_every_public_class_is_looked_at(values):
  assert public_classes().keys() - INNER == values.keys()


def test_each_is_short_and_says_no_single_number_of_an_array(values):
  for name, value in values.items():
    text = repr(value)
    assert name in text or name == "TokenTable"
    assert len(text) <= LONGEST, text
    assert not re.search(r"[aA]rray\(|dtype=| at 0x|np\.", text), text
    tells = of_fields is type(value).__repr__
    for array in arrays(value) if tells else ():
      assert f"[{', '.join(map(str, array.shape))}]" in text


def test_activations_name_the_sites_that_there_are(values):
  text = repr(values["Activations"])
  assert "z=float32[3, 3, 7, 4, 5]" in text and "router" not in text
  assert max(map(len, text.splitlines())) < 80


def test_those_with_words_of_their_own_name_their_sizes(values):
  for name, words in {
    "LoadedModel": "3 layers x 4 heads",
    "PromptPairs": "pairs 8, tokens 5",
    "PromptGraph": "clean=int32[3, 7]",
    "Plot": "3 x 4 heads, 8 prompts",
    "Concentration": "Neff=",
    "Lanes": "Lambda=",
    "TokenTable": "' is' 338*",
  }.items():
    assert words in repr(values[name])


def test_each_is_a_table_or_a_picture_in_a_notebook(values):
  for name, value in values.items():
    if name == "Plot":
      assert value._repr_png_().startswith(b"\x89PNG")
    elif name != "PromptGraph":
      shown = value._repr_html_()
      assert shown.startswith("<table>") and shown.endswith("</table>")
      assert len(shown) < 2000 and "<lambda>" not in shown, shown
      assert not re.search(r"[aA]rray\(| at 0x|np\.", shown), shown


def test_a_table_escapes_its_text_and_rounds_its_numbers():
  shown = plain(table("a < b", {"<x>": "1 > 0", "share": 1 / 3}))
  assert "a &lt; b" in shown and "&lt;x&gt;" in shown and "1 &gt; 0" in shown
  assert "<td>0.333333</td>" in shown


def test_pairs_show_the_ids_of_the_first(values):
  pairs = values["PromptPairs"]
  shown = plain(pairs._repr_html_())
  assert " ".join(map(str, pairs.clean[0])) in shown
  assert f"<td>{pairs.foil[0]}</td>" in shown
  assert "<td>8</td>" in shown and pairs.digest[:12] in shown


def test_a_model_shows_what_is_not_usual(values):
  shown = plain(values["LoadedModel"]._repr_html_())
  assert "<th>d_model</th><td>16</td>" in shown
  assert "rotary_theta" not in shown and "windows" not in shown


def test_a_field_at_its_default_is_left_out(values):
  assert repr(nodes.Node("embedding")) == "Node(kind='embedding')"
  assert repr(Edits()) == "Edits()"
  config = repr(values["LoadedModel"].config)
  assert "d_model=16" in config and "norm=" not in config
  assert table_of_fields(Edits()).count("<tr>") == 1
