"""Progress bars, by tqdm: on standard error, or in a notebook."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from ._validate import missing_extra, number

# Seconds until a bar that nobody asked for is shown. Shorter work ends before anyone has read it.
SHOWN_AFTER = 2.0

# Seconds between redraws. A step may take long, and the time elapsed should move meanwhile.
HEARTBEAT = 0.5

# Work under way, the outermost first.
_running: list[Progress] = []


def share_done() -> float | None:
    """Return the share of the work under way that is done, between 0 and 1; None if there is none that is counted."""
    counted = [one for one in list(_running) if one.total > 1]
    return min(counted[0].done / counted[0].total, 1.0) if counted else None


class Progress:
    """Count steps and show them as a bar with the time elapsed. `step` may be called from several threads.

    Parameters
    ----------
    label : str
        The text before the bar.
    total : int
        The number of steps.
    shown : bool or float
        Whether to show the bar; a number shows it once the work has taken that many seconds. If False, steps are only
        counted.
    """

    def __init__(self, label: str, total: int, shown: bool | float) -> None:
        self.label, self.total = label, total
        self.shown = shown is not False
        self.delay = 0.0 if isinstance(shown, bool) else number(shown, "progress")
        self.done = 0
        self.bar: Any = None
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.heart = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Progress:
        if self.shown:
            _bar_class()  # raises now if it is not installed
            if not self.delay:
                self._open()
            self.heart.start()
        _running.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        _running.remove(self)
        if self.shown:
            self.heart.join()
        if self.bar is not None:
            self.bar.close()

    def step(self) -> None:
        """Count one step."""
        with self.lock:
            self.done += 1
            if self.bar is not None:
                self.bar.update(1)

    def _open(self) -> None:
        with self.lock:
            self.bar = _bar_class()(desc=self.label, total=self.total, initial=self.done, mininterval=0, leave=True)

    def _beat(self) -> None:
        """Open the bar when it is due, then redraw it."""
        if self.bar is None:
            if self.over.wait(self.delay):
                return
            self._open()
        while not self.over.wait(HEARTBEAT):
            with self.lock:
                self.bar.refresh()


def _bar_class() -> Any:
    """Return the bar that fits a terminal or a notebook."""
    import warnings

    try:
        from tqdm.std import TqdmWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TqdmWarning)  # of a notebook without its widgets: a text bar serves as well
            from tqdm.auto import tqdm
    except ImportError as error:
        package = "tqdm"
        raise missing_extra(package) from error
    return tqdm
