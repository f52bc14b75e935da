"""Start method of the loader's worker processes, and the environment that they get.

In: a loader's context, or None. Out: a context that starts processes. Called by `parallel`.

A process that has started MPI must not be forked: the child would share MPI's connections and
memory. Nor may its children see its launcher's variables, or MPI takes them for ranks of the job.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import sys
from collections.abc import Iterator
from typing import Any

from tracejit.core.memory.mpi_forks import runs_mpi

INSTEAD = "forkserver"  # of "fork": the server forks, and has not started MPI


def context_of(asked: Any) -> Any:
    """Return the context that starts the workers of a loader.

    asked  its multiprocessing_context; None for the default, which a rank of MPI replaces

    Raises RuntimeError for "fork" in a process that has started MPI.
    """
    if not runs_mpi():
        return asked or multiprocessing
    if asked is None:
        default = multiprocessing.get_start_method(allow_none=True)
        if default is None:
            default = multiprocessing.get_all_start_methods()[0]
        _preload()
        # a spawned process finds "spawn" set, by no choice of the program's; a server is faster
        inherited = default == "spawn" and multiprocessing.parent_process() is not None
        return multiprocessing.get_context(
            INSTEAD if default == "fork" or (inherited and sys.platform == "linux") else default
        )
    if asked.get_start_method() == "fork":
        raise RuntimeError(
            "DataLoader(multiprocessing_context='fork') in a process that has started MPI "
            "(init_process_group): a forked worker would share MPI's connections; use "
            "'forkserver' or 'spawn', or leave the argument out"
        )
    return asked


def _preload() -> None:
    """Let the fork server import tracejit once for all workers, if the program set nothing."""
    if multiprocessing.forkserver._forkserver._preload_modules == ["__main__"]:  # type: ignore[attr-defined]
        multiprocessing.set_forkserver_preload(["__main__", "tracejit.utils.data.worker"])


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Hide the launcher's variables from processes that are started meanwhile.

    An error of pickling gets a note that says why the worker was not forked.
    """
    if not runs_mpi():
        yield
        return
    from tracejit.distributed import environment

    kept = environment.without_launcher(os.environ)
    hidden = {name: value for name, value in os.environ.items() if name not in kept}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    except Exception as error:
        error.add_note(
            "DataLoader's workers are not forked in a process that has started MPI: dataset, "
            "collate_fn and worker_init_fn must be picklable, and the script's own code belongs "
            "below `if __name__ == '__main__':`"
        )
        raise
    finally:
        os.environ.update(hidden)
