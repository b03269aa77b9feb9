import jax
import pytest
from helpers import GPT2

from headjax.training import meter, peak
from headjax.training.meter import Meter
from headjax.training.utilisation import step_madds


class Clock:
  """A clock that the test moves."""

  def __init__(self):
    self.now = 100.0

  def perf_counter(self):
    return self.now


@pytest.fixture
def clock(monkeypatch):
  clock = Clock()
  monkeypatch.setattr(meter, "time", clock)
  monkeypatch.setattr(meter, "peak_flops", lambda: 1e6)
  return clock


def test_the_first_rates_are_unknown(clock):
  rates = Meter(GPT2, 8).rates(1, 0.0)
  assert rates == {"tokens_per_s": None, "mfu": None, "input_share": None}


def test_rates_are_those_since_the_last_time(clock):
  measured = Meter(GPT2, 8)
  measured.rates(10, 1.0)
  clock.now += 4.0
  rates = measured.rates(30, 3.0)
  assert rates["tokens_per_s"] == 20 * 8 * GPT2.n_ctx / 4
  per_s = 2 * step_madds(GPT2, 8) * 20 / 4
  assert rates["mfu"] == pytest.approx(per_s / 1e6, abs=1e-4)
  assert rates["input_share"] == 0.5
  clock.now += 1.0
  assert measured.rates(31, 3.0)["input_share"] == 0


def test_pauses_are_left_out_once(clock):
  measured = Meter(GPT2, 8)
  measured.rates(0, 0.0)
  with measured.pause():
    clock.now += 50.0
  clock.now += 2.0
  assert measured.rates(4, 0.0)["tokens_per_s"] == 4 * 8 * GPT2.n_ctx / 2
  clock.now += 2.0
  assert measured.rates(8, 0.0)["tokens_per_s"] == 4 * 8 * GPT2.n_ctx / 2


def test_without_a_peak_there_is_no_utilisation(clock, monkeypatch):
  monkeypatch.setattr(meter, "peak_flops", lambda: None)
  measured = Meter(GPT2, 8)
  measured.rates(0, 0.0)
  clock.now += 1.0
  assert measured.rates(1, 0.0)["mfu"] is None


class Device:
  def __init__(self, kind):
    self.platform, self.device_kind = "gpu", kind


@pytest.mark.parametrize(
  ("kind", "tera"),
  [
    ("NVIDIA H200", 989),
    ("NVIDIA H100 80GB HBM3", 989),
    ("NVIDIA A100-SXM4-80GB", 312),
    ("TPU v4", 275),
    ("TPU v5 lite", 197),
    ("TPU v5p", 459),
    ("TPU v5", 459),
    ("TPU v6 lite", 918),
  ],
)
def test_the_peak_of_accelerators_is_known(monkeypatch, kind, tera):
  monkeypatch.setattr(jax, "devices", lambda: [Device(kind)])
  assert peak.peak_flops() == tera * 1e12 * jax.device_count()


def test_that_of_others_is_not(monkeypatch):
  monkeypatch.setattr(jax, "devices", lambda: [Device("GeForce 256")])
  assert peak.peak_flops() is None


def test_that_of_a_cpu_is_measured():
  assert 1e9 < peak.peak_flops() < 1e14
