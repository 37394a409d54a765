"""A progress bar on standard error."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

# Characters of the full bar. With label and time it fits a terminal of 80 columns.
BAR_WIDTH = 30


class Progress:
    """Count steps and show them as a bar with the time elapsed. `step` may be called from several threads.

    Parameters
    ----------
    label : str
        The text before the bar.
    total : int
        The number of steps.
    shown : bool
        Whether to show the bar. If False, steps are only counted.
    """

    def __init__(self, label: str, total: int, shown: bool) -> None:
        self.label, self.total, self.shown = label, total, shown
        self.done = 0
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def __enter__(self) -> Progress:
        self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            sys.stderr.write("\n")

    def step(self) -> None:
        """Count one step."""
        with self.lock:
            self.done += 1
            self._show()

    def _show(self) -> None:
        if self.shown:
            part = self.done / max(self.total, 1)
            bar = "#" * round(BAR_WIDTH * part)
            sys.stderr.write(f"\r{self.label} [{bar:<{BAR_WIDTH}}] {part:4.0%} {time.monotonic() - self.start:.0f} s")
            sys.stderr.flush()
