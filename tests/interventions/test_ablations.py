"""Is a group gone as if a whole forward had run without it?"""

import jax
import numpy as np
import oracle
import pytest
from helpers import FAMILIES, PUBLIC, SCREENING, random_model, random_tokens
from one_line import refusal

from headjax.data.probes import Probe, plain_targets
from headjax.interventions import ablations
from headjax.interventions.ablations import ablate_groups, first_layer
from headjax.models.decoder import run, unembed
from headjax.models.sites import Edit, Edits

QUERY = np.array([11, 7, 9])


@pytest.fixture(autouse=True)
def one_device(monkeypatch):
  """Several virtual devices only make the compiler slower."""
  monkeypatch.setattr(jax, "local_device_count", lambda: 1)


def probe_of(config):
  tokens = random_tokens(config, (len(QUERY), 12))
  answer = random_tokens(config, len(QUERY), seed=5)
  keys = plain_targets(QUERY, np.array([2, -1, 0]))
  foil = (answer + 3) % config.d_vocab
  return Probe(tokens, QUERY, answer, keys, 0.1, "few", foil=foil)


def groups_of(config, n=5):
  """Random ones, an empty one, a later layer alone, and one twice."""
  shape = (n, config.n_layers, config.n_heads)
  groups = np.random.default_rng(0).random(shape) < 0.4
  groups[1] = False
  groups[2, :-1] = False
  groups[2, -1, 0] = True
  groups[3] = groups[0]
  groups[4, 0] = False
  groups[4, 1, 1] = True
  return groups


def wanted_of(logits, answer, foil):
  log_z = np.log(np.exp(logits - logits.max()).sum()) + logits.max()
  order = np.argsort(-logits, kind="stable").tolist()
  return {
    "loss": log_z - logits[answer],
    "logit": logits[answer],
    "difference": logits[answer] - logits[foil],
    "rank": order.index(answer),
  }


@pytest.mark.parametrize(
  "name", ["gpt2", pytest.param("llama_windows", marks=pytest.mark.slow)]
)
def test_groups_are_gone_as_in_the_oracle(x64, name):
  config = FAMILIES[name]
  model, w = random_model(config)
  probe, groups = probe_of(config), groups_of(config)
  found = ablate_groups(model, probe, groups, budget_bytes=90_000)
  assert found.attrs["distinct_groups"] == 4
  assert found.attrs["chunk"] < len(probe)
  for i, n in enumerate(QUERY + 1):
    zero = np.zeros((n, config.d_head))
    for g, group in enumerate(groups):
      patch = {(layer, head): zero for layer, head in np.argwhere(group)}
      logits = oracle.forward(config, w, probe.tokens[i, :n], z_patch=patch)[1]
      wanted = wanted_of(logits[-1], probe.answer[i], probe.foil[i])
      for measure, value in wanted.items():
        got = found[measure].values[i, g]
        assert got == pytest.approx(value, abs=1e-9), measure
  for measure in ("loss", "logit", "difference", "rank"):
    base = found[f"base_{measure}"]
    np.testing.assert_array_equal(base, found[measure][:, 1])
    assert measure == "rank" or np.abs(found[measure][:, 0] - base).max() > 0.01


OTHERS = {
  "screening": SCREENING,
  "tracr": FAMILIES["tracr"],
  "neox": PUBLIC["neox"],
  "gemma2": PUBLIC["gemma2"],
  "olmoe": PUBLIC["olmoe"],
}


QUICK = ("screening",)


@pytest.mark.parametrize(
  "name",
  [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in OTHERS
  ],
)
def test_groups_are_gone_as_in_a_whole_run_with_edits(x64, name):
  config = OTHERS[name]
  model, _ = random_model(config)
  probe, groups = probe_of(config), groups_of(config)
  found = ablate_groups(model, probe, groups)
  valid = np.arange(12) <= QUERY[:, None]
  for g, group in enumerate(groups):
    gate = group[:, None, None, :, None] * 1.0
    edits = Edits(z=(Edit(gate, np.zeros((config.n_layers, 1, 1, 1, 1))),))
    resid, _ = run(
      model.model, model.params, probe.tokens, edits, key_valid=valid
    )
    logits = np.asarray(unembed(model.model, model.params, resid))
    for i, query in enumerate(QUERY):
      wanted = wanted_of(logits[i, query], probe.answer[i], probe.foil[i])
      assert found.loss.values[i, g] == pytest.approx(wanted["loss"], abs=1e-9)


def test_a_run_starts_at_the_first_layer_of_its_group(x64, monkeypatch):
  """Nothing before it is looked at: the streams there may be anything."""
  config = FAMILIES["gpt2"]
  model, _ = random_model(config)
  probe, groups = probe_of(config), groups_of(config)[[2, 4]]
  assert [first_layer(g) for g in groups] == [2, 1]
  whole = ablate_groups(model, probe, groups)
  start = ablations._start

  def broken(*args):
    found = start(*args)
    return found.replace(resid_pre=found.resid_pre.at[0].set(np.nan))

  monkeypatch.setattr(ablations, "_start", broken)
  found = ablate_groups(model, probe, groups)
  np.testing.assert_array_equal(found.loss, whole.loss)


def test_one_program_serves_all_groups(x64):
  config = FAMILIES["gpt2"]
  model, _ = random_model(config, seed=3)
  before = ablations._without.jitted._cache_size()
  ablate_groups(model, probe_of(config), groups_of(config))
  ablate_groups(model, probe_of(config), groups_of(config)[:2])
  assert ablations._without.jitted._cache_size() <= before + 1


def test_equal_logits_do_not_make_a_model_right():
  logits, token = np.zeros((2, 7)), np.array([0, 4])
  rank = ablations._measured(jax.numpy.asarray(logits), token, token)[3]
  assert rank.tolist() == [0, 4]


def test_what_does_not_fit_is_refused():
  config = FAMILIES["gpt2"]
  model, _ = random_model(config, dtype="float32")
  probe = probe_of(config)
  with refusal("groups: got bool of shape (5, 3, 3); expected bool [group, 3"):
    ablate_groups(model, probe, groups_of(config)[:, :, 1:])
  with refusal("groups: got bool of shape (0, 3, 4)"):
    ablate_groups(model, probe, groups_of(config)[:0])
  with refusal("budget_bytes: got 10"):
    ablate_groups(model, probe, groups_of(config), budget_bytes=10)
