"""Makes `os.fork` safe while other threads are at work: their locks do not stay taken for ever.

In: locks, and functions that mend state which another thread may have half made. Out: a forked
child in which each lock is free unless the forking thread holds it. Called by every room that has a
lock, for which `rlock()` stands in place of `threading.RLock()`.

A fork waits, for a limited time, until no other thread is inside LLVM or BLAS or imports a module
that the child will need. Their own locks could not be renewed; half a module is no module.
"""

from __future__ import annotations

import importlib
import importlib._bootstrap as bootstrap
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

PATIENCE = 60.0  # seconds that a fork waits for other threads
_PACKAGES = frozenset({"tracejit", "numba", "llvmlite", "numpy", "scipy"})
_REIMPORTED = frozenset({"tracejit", "numba", "llvmlite"})  # modules of C may not be loaded twice
_renewed: set[weakref.ref[Any]] = set()
_awaited: list[Any] = []
_quiet: list[Callable[[], bool]] = []
_mended: list[Callable[[], None]] = []


class _Held(threading.local):
    locks: list[Any] = []
    forking = False


class _Hooks:
    """Sets of hooks that were registered. The last set acts."""

    number = 0
    first = False  # they run before those of `logging` and `concurrent.futures`


_held = _Held()


def rlock() -> Any:
    """Make a `threading.RLock` that a forked child finds free, unless the forking thread holds it.

    >>> with rlock() as taken:
    ...     taken
    True
    """
    lock = threading.RLock()
    _renewed.add(weakref.ref(lock, _renewed.discard))
    return lock


def event() -> threading.Event:
    """Make a `threading.Event` that a forked child can set and wait for."""
    made = threading.Event()
    _renewed.add(weakref.ref(made, _renewed.discard))
    return made


def rlock_awaited() -> Any:
    """Make an `rlock` that a fork waits for: the state it guards cannot be mended in the child."""
    _come_first()
    lock = rlock()
    _awaited.append(lock)
    return lock


def wait_until(quiet: Callable[[], bool]) -> None:
    """Let forks wait until `quiet()` is true. They ask it time and again."""
    _come_first()
    _quiet.append(quiet)


def in_child(mend: Callable[[], None]) -> Callable[[], None]:
    """Call `mend` in each forked child, once the locks are free; may be used as a decorator.

    It must not raise, and must keep what the forking thread itself is in the middle of.
    """
    _mended.append(mend)
    return mend


def _foreign() -> Iterator[Any]:
    """Return the compiler locks of numba and llvmlite, where those are imported."""
    for module, path in (
        ("numba.core.compiler_lock", ("global_compiler_lock", "_lock")),
        ("llvmlite.binding.ffi", ("lib", "_lock", "_lock")),
    ):
        found = sys.modules.get(module)
        for name in path:
            found = getattr(found, name, None)
        if hasattr(found, "_is_owned"):
            yield found


# -- a fork --------------------------------------------------------------------------------------


def _before() -> None:
    """Wait until the forking thread holds the awaited locks, and nobody imports what matters.

    It never waits for one lock while it holds another, so it cannot be part of a deadlock.
    """
    deadline = time.monotonic() + PATIENCE
    waited: list[Any] = []
    while True:
        taken, missed = _take([*_awaited, *_foreign()])
        for lock in waited:
            lock.release()
        waited = []
        if missed is None and not _imports_of_others() and all(quiet() for quiet in _quiet):
            break
        if time.monotonic() > deadline:
            break
        for lock in taken:
            lock.release()
        if missed is None:
            time.sleep(0.001)
        elif missed.acquire(timeout=0.1):
            waited = [missed]
    _held.locks = taken


def _take(locks: list[Any]) -> tuple[list[Any], Any]:
    """Return the locks that are taken now, and the first one that could not be."""
    taken: list[Any] = []
    for lock in locks:
        if not lock.acquire(blocking=False):
            return taken, lock
        taken.append(lock)
    return taken, None


def _after_in_parent() -> None:
    locks, _held.locks = _held.locks, []
    for lock in reversed(locks):
        lock.release()


def _after_in_child() -> None:
    _after_in_parent()
    for lock in [*(at() for at in list(_renewed)), *_foreign()]:
        if lock is not None and not getattr(lock, "_is_owned", bool)():
            lock._at_fork_reinit()
    _drop_half_imported()
    for mend in _mended:
        mend()


def _locked_modules() -> dict[str, Any]:
    """Return the locks of modules that are being imported, by name. Some may be free again."""
    found = {}
    for name, at in list(getattr(bootstrap, "_module_locks", {}).items()):
        lock = at()
        if getattr(lock, "owner", None) is not None:
            found[name] = lock
    return found


def _imports_of_others() -> list[str]:
    """Return the modules, ours and our requirements', that other threads are importing."""
    me = threading.get_ident()
    return [
        name for name, lock in _locked_modules().items()
        if lock.owner != me and name.partition(".")[0] in _PACKAGES
    ]


def _drop_half_imported() -> None:
    """Drop the imports that threads left behind by the fork had begun: the next import begins
    anew."""
    for name in _imports_of_others():
        bootstrap._module_locks.pop(name, None)  # type: ignore[attr-defined]
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False) and name.partition(".")[0] in _REIMPORTED:
            del sys.modules[name]


# -- hooks ---------------------------------------------------------------------------------------


def _register() -> None:
    """Register a set of hooks, which acts in place of earlier ones."""
    if hasattr(os, "register_at_fork"):
        number = _Hooks.number + 1
        os.register_at_fork(
            before=_begin, after_in_parent=partial(_end, number, _after_in_parent),
            after_in_child=partial(_end, number, _after_in_child))
        _Hooks.number = number


def _come_first() -> None:
    """Let our hooks run before those of `logging` and `concurrent.futures`.

    Hooks run in the reverse order of their registration. Those two take locks that a thread we wait
    for may need. Both modules are imported here, where there is something to wait for: that takes
    longer than the rest of this file.
    """
    if not _Hooks.first:
        importlib.import_module("logging")
        importlib.import_module("concurrent.futures.thread")
        _Hooks.first = True
        _register()


def _begin() -> None:
    if not _held.forking:  # the last set runs first
        _held.forking = True
        _before()


def _end(number: int, after: Callable[[], None]) -> None:
    if number == _Hooks.number:
        _held.forking = False
        after()


_register()
