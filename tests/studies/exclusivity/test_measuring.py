"""Is what is missing measured, and what is there left alone?"""

import dataclasses

import numpy as np
import pytest
from helpers import GPT2, random_model
from one_line import refusal
from saved_effects import saved

from headjax.checks import fail
from headjax.data.toy import Toy
from headjax.studies.exclusivity import measuring, study
from headjax.studies.exclusivity.measuring import Part, measure_all
from headjax.studies.exclusivity.store import Store, labels
from headjax.studies.exclusivity.subjects import Subject

SUBJECT = Subject("spec", "mine", "learned@tiny", 7, "toy", 1.5)


@pytest.fixture
def world(tmp_path, monkeypatch):
  """A store, and a model whose digest a test can change."""
  config = dataclasses.replace(GPT2, d_vocab=512)
  model, _ = random_model(config, dtype="float32")
  here = {"model": dataclasses.replace(model, tokenizer=Toy().tokenizer)}
  monkeypatch.setattr(measuring, "load_model", lambda spec: here["model"])
  here["store"], here["calls"] = Store(tmp_path), []
  return here


def part(world, name, **options):
  def measure(case):
    world["calls"].append((name, case.task))
    return saved(np.ones((2, 2)))

  return Part(name, measure, **options)


def go(world, *parts, tasks=("sva", "quote"), **options):
  world["store"] = Store(world["store"].folder)  # as another call would
  world["calls"].clear()
  return list(
    measure_all(SUBJECT, world["store"], parts, tasks, examples=8, **options)
  )


def test_each_task_is_measured_once(world):
  heads = part(world, "heads")
  assert go(world, heads) == [
    ("heads", "sva", "measured"), ("heads", "quote", "measured")
  ]  # fmt: skip
  assert (world["store"].folder / "mine" / "heads-sva.nc").is_file()
  assert go(world, heads) == [
    ("heads", "sva", "was there"), ("heads", "quote", "was there")
  ]  # fmt: skip
  assert world["calls"] == []


def test_a_deleted_file_is_measured_again_and_only_that(world):
  heads = part(world, "heads")
  go(world, heads)
  (world["store"].folder / "mine" / "heads-quote.nc").unlink()
  go(world, heads)
  assert world["calls"] == [("heads", "quote")]


def test_other_weights_or_prompts_are_measured_again(world):
  heads = part(world, "heads")
  go(world, heads)
  world["model"] = dataclasses.replace(world["model"], digest="1" * 64)
  go(world, heads)
  assert len(world["calls"]) == 2
  other = part(world, "heads", splits=("discovery",))
  go(world, other)
  assert len(world["calls"]) == 2


def test_fewer_examples_are_other_prompts(world):
  seen = []

  def measure(case):
    seen.append(len(case.pairs("discovery")))
    return saved(np.ones((2, 2)))

  row = Part("heads", measure)
  go(world, row, tasks=("sva",))
  store = world["store"]
  for examples in (8, 12, None):
    list(measure_all(SUBJECT, store, [row], ["sva"], examples=examples))
  assert seen == [8, 12, 300]


def test_a_part_across_tasks_depends_on_all_of_them(world):
  across = part(world, "across", across=True)
  go(world, across)
  go(world, across)
  assert world["calls"] == []
  go(world, across, tasks=("sva", "quote", "plural"))
  assert len(world["calls"]) == 3


def test_leakage_is_measured_on_all_missing_tasks_at_once(world, monkeypatch):
  def measure_all(model, prompts, progress):
    world["calls"].append([pairs.name for pairs in prompts])
    values = [float(len(pairs.name)) for pairs in prompts]
    return [saved(np.full((2, 2), value)) for value in values]

  monkeypatch.setattr(study.leakage, "measure_all", measure_all)
  row = next(part for part in study.PARTS if part.name == "leakage")
  tasks = ("sva", "quote", "plural")
  found = go(world, row, tasks=tasks)
  assert found == [("leakage", task, "measured") for task in tasks]
  assert world["calls"] == [["sva", "quote", "plural"]]
  for task in tasks:
    effect = world["store"].load("mine", "leakage", task).effect
    assert (effect == len(task)).all()
  (world["store"].folder / "mine" / "leakage-quote.nc").unlink()
  (world["store"].folder / "mine" / "leakage-plural.nc").unlink()
  go(world, row, tasks=tasks)
  assert world["calls"] == [["quote", "plural"]]


def test_a_part_may_keep_to_some_tasks(world):
  found = go(world, part(world, "edges", only=("quote", "plural")))
  assert [task for _, task, _ in found] == ["quote"]


def test_other_layers_are_measured_again_where_they_count(world):
  edges = part(world, "edges", by_layers=True)
  heads = part(world, "heads")
  go(world, edges, heads, tasks=("sva",))
  go(world, edges, heads, tasks=("sva",), layers=[0, 1])
  assert world["calls"] == [("edges", "sva")]


def test_a_part_without_a_task_is_one_file(world):
  assert go(world, part(world, "weights", splits=())) == [
    ("weights", None, "measured")
  ]  # fmt: skip
  assert (world["store"].folder / "mine" / "weights.nc").is_file()
  assert world["store"].load("mine", "weights").attrs["task"] == ""


def test_results_carry_the_labels_of_their_run(world):
  go(world, part(world, "heads"))
  [first, second] = world["store"].all("heads")
  assert labels(second) == {
    "run": "mine", "design": "learned@tiny", "seed": 7, "corpus": "toy",
    "task": "sva",
  }  # fmt: skip
  assert first.attrs["task"] == "quote"
  assert first.attrs["validation_loss"] == 1.5


def test_names_that_begin_alike_are_kept_apart(world):
  go(world, part(world, "paths"), part(world, "paths-discovery"))
  assert len(world["store"].all("paths")) == 2
  assert len(world["store"].all("paths-discovery")) == 2


def test_what_does_not_apply_or_is_refused_is_told_and_not_saved(world):
  never = part(world, "never", applies=lambda case: "no such layers")

  def refuse(case):
    fail("model", "a norm", "none", "take another")

  found = go(world, never, Part("refused", refuse), tasks=("sva",))
  assert found[0] == ("never", "sva", "does not apply: no such layers")
  assert found[1][2].startswith("refused: model: got a norm")
  assert not list(world["store"].folder.rglob("*.nc"))


def test_results_of_parts_come_together_where_all_are_there(world):
  go(world, part(world, "a"))
  go(world, part(world, "b"), tasks=("sva",))
  [(a, b)] = world["store"].together("a", "b")
  assert (a.attrs["part"], b.attrs["part"]) == ("a", "b")
  assert a.attrs["task"] == b.attrs["task"] == "sva"
  with refusal("no such file", "--parts b"):
    world["store"].load("mine", "b", "quote")


def test_parts_come_after_what_they_need():
  seen = set()
  for row in study.PARTS:
    assert set(row.needs) <= seen, row.name
    seen.add(row.name)
  assert len(seen) == len(study.PARTS)


def test_choosing_a_part_chooses_what_it_needs():
  chosen = [row.name for row in study.choose(["selectivity"])]
  assert chosen == ["heads-discovery", "selectivity"]
  assert [row.name for row in study.choose(["heads"])] == [
    "heads-discovery", "heads-validation", "heads-evaluation"
  ]  # fmt: skip
  assert study.choose(None) == study.PARTS
  with refusal("--parts", "'hats'", "selectivity"):
    study.choose(["hats"])
