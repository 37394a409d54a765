"""Where tasks run: in this process, in workers of this machine, or on a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .._validate import missing_extra
from .store import Runner

__all__ = ["task_runner"]

# Without an address dask takes port 8787 even for no dashboard, and warns if it is taken: that of another cluster.
NO_DASHBOARD = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}


@contextlib.contextmanager
def task_runner(workers: int = 0, memory: str = "auto", scheduler: str = "") -> Iterator[Runner]:
    """Give what runs tasks.

    Parameters
    ----------
    workers : int
        Processes of this machine, of one thread each; 0 for none: tasks run one after the other in this process, each
        in as many threads as there are cores.
    memory : str
        What each worker may use, such as ``"4GB"``. Beyond 95% of it, it is started again. It does not pause before, as
        dask's own do: what one task at a time holds does not shrink by waiting, so a paused worker would wait for ever.
    scheduler : str
        The address of a scheduler that runs already, such as ``"tcp://10.0.0.1:8786"``.
    """
    if not workers and not scheduler:
        yield _run_here
        return
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        error = missing_extra("distributed")
        raise error from None
    options = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": memory}
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set({"distributed.worker.memory.pause": False}))
        address = scheduler or stack.enter_context(LocalCluster(**options, **NO_DASHBOARD))
        client = stack.enter_context(Client(address))
        stack.enter_context(_killed_workers_told())
        yield lambda tasks, step: _run_there(client, tasks, step)


@contextlib.contextmanager
def _killed_workers_told() -> Iterator[None]:
    """Raise a MemoryError in place of that of dask if workers end again and again."""
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        msg = "workers ended again and again while they ran a task: most often, their memory did not suffice. "
        raise MemoryError(msg + "Give each more, or use fewer.") from error


def _run_here(tasks: list[Any], step: Callable[[], None]) -> list[Any]:
    """Run tasks one after the other: each uses all cores by itself. What they share is computed once."""
    import dask

    def told(result: Any) -> Any:
        step()
        return result

    return list(dask.compute(*(dask.delayed(told, pure=False)(task) for task in tasks), scheduler="synchronous"))


def _run_there(client: Any, tasks: list[Any], step: Callable[[], None]) -> list[Any]:
    """Run tasks on workers; if one fails, raise its error and give the others up."""
    from distributed import as_completed

    futures = client.compute(tasks)
    try:
        for future in as_completed(futures):
            future.result()
            step()
        return list(client.gather(futures))
    except BaseException:
        client.cancel(futures)
        raise
