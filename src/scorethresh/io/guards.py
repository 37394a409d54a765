"""Guards around libraries that read files: no claim fills the memory, no log message reaches the terminal."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

from .data import FileError

# A compressed file whose header claims more than both limits is refused. Noise does not compress: normal noise of one
# grey level has an entropy of 2 bits per entry, so 8-bit data shrink 4 times and 64-bit data 31 times at most. The
# ratio therefore refuses only data that are constant nearly everywhere. Files that claim less than BOMB_BYTES are read
# whatever their size: a picture of 8000 x 8000 pixels of 8 bits, just below, takes 1.7 GiB to denoise. A higher
# BOMB_BYTES lets larger pictures without noise through, and costs memory.
BOMB_RATIO = 100
BOMB_BYTES = 64 << 20


def check_bomb(path: Path, claimed: int, held: int | None = None) -> None:
    """Raise if a header claims many more bytes of data than the file, or a folder of `held` bytes, can hold."""
    size = max(path.stat().st_size if held is None else held, 1)
    if claimed > max(BOMB_BYTES, BOMB_RATIO * size):
        amount = f"{claimed / 2**30:.1f} GiB" if claimed >= 1 << 30 else f"{claimed / 2**20:.0f} MiB"
        msg = (
            f"{path} claims to hold {amount}, {claimed / size:.0f} times its size, and may be a decompression bomb. "
            "If you trust it, save it as TIFF without compression."
        )
        raise FileError(msg)


@contextlib.contextmanager
def silenced(name: str) -> Iterator[None]:
    """Drop what a library logs in the meantime; an exception already says what is wrong with the file.

    Every call adds and removes a filter of its own, so calls may overlap in several threads.
    """
    logger = logging.getLogger(name)

    def drop(record: logging.LogRecord) -> bool:
        return False

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)
