"""Calls of MPI without Python: the ring of a process, and the one thread that carries it on.

In: addresses of MPI's nonblocking functions, and their arguments. Out: operations that start in the
order in which they were posted, and that anybody may wait for. Called by `groups`.

Captured programs call `begin` and `land`, which have slots of their own, a *flight* each. `begin`
starts all that was posted before it calls MPI, so the order is that of the calls. A program that
gives up leaves its flights adrift: their slots are free when MPI is through with them.

MPI makes progress only while a thread calls it. A thread that waits drives the ring itself, which
costs no switch between threads. The communication thread drives it while no other waits. A lock
lets one thread at a time into MPI (MPI_THREAD_SERIALIZED), without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.memory import forks
from tracejit.distributed.operation import BUDGET, BUDGET_CROWDED, Operation
from tracejit.distributed.ring import (
    ALOFT,
    ARGUMENTS,
    BELL,
    CODE,
    COUNT,
    FAILED,
    FIRST,
    FLAG,
    FLIGHTS,
    FLOWN,
    FUNCTION,
    FUTEX,
    GROUP,
    HEAD,
    LANDED,
    MEMCPY,
    NAP,
    PAUSE,
    PROGRESS,
    REQUEST,
    SHUTDOWN,
    SLEEPING,
    SLOT,
    SLOTS,
    SPINS,
    SPINS_ALONE,
    STATE,
    STATUS,
    SYSTEM,
    TEST,
    WAITING,
    WAKE,
    WHAT,
    YIELD,
    addresses,
)
from tracejit.jit.lowering.library_collectives import COLLECTIVES, SECONDS
from tracejit.jit.runtime import collective_waits
from tracejit.jit.runtime.runner import can_share

_NAP = 50_000  # nanoseconds that the thread sleeps between tests that found nothing


class Communicator:
    """The ring of a process.

    test         address of MPI_Test
    error_text   makes a text of MPI's code
    crowded      more processes than cores: waiters give their core away at once
    """

    def __init__(self, test: int, error_text: Callable[[int], str], crowded: bool = False) -> None:
        functions = addresses()
        word = ctypes.c_int64
        self._memory = np.zeros(HEAD + (COUNT + ALOFT) * SLOT + 8, np.int64)
        skip = -self._memory.ctypes.data % 64 // 8
        words = self._memory[skip:]
        self.address = int(words.ctypes.data)
        self._words = memoryview(words).cast("B").cast("q")
        self.error_text = error_text
        self.watch: Any = None
        self.crowded, self.budget = crowded, BUDGET_CROWDED if crowded else BUDGET
        self._lock = forks.rlock()
        self._held: list[Operation | None] = [None] * COUNT
        self._next = self._swept = 0
        self.forked = False
        libc = ctypes.CDLL(None)
        w = self._words
        w[SLOTS], w[TEST], w[PROGRESS] = self.address + 8 * HEAD, test, functions["progress"]
        w[YIELD] = _address(libc.sched_yield)
        w[SYSTEM], w[MEMCPY] = _address(libc.syscall), _address(libc.memcpy)
        w[FLIGHTS] = w[SLOTS] + 8 * COUNT * SLOT
        self.functions = functions
        w[SPINS], w[PAUSE] = (0, 0) if crowded else (SPINS_ALONE, 200)
        w[NAP + 1] = _NAP
        self._drive = ctypes.CFUNCTYPE(word, word, word, word)(functions["drive"])
        self._post = ctypes.PYFUNCTYPE(None, word, word)(functions["post"])
        self._enter = ctypes.CFUNCTYPE(None, word)(functions["enter"])
        self._abandon = ctypes.CFUNCTYPE(None, word)(functions["abandon"])
        self._leave = ctypes.PYFUNCTYPE(None, word)(functions["leave"])
        self._communicate = ctypes.CFUNCTYPE(None, word)(functions["communicate"])
        self._thread: threading.Thread | None = None
        forks.in_child(self._in_child)

    def _in_child(self) -> None:
        self.forked, self._thread = True, None

    def check(self) -> None:
        """Raise RuntimeError in a forked child: MPI belongs to the process that started it."""
        collective_waits.raise_repeated()
        if self.forked:
            raise RuntimeError(
                "this process was forked from one that takes part in distributed computing, and "
                "cannot do so itself: start workers with multiprocessing_context='forkserver' or "
                "'spawn'"
            )

    def post(
        self, name: str, function: int, arguments: Sequence[int | None], keep: Any = None,
        finish: Callable[[], None] | None = None, wakes: bool = False,
    ) -> Operation:  # fmt: skip
        """Post a call of an MPI function, which starts behind all posted before.

        arguments  64-bit integers; None stands for the address of the operation's request
        wakes      the communication thread shall carry it on; else the caller waits at once
        """
        self.check()
        made = Operation(self, name, keep, finish)
        with self._lock:
            number = self._next
            index = number % COUNT
            before = self._held[index]
            if before is not None:
                before.wait(None)
            base = HEAD + index * SLOT
            words = self._words
            words[base + STATE], words[base + CODE], words[base + FUNCTION] = WAITING, 0, function
            place = self.address + 8 * base
            at = base + ARGUMENTS
            for value in arguments:
                words[at] = place + 8 * REQUEST if value is None else value
                at += 1
            words[base + REQUEST] = words[base + FLAG] = 0
            made.number, made._place = number, place
            self._held[index] = made
            self._next = number + 1
            if self.watch is not None:
                self.watch.posted[0] = number
            if wakes and self._thread is None:
                self._start()
            self._post(self.address, wakes)
            self._sweep()
        return made

    def _sweep(self) -> None:
        """End operations that are over but were not waited for, so that their memory goes."""
        first = self._words[FIRST]
        while self._swept < first:
            index = self._swept % COUNT
            held, self._held[index] = self._held[index], None
            self._swept += 1
            if held is not None:
                held.end()

    def _start(self) -> None:
        if not can_share():
            return  # who waits drives
        self._words[SHUTDOWN] = 0
        self._thread = threading.Thread(
            target=self._communicate, args=(self.address,), daemon=True,
            name="tracejit-communication",
        )  # fmt: skip
        self._thread.start()

    def wake(self) -> None:
        """Let the communication thread look at what was posted."""
        if self._thread is None:
            self._start()
        if self._words[SLEEPING]:
            self._futex_wake()

    def _futex_wake(self) -> None:
        system = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_int64] * 7)(self._words[SYSTEM])
        at = self.address + 8 * BELL
        system(FUTEX[platform.machine()], at, WAKE, 2**31 - 1, 0, 0, 0)

    def drive(self, place: int, budget: int) -> int:
        """Carry on all operations until that of a slot is over, at most `budget` times; return its
        state."""
        return self._drive(self.address, place, budget)

    def ending(self, place: int) -> tuple[int, bytes]:
        """Return MPI's error code of a slot's operation, 0 for success, and MPI's status."""
        base = (place - self.address) // 8
        return self._words[base + CODE], bytes(self._words[base + STATUS : base + SLOT])

    def __enter__(self) -> Communicator:
        """Keep everybody else out of MPI, for calls that are made through mpi4py."""
        self.check()
        self._enter(self.address)
        return self

    def __exit__(self, *error: object) -> None:
        self._leave(self.address)

    def timeout_text(self, name: str, number: int, timeout: float) -> str:
        """Return the text of an error, with the places of the other ranks where they are known."""
        text = f"{name} did not end within {timeout:g} seconds"
        where = self.watch.where() if self.watch is not None else {}
        if where:
            text += ": " + "; ".join(f"rank {r} is {what}" for r, what in sorted(where.items()))
        return text

    def waiting(self) -> int:
        """Return the number of operations that are not over."""
        aloft = self._words[FLOWN] - self._words[LANDED]
        return int(self._next - self._words[FIRST] + aloft)

    def wait_for_flight(self, place: int, look: Callable[[], None]) -> None:
        """Wait for what a captured program began. RuntimeError as in `Operation.wait`.

        place  of its slot
        look   called now and then; it may raise
        """
        base = (place - self.address) // 8
        words = self._words
        group = (ctypes.c_int64 * (SECONDS + 1)).from_address(words[base + GROUP])
        watched = Operation(self, COLLECTIVES[words[base + WHAT]], None, None)
        watched.number, watched._place = words[FLOWN], place
        watched._wait_long(float(group[SECONDS]), look)
        if words[base + STATE] == FAILED:
            raise RuntimeError(f"{watched.name}: MPI: {self.error_text(words[base + CODE])}")

    def abandon(self, places: Sequence[int]) -> None:
        """Let nobody wait for what a captured program began: the communication thread carries it
        on."""
        for place in places:
            self._abandon(place)
        self.wake()

    def shut_down(self) -> None:
        """End the communication thread."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._words[SHUTDOWN] = 1
        while thread.is_alive():
            self._futex_wake()
            thread.join(0.01)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
