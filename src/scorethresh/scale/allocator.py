"""How processes of our own keep memory that was freed: workers of dask, and the command line."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

__all__ = ["reuse_freed_memory", "share_freed_memory"]

# What dask sets for its workers, so that they stay small: freed memory above 64 kB goes back to the system at once, and
# so does every array above 128 kB. Then tiles of 4096 x 4096 pixels take 11 s of processor time instead of 4, because
# the system clears 16 GB of pages.
TRIM_VARIABLE, DASK_TRIMS = "MALLOC_TRIM_THRESHOLD_", "65536"
MMAP_VARIABLE = "MALLOC_MMAP_THRESHOLD_"
# The numbers of two settings of the C library of Linux, and what they are set to: how much freed memory is kept at
# most, and the size in bytes from which on an array goes back at once. The library allows no more for the second. After
# the work a worker is 100 MB larger than with dask's setting; its peak is the same.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGE_BYTES = 1 << 26, 1 << 25
# By default every thread has a heap of its own, which keeps what its arrays took. With one heap for all, 2048 x 2048
# pixels of 8 bits take 122 MB in place of 182, in the same time.
ARENA_VARIABLE, ARENA_MAX = "MALLOC_ARENA_MAX", -8


@functools.cache
def reuse_freed_memory() -> bool:
    """Let this process keep some freed memory if it is a worker with dask's setting; return whether it does now.

    A worker with another setting is left alone, and so is one with a threshold for arrays.
    """
    if os.environ.get(TRIM_VARIABLE) != DASK_TRIMS or MMAP_VARIABLE in os.environ or not _is_worker_process():
        return False
    return _set_options({TRIM_THRESHOLD: KEPT_BYTES, MMAP_THRESHOLD: LARGE_BYTES})


def share_freed_memory() -> bool:
    """Let all threads of this process take memory from one heap; return whether they do. A user's setting stays.

    It holds for all of the process, so that only a process of our own calls it, before it starts threads.
    """
    return ARENA_VARIABLE not in os.environ and _set_options({ARENA_MAX: 1})


def _set_options(options: dict[int, int]) -> bool:
    """Set options of the C library by their numbers; return whether that is possible."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library, or another system
        return False
    return all(mallopt(number, value) for number, value in options.items())


def _is_worker_process() -> bool:
    """Tell whether this process was started to be a worker: others may have got its variables."""
    module = sys.modules.get("distributed.worker")
    try:
        return module is not None and module.get_worker().nanny is not None
    except ValueError:  # there is no worker in this process
        return False
