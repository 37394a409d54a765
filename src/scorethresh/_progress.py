"""A progress bar on standard error."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

_WIDTH = 30


class Progress:
    """Counts steps; the bar shows from the start, if it is wanted. Steps may come from several threads."""

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
            bar = "#" * round(_WIDTH * part)
            sys.stderr.write(f"\r{self.label} [{bar:<{_WIDTH}}] {part:4.0%} {time.monotonic() - self.start:.0f} s")
            sys.stderr.flush()
