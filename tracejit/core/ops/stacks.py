"""Stacks: results that the iterations of a `while_loop` leave for its backward loop.

In: sequences of tuples of arrays or Tensors, one tuple for each iteration. Out: an int handle,
which travels through graphs as a tensor of int64. The number of iterations is unknown when memory
is planned, so stacks live here and not in a program's memory. Called by `control` and by the
runtime, which opens a run around code that may make stacks.

A run is the outermost program, or the outermost interpretation of a graph. Its stacks live as long
as a result of it may hold one of their handles. Reading a stack takes nothing off it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracejit.core.ops.types import TensorType, int64

_stacks: dict[int, Sequence[tuple]] = {}
_numbers = itertools.count(1)
_references: dict[int, weakref.ref] = {}  # id of a reference to an owner -> the reference


class _Current(threading.local):
    run: Run | None = None


_current = _Current()


class Run:
    """Stacks made in a run, and how many results still hold them."""

    __slots__ = ("handles", "_owners")

    def __init__(self) -> None:
        self.handles: list[int] = []
        self._owners: list[None] = []

    def keep(self, owner: Any) -> None:
        """Keep the stacks of this run at least as long as `owner`, a result or its memory."""
        if self.handles:
            self._owners.append(None)
            reference = weakref.ref(owner, self._disown)  # the tracer would see a `finalize`
            _references[id(reference)] = reference

    def _disown(self, reference: weakref.ref) -> None:
        _references.pop(id(reference), None)
        self._owners.pop()  # atomic, as a callback may run in any thread
        self.drop()

    def drop(self) -> None:
        """Free the stacks if no owner keeps them."""
        if not self._owners:
            for handle in self.handles:
                _stacks.pop(handle, None)


@contextmanager
def stack_run() -> Iterator[Run]:
    """Open a run: the stacks made inside belong together.

    The caller says with `Run.keep` which results outlive it. An inner run is part of the outer one.

    >>> with stack_run() as run:
    ...     handle = new_stack([(1,), (2,)])
    ...     len(stack_of(handle))
    2
    >>> stack_of(handle)
    Traceback (most recent call last):
    RuntimeError: the stack of a while_loop is read after it was freed
    """
    outer = _current.run
    if outer is not None:
        yield _Inner(outer)
        return
    run = _current.run = Run()
    try:
        yield run
    finally:
        _current.run = None
        run.drop()


class _Inner(Run):
    """Run inside another run, which keeps the results."""

    __slots__ = ()

    def __init__(self, outer: Run):
        self.handles = outer.handles

    def keep(self, owner: Any) -> None:
        return


def new_stack(items: Sequence[tuple]) -> int:
    """Return a handle for a stack; outside any run it stays until `free_stack`."""
    handle = next(_numbers)
    _stacks[handle] = items
    if _current.run is not None:
        _current.run.handles.append(handle)
    return handle


def stack_of(handle: int) -> Sequence[tuple]:
    """Return the stack behind a handle; RuntimeError if it was freed."""
    found = _stacks.get(handle)
    if found is None:
        raise RuntimeError("the stack of a while_loop is read after it was freed")
    return found


def free_stack(handle: int) -> None:
    """Drop a stack that belongs to no run."""
    _stacks.pop(handle, None)


def live_stacks() -> int:
    """Count the stacks, for tests of lifetimes."""
    return len(_stacks)


def may_hold_handles(of: TensorType) -> bool:
    """Return True if a value of this type may be a handle, or handles that outer loops stacked."""
    last = of.shape[-1] if of.shape else None
    return of.dtype is int64 and type(last) is int and last == 1
