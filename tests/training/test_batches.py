import threading
import time

import pytest

from headjax.training.batches import Batches


def test_batches_come_in_order_and_end_where_they_should():
  with Batches(lambda step: step * 10, 3, 6) as batches:
    assert [batches.get() for _ in range(3)] == [30, 40, 50]


def test_they_are_made_before_they_are_asked_for_but_not_far():
  made = []
  with Batches(made.append, 0, 100) as batches:
    deadline = time.monotonic() + 5
    while len(made) < 3 and time.monotonic() < deadline:
      time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2]
    batches.get()


def test_a_slow_source_is_waited_for_and_a_fast_one_not():
  def slow(step):
    time.sleep(0.05)
    return step

  with Batches(slow, 0, 4) as batches:
    for _ in range(4):
      batches.get()
    assert 0.1 < batches.waited_s < 2
  with Batches(lambda step: step, 0, 4) as batches:
    time.sleep(0.1)
    batches.get()
    assert batches.waited_s < 0.05


def test_an_error_of_the_source_comes_out_where_its_batch_would():
  def broken(step):
    if step == 1:
      raise ValueError("the corpus is gone")
    return step

  with Batches(broken, 0, 9) as batches:
    assert batches.get() == 0
    with pytest.raises(ValueError, match="the corpus is gone"):
      batches.get()


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_no_thread_is_left_behind(taken):
  before = threading.active_count()
  with Batches(lambda step: step, 0, 1000) as batches:
    for _ in range(taken):
      batches.get()
  assert threading.active_count() == before
