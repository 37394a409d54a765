"""The thread policy: how many threads run, that they never nest, and that results do not depend on them."""

import os
import threading
import time

import numpy as np
import pytest

from helpers import run_python
from scorethresh._threads import cores, thread_map


@pytest.fixture
def four_cores(monkeypatch):
    """As if this process could run on four cores, and no environment variable limited it."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4), raising=False)


# Prints `cores()` and the largest number of calls that ran at once.
OBSERVE = """
import os, threading, time
os.sched_getaffinity = lambda _: range(4)
from scorethresh._threads import cores, thread_map
lock, running, most = threading.Lock(), 0, 0
def work(_):
    global running, most
    with lock:
        running += 1
        most = max(most, running)
    time.sleep(0.05)
    with lock:
        running -= 1
thread_map(work, range(12))
print(cores(), most)
"""


@pytest.mark.parametrize(("limit", "expected"), [("1", 1), ("3", 3), ("64", 4), ("", 4)])
def test_the_environment_limits_the_threads_of_a_process(limit, expected):
    """In a process of its own with four cores: the number that it reports, and the number that run at once."""
    assert run_python(OBSERVE, OMP_NUM_THREADS=limit) == [str(expected)] * 2


@pytest.mark.parametrize(
    ("limit", "expected"), [(" 2 ", 2), ("0", 4), ("-1", 4), ("many", 4), ("2.5", 4), ("\N{SUPERSCRIPT TWO}", 4)]
)
def test_what_is_no_positive_integer_sets_no_limit(monkeypatch, four_cores, limit, expected):
    """`str.isdigit` accepts the superscript, `int` does not."""
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert cores() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_affinity_limits_the_threads():
    code = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "from scorethresh._threads import cores; print(cores())"
    )
    assert run_python(code, OMP_NUM_THREADS="") == ["1"]


def test_results_come_in_order(four_cores):
    def work(k):
        time.sleep(0.01 * (9 - k))  # the last items finish first
        return k * k

    assert thread_map(work, iter(range(10))) == [k * k for k in range(10)]


def test_no_items():
    assert thread_map(abs, []) == []


@pytest.mark.parametrize(("items", "limit"), [(1, None), (5, 1), (5, 0)])
def test_one_item_or_one_thread_runs_in_the_thread_of_the_caller(four_cores, items, limit):
    idents = thread_map(lambda _: threading.get_ident(), range(items), limit)
    assert set(idents) == {threading.get_ident()}


def threads_used(limit):
    """The number of threads that six calls run in, each waiting until `limit` of them run."""
    barrier = threading.Barrier(limit)

    def work(_):
        barrier.wait(timeout=30)
        return threading.get_ident()

    return len(set(thread_map(work, range(6), limit)))


@pytest.mark.parametrize("limit", [2, 3])
def test_a_limit_of_the_caller(four_cores, limit):
    assert threads_used(limit) == limit


def test_the_caller_is_one_of_the_threads(four_cores):
    """Every thread has a heap of its own, which keeps memory: one less keeps less."""
    barrier, here = threading.Barrier(3), threading.get_ident()

    def work(_):
        barrier.wait(timeout=30)
        return threading.get_ident()

    assert here in thread_map(work, range(3))


@pytest.mark.parametrize("inside", [True, False])
def test_an_error_in_the_caller_or_beside_it_stops_the_others(four_cores, inside):
    started, here = [], threading.get_ident()

    def work(k):
        started.append(k)
        time.sleep(0.01)
        if (threading.get_ident() == here) == inside:
            msg = f"item {k}"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="item"):
        thread_map(work, range(200))
    assert len(started) < 20
    assert threads_used(2) == 2  # the caller may map in threads again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_threads_are_kept_but_not_in_a_child_of_the_process():
    """A thread for each call would get a heap for each call; after a fork there are none."""
    code = """
import os, threading
os.sched_getaffinity = lambda _: range(4)
from scorethresh._threads import thread_map
def used():
    barrier = threading.Barrier(4)
    def work(_):
        barrier.wait(timeout=30)
        return threading.get_ident()
    return set(thread_map(work, range(4)))
same = used() == used()
child = os.fork()
if not child:
    os._exit(len(used()))
print(same, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code, OMP_NUM_THREADS="") == ["True", "4"]


def test_threads_never_nest(four_cores):
    """Inner maps run in the thread of the outer call; a later map of the main thread is parallel again."""

    def inner(_):
        time.sleep(0.005)  # long enough for other threads to take an item
        return threading.get_ident()

    def outer(_):
        here = threading.get_ident()
        return all(ident == here for ident in thread_map(inner, range(5)))

    assert all(thread_map(outer, range(2)))
    assert threads_used(2) == 2


def test_a_thread_of_the_user_may_map_in_threads(four_cores):
    found = []
    thread = threading.Thread(target=lambda: found.append(threads_used(2)))
    thread.start()
    thread.join()
    assert found == [2]


def test_the_first_error_is_raised_and_the_rest_is_dropped(four_cores):
    started = []

    def work(k):
        started.append(k)
        time.sleep(0.02)
        if k == 1:
            msg = f"item {k}"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="item 1"):
        thread_map(work, range(200))
    assert len(started) < 100


@pytest.mark.parametrize("limit", [1, 4])
def test_calls_see_the_context_of_the_caller(four_cores, limit):
    """`numpy.errstate` would otherwise hold with one thread only, and warnings would leak with two."""
    with np.errstate(over="raise"):
        assert thread_map(lambda _: np.geterr()["over"], range(3), limit) == ["raise"] * 3
