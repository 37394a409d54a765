"""The thread policy of the package: how many cores are used, and a map over threads that never nests."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["cores", "one_blas_thread", "one_thread_per_task", "serial", "thread_map"]

T = TypeVar("T")
U = TypeVar("U")

# Has the attribute `inside` in the worker threads of `thread_map`.
_worker = threading.local()


def cores() -> int:
    """Return the number of threads that may run at once.

    Returns
    -------
    int
        The number of cores that this process may run on, and no more than the environment variable OMP_NUM_THREADS
        if that is a positive integer.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").strip()
    return min(available, int(limit)) if limit.isdecimal() and int(limit) > 0 else available


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep the linear algebra library from using threads of its own, if threadpoolctl is installed.

    Notes
    -----
    Called from several threads on small matrices, such threads wait for one another: eigenvectors of 60 x 60 matrices
    took ten times as long and more on a busy machine of two cores.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@contextlib.contextmanager
def serial() -> Iterator[None]:
    """Let `thread_map` run serially in this thread: for tasks of which others run beside."""
    nested = hasattr(_worker, "inside")
    _worker.inside = True
    try:
        yield
    finally:
        if not nested:
            del _worker.inside


def one_thread_per_task(function: Callable[..., U]) -> Callable[..., U]:
    """Return a function that starts no threads if it runs in one of several, such as those of a dask worker."""

    @functools.wraps(function)
    def task(*arguments: object, **options: object) -> U:
        if threading.current_thread() is threading.main_thread():
            return function(*arguments, **options)
        with serial():
            return function(*arguments, **options)

    return task


def thread_map(function: Callable[[T], U], items: Iterable[T], limit: int | None = None) -> list[U]:
    """Apply a function to every item, in threads.

    Parameters
    ----------
    function : callable
        Called once per item. It should release the interpreter's lock for most of its time.
    items : iterable
        Its arguments.
    limit : int, optional
        The largest number of threads. The default is `cores`, which is never exceeded.

    Returns
    -------
    list
        The results, in the order of the items. They do not depend on the number of threads.

    Notes
    -----
    Called from one of its own threads, from a single core or for a single item, it runs serially: threads never
    nest. The caller is one of the threads. Every call sees its context, such as `numpy.errstate`. The first exception
    is raised again, and items that were not started are dropped.
    """
    pending = list(enumerate(items))
    workers = min(len(pending), cores(), len(pending) if limit is None else limit)
    if workers <= 1 or hasattr(_worker, "inside"):
        return [function(item) for _, item in pending]
    pending.reverse()
    out: dict[int, U] = {}
    errors: list[BaseException] = []
    contexts = [contextvars.copy_context() for _ in pending]

    def work() -> None:
        while not errors:
            try:
                k, item = pending.pop()
            except IndexError:
                return
            try:
                out[k] = contexts[k].run(function, item)
            except BaseException as error:
                errors.append(error)

    helpers = [_kept_threads(cores() - 1).submit(work) for _ in range(workers - 1)]
    try:
        with serial():
            work()
        for helper in helpers:
            if not helper.cancel():
                helper.result()
        if errors:
            raise errors[0]
        return [out[k] for k in range(len(contexts))]
    finally:
        pending.clear()  # if the caller was interrupted while it waited
        errors.clear()
        out.clear()  # what was cancelled waits in the queue of busy threads


@functools.cache
def _kept_threads(count: int) -> ThreadPoolExecutor:
    """Return threads that work beside the callers of `thread_map`.

    They are kept: every thread has a heap of its own, which keeps what was freed, and a new thread may get a new one.
    """
    return ThreadPoolExecutor(count, initializer=setattr, initargs=(_worker, "inside", True))


if hasattr(os, "register_at_fork"):  # threads do not survive in the child
    os.register_at_fork(after_in_child=_kept_threads.cache_clear)
