"""How the workers of dask keep the memory that tiles use again and again."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

__all__ = ["reuse_freed_memory"]

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


@functools.cache
def reuse_freed_memory() -> bool:
    """Let this process keep some freed memory if it is a worker with dask's setting; return whether it does now.

    A worker with another setting is left alone, and so is one with a threshold for arrays.
    """
    if os.environ.get(TRIM_VARIABLE) != DASK_TRIMS or MMAP_VARIABLE in os.environ or not _is_worker_process():
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library, or another system
        return False
    return bool(mallopt(TRIM_THRESHOLD, KEPT_BYTES) and mallopt(MMAP_THRESHOLD, LARGE_BYTES))


def _is_worker_process() -> bool:
    """Tell whether this process was started to be a worker: others may have got its variables."""
    module = sys.modules.get("distributed.worker")
    try:
        return module is not None and module.get_worker().nanny is not None
    except ValueError:  # there is no worker in this process
        return False
