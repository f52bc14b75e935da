"""Calls of MPI without Python: a ring of operations, and the one thread that carries them on.

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
import functools
import hashlib
import platform
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.memory import forks
from tracejit.jit.lowering.library_collectives import (
    COLLECTIVES,
    COMMUNICATOR,
    FUNCTIONS,
    IN_PLACE,
    OPERATIONS,
    RANK,
    RING,
    SECONDS,
    TYPES,
)
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache, collective_waits
from tracejit.jit.runtime.runner import can_share

# Words of the ring's head; what several threads write lies in a cache line of its own.
POSTED, LOCK, SLEEPING, SHUTDOWN = range(0, 32, 8)
BELL = 1  # counts what wakes the communication thread
TAKEN, FIRST, SLOTS, TEST, PROGRESS, SYSTEM, YIELD, SPINS, PAUSE = range(32, 41)
NAP = 42  # a timespec: two words
FLOWN, LANDED, FLIGHTS, MEMCPY = range(44, 48)  # flights begun, and those over from the first on
_HEAD = 48
# Words of a slot: state, MPI's code of an error, function, ten arguments, request, flag, status.
STATE, CODE, FUNCTION, ARGUMENTS, REQUEST, FLAG, STATUS = 0, 1, 2, 3, 13, 14, 16
SLOT = 32
_ARGUMENTS = 10  # as many as MPI_Ialltoallv takes; C ignores what a function does not take
COUNT = 1024  # slots: more operations than these wait to be posted
ALOFT = 1024  # slots of flights: as many may be begun and not waited for
# What a flight keeps in its slot in place of arguments.
RING_OF, WHAT, GROUP = 3, 4, 5
FREE, WAITING, RUNNING, DONE, FAILED, ADRIFT = range(6)
# A waiter tests this often before it lets other processes have the core, where cores suffice.
_SPINS_ALONE = 2000
# Tests between two looks of Python at deadlines and at dead processes: about a millisecond. Where
# each test gives the core away, other work may keep it for milliseconds.
_BUDGET, _BUDGET_CROWDED = 4000, 100
_HEARS = 0.5  # seconds in which the watch tells of a death that MPI has noticed
_NAP = 50_000  # nanoseconds that the thread sleeps between tests that found nothing
_FUTEX = {"x86_64": 202, "aarch64": 98}
_SLEEP, _WAKE = 128, 129  # operations of futex, private to the process

_ALL_REDUCE, _BROADCAST, _REDUCE, _ALL_GATHER, _REDUCE_SCATTER, _BARRIER = range(6)

_TEXT = f'''\
"""The communication thread's text. Every parameter is a 64-bit integer."""
from tracejit.jit.lowering.abi import (
    atomic_add, atomic_load, atomic_store, atomic_swap_if, call_function, pause, pointer_at,
)

PARAMETERS = "int64"


def progress(ring) -> "int64":
    r = pointer_at(ring)
    posted = atomic_load(r, {POSTED})
    while r[{TAKEN}] < posted:
        at = r[{SLOTS}] + (r[{TAKEN}] % {COUNT}) * {8 * SLOT}
        starting = pointer_at(at)
        code = call_function(
            starting[{FUNCTION}], starting[{ARGUMENTS}], starting[{ARGUMENTS + 1}],
            starting[{ARGUMENTS + 2}], starting[{ARGUMENTS + 3}], starting[{ARGUMENTS + 4}],
            starting[{ARGUMENTS + 5}], starting[{ARGUMENTS + 6}], starting[{ARGUMENTS + 7}],
            starting[{ARGUMENTS + 8}], starting[{ARGUMENTS + 9}],
        ) & 4294967295
        if code != 0:
            starting[{CODE}] = code
            atomic_store(starting, {STATE}, {FAILED})
        else:
            atomic_store(starting, {STATE}, {RUNNING})
        r[{TAKEN}] += 1
    left = 0
    if r[{LANDED}] + {ALOFT} < r[{FLOWN}]:
        r[{LANDED}] = r[{FLOWN}] - {ALOFT}
    f = r[{LANDED}]
    first = 1
    while f < r[{FLOWN}]:
        flight_at = r[{FLIGHTS}] + (f % {ALOFT}) * {8 * SLOT}
        flight = pointer_at(flight_at)
        state = flight[{STATE}]
        if state == {RUNNING} or state == {ADRIFT}:
            wrong = call_function(
                r[{TEST}], flight_at + {8 * REQUEST}, flight_at + {8 * FLAG},
                flight_at + {8 * STATUS}
            ) & 4294967295
            if wrong == 0 and (flight[{FLAG}] & 4294967295) == 0:
                left += 1
                first = 0
            elif state == {ADRIFT}:
                atomic_store(flight, {STATE}, {FREE})
            elif wrong != 0:
                flight[{CODE}] = wrong
                atomic_store(flight, {STATE}, {FAILED})
            else:
                atomic_store(flight, {STATE}, {DONE})
        if first != 0:
            r[{LANDED}] = f + 1
        f += 1
    k = r[{FIRST}]
    while k < r[{TAKEN}]:
        place = r[{SLOTS}] + (k % {COUNT}) * {8 * SLOT}
        slot = pointer_at(place)
        if slot[{STATE}] == {RUNNING}:
            failed = call_function(
                r[{TEST}], place + {8 * REQUEST}, place + {8 * FLAG}, place + {8 * STATUS}
            ) & 4294967295
            if failed != 0:
                slot[{CODE}] = failed
                atomic_store(slot, {STATE}, {FAILED})
            elif (slot[{FLAG}] & 4294967295) != 0:
                atomic_store(slot, {STATE}, {DONE})
            else:
                left += 1
        if k == r[{FIRST}] and slot[{STATE}] >= {DONE}:
            atomic_store(r, {FIRST}, k + 1)
        k += 1
    return left


def drive(ring, place, budget) -> "int64":
    r = pointer_at(ring)
    slot = pointer_at(place)
    spins = 0
    while atomic_load(slot, {STATE}) < {DONE} and spins < budget:
        if atomic_swap_if(r, {LOCK}, 0, 1):
            call_function(r[{PROGRESS}], ring)
            atomic_store(r, {LOCK}, 0)
        else:
            pause()
        spins += 1
        if spins > r[{SPINS}]:
            call_function(r[{YIELD}])
    return atomic_load(slot, {STATE})


def begin(group, what, source, target, count, kind, combined, root, nbytes) -> "int64":
    g = pointer_at(group)
    ring = g[{RING}]
    r = pointer_at(ring)
    spins = 0
    while not atomic_swap_if(r, {LOCK}, 0, 1):
        pause()
        spins += 1
        if spins > {_SPINS_ALONE}:
            call_function(r[{YIELD}])
    left = call_function(r[{PROGRESS}], ring)
    place = r[{FLIGHTS}] + (r[{FLOWN}] % {ALOFT}) * {8 * SLOT}
    while atomic_load(pointer_at(place), {STATE}) != {FREE}:
        r[{FLOWN}] += 1
        place = r[{FLIGHTS}] + (r[{FLOWN}] % {ALOFT}) * {8 * SLOT}
        left = call_function(r[{PROGRESS}], ring)
    slot = pointer_at(place)
    slot[{CODE}] = 0
    slot[{RING_OF}] = ring
    slot[{WHAT}] = what
    slot[{GROUP}] = group
    slot[{REQUEST}] = 0
    slot[{FLAG}] = 0
    request = place + {8 * REQUEST}
    communicator = g[{COMMUNICATOR}]
    function = g[{FUNCTIONS} + 2 * what]
    if count > 2147483647:
        function = g[{FUNCTIONS + 1} + 2 * what]
    element = g[{TYPES} + kind]
    operation = g[{OPERATIONS} + combined]
    code = left * 0
    if what == {_ALL_REDUCE}:
        code = call_function(
            function, source, target, count, element, operation, communicator, request
        )
    elif what == {_BROADCAST}:
        if root == g[{RANK}]:
            call_function(r[{MEMCPY}], target, source, nbytes)
        code = call_function(function, target, count, element, root, communicator, request)
    elif what == {_REDUCE}:
        call_function(r[{MEMCPY}], target, source, nbytes)
        if root == g[{RANK}]:
            code = call_function(
                function, g[{IN_PLACE}], target, count, element, operation, root, communicator,
                request
            )
        else:
            code = call_function(
                function, source, 0, count, element, operation, root, communicator, request
            )
    elif what == {_REDUCE_SCATTER}:
        code = call_function(
            function, source, target, count, element, operation, communicator, request
        )
    elif what == {_BARRIER}:
        code = call_function(function, communicator, request)
    else:
        code = call_function(
            function, source, count, element, target, count, element, communicator, request
        )
    code = code & 4294967295
    if code != 0:
        slot[{CODE}] = code
        atomic_store(slot, {STATE}, {FAILED})
    else:
        atomic_store(slot, {STATE}, {RUNNING})
    r[{FLOWN}] += 1
    atomic_store(r, {LOCK}, 0)
    atomic_add(r, {BELL}, 1)
    if atomic_load(r, {SLEEPING}) != 0:
        call_function(r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {_WAKE}, 1, 0, 0, 0)
    return place


def land(place, budget) -> "int64":
    slot = pointer_at(place)
    ring = slot[{RING_OF}]
    r = pointer_at(ring)
    spins = 0
    while atomic_load(slot, {STATE}) < {DONE} and spins < budget:
        if atomic_swap_if(r, {LOCK}, 0, 1):
            call_function(r[{PROGRESS}], ring)
            atomic_store(r, {LOCK}, 0)
        else:
            pause()
        spins += 1
        if spins > r[{SPINS}]:
            call_function(r[{YIELD}])
    landed = 0
    if atomic_load(slot, {STATE}) == {DONE}:
        atomic_store(slot, {STATE}, {FREE})
        landed = 1
    return landed


def abandon(place):
    slot = pointer_at(place)
    ring = slot[{RING_OF}]
    r = pointer_at(ring)
    spins = 0
    while not atomic_swap_if(r, {LOCK}, 0, 1):
        pause()
        spins += 1
        if spins > {_SPINS_ALONE}:
            call_function(r[{YIELD}])
    if slot[{STATE}] == {RUNNING}:
        atomic_store(slot, {STATE}, {ADRIFT})
    else:
        atomic_store(slot, {STATE}, {FREE})
    atomic_store(r, {LOCK}, 0)


def gone(group, what, source, target, count, kind, combined, root, nbytes) -> "int64":
    return group * 0


def enter(ring):
    r = pointer_at(ring)
    spins = 0
    while not atomic_swap_if(r, {LOCK}, 0, 1):
        pause()
        spins += 1
        if spins > {_SPINS_ALONE}:
            call_function(r[{YIELD}])


def leave(ring):
    atomic_store(pointer_at(ring), {LOCK}, 0)


def post(ring, wakes):
    r = pointer_at(ring)
    atomic_add(r, {POSTED}, 1)
    atomic_add(r, {BELL}, 1)
    if wakes != 0 and atomic_load(r, {SLEEPING}) != 0:
        call_function(r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {_WAKE}, 1, 0, 0, 0)


def communicate(ring):
    r = pointer_at(ring)
    idle = 0
    while atomic_load(r, {SHUTDOWN}) == 0:
        rung = atomic_load(r, {BELL})
        left = 1
        if atomic_swap_if(r, {LOCK}, 0, 1):
            first = r[{FIRST}]
            left = call_function(r[{PROGRESS}], ring)
            if r[{FIRST}] != first:
                idle = 0
            atomic_store(r, {LOCK}, 0)
        if left == 0:
            atomic_store(r, {SLEEPING}, 1)
            if atomic_load(r, {BELL}) == rung and atomic_load(r, {SHUTDOWN}) == 0:
                call_function(
                    r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {_SLEEP}, rung & 4294967295, 0, 0, 0
                )
            atomic_store(r, {SLEEPING}, 0)
            idle = 0
        else:
            idle += 1
            if idle > r[{PAUSE}]:
                call_function(
                    r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {_SLEEP}, rung & 4294967295,
                    ring + {8 * NAP}, 0, 0
                )
            else:
                call_function(r[{YIELD}])
'''

_FUNCTIONS = ("progress", "drive", "begin", "land", "abandon", "gone", "enter", "leave", "post",
              "communicate")  # fmt: skip


@functools.cache
def _addresses() -> dict[str, int]:
    """Return the native functions' addresses by name; the first call compiles or loads them."""
    source = _TEXT.replace("{futex}", str(_FUTEX.get(platform.machine(), 0)))
    made = {}
    for name in _FUNCTIONS:
        digest = hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()[:32]
        made[name] = Kernel(name, source, digest, loops=1)
    found = cache.functions_of(list(made.values()))
    return {name: found[kernel.digest] for name, kernel in made.items()}


def _no_look() -> None:
    pass


class Operation:
    """One call of MPI that was posted, and what it needs to live until it is over.

    name      of the collective, for errors
    keep      objects whose memory MPI reads or writes
    finish    called once, by the first who finds the operation done: copies results to their places
    look      called now and then while somebody waits; it may raise
    count     elements of a collective, for errors; -1 if they are not known
    """

    __slots__ = (
        "_ring", "name", "number", "_place", "keep", "finish", "_ended", "error", "status", "_lock",
        "look", "count",
    )  # fmt: skip

    def __init__(self, ring: Communicator, name: str, keep: Any,
                 finish: Callable[[], None] | None):  # fmt: skip
        self._ring, self.name, self.keep, self.finish = ring, name, keep, finish
        self.number, self._place, self.count = -1, 0, -1
        self._ended, self.error = False, None
        self.look: Callable[[], None] = _no_look
        self.status: bytes | None = None  # MPI's status of a message, once it is over
        self._lock = forks.rlock()

    def done(self) -> bool:
        """Return True if MPI is through with it; asks MPI once."""
        if self._ended:
            return True
        self._ring.check()
        if self._ring.drive(self._place, 1) >= DONE:
            self.end()
        return self._ended

    def wait(self, timeout: float | None) -> None:
        """Wait until it is over. RuntimeError if it fails, if a process of the job dies, or after
        `timeout` seconds."""
        ring = self._ring
        ring.check()
        if not self._ended and ring.drive(self._place, ring.budget) < DONE:
            self._wait_long(timeout, self.look)
        self.end()
        if self.error is not None:
            raise self.error

    def _wait_long(self, timeout: float | None, look: Callable[[], None]) -> None:
        ring = self._ring
        watch = ring.watch
        begun, tests = time.monotonic(), 0
        if watch is not None:
            watch.enter(self.number, self.name, self.sizes(self.count, self.keep))
        try:
            while ring.drive(self._place, ring.budget) < DONE:
                look()
                if watch is not None and watch.failed is not None:
                    raise RuntimeError(f"{self.name} cannot end: {watch.failed}")
                waited = time.monotonic() - begun
                if timeout is not None and waited > timeout:
                    raise RuntimeError(ring.timeout_text(self.name, self.number, timeout))
                tests += ring.budget
                if waited > 0.02 and tests >= _BUDGET:  # nothing is near: leave the core to others
                    time.sleep(0.0001)
                    tests = 0
        except BaseException:
            ring.wake()  # the thread takes what nobody drives any more
            raise
        finally:
            if watch is not None:
                watch.leave()

    @staticmethod
    def sizes(count: int, keep: Any) -> str:
        """Return how much a collective moves, such as "5 float32"; "" if that is unknown."""
        kept = keep if isinstance(keep, tuple) else (keep,)
        kind = next((one.dtype for one in kept if hasattr(one, "dtype")), None)
        return "" if count < 0 or kind is None else f"{count} {kind.name}"

    def end(self) -> None:
        """Take note of the result, and copy it to its place, once."""
        with self._lock:
            if self._ended:
                return
            code, self.status = self._ring.ending(self._place)
            self._ended = True
            finish, self.finish, self.keep = self.finish, None, None
            if code:
                text, watch = self._ring.error_text(code), self._ring.watch
                if watch is not None and watch.hears_of_failure(_HEARS):
                    text = f"{self.name} cannot end: {watch.failed} (MPI: {text})"
                else:
                    text = f"{self.name}: MPI: {text}"
                self.error = RuntimeError(text)
            elif finish is not None:
                finish()


class Communicator:
    """The ring of a process.

    test         address of MPI_Test
    error_text   makes a text of MPI's code
    crowded      more processes than cores: waiters give their core away at once
    """

    def __init__(self, test: int, error_text: Callable[[int], str], crowded: bool = False) -> None:
        addresses = _addresses()
        word = ctypes.c_int64
        self._memory = np.zeros(_HEAD + (COUNT + ALOFT) * SLOT + 8, np.int64)
        skip = -self._memory.ctypes.data % 64 // 8
        words = self._memory[skip:]
        self.address = int(words.ctypes.data)
        self._words = memoryview(words).cast("B").cast("q")
        self.error_text = error_text
        self.watch: Any = None
        self.crowded, self.budget = crowded, _BUDGET_CROWDED if crowded else _BUDGET
        self._lock = forks.rlock()
        self._held: list[Operation | None] = [None] * COUNT
        self._next = self._swept = 0
        self.forked = False
        libc = ctypes.CDLL(None)
        w = self._words
        w[SLOTS], w[TEST], w[PROGRESS] = self.address + 8 * _HEAD, test, addresses["progress"]
        w[YIELD] = _address(libc.sched_yield)
        w[SYSTEM], w[MEMCPY] = _address(libc.syscall), _address(libc.memcpy)
        w[FLIGHTS] = w[SLOTS] + 8 * COUNT * SLOT
        self.functions = addresses
        w[SPINS], w[PAUSE] = (0, 0) if crowded else (_SPINS_ALONE, 200)
        w[NAP + 1] = _NAP
        self._drive = ctypes.CFUNCTYPE(word, word, word, word)(addresses["drive"])
        self._post = ctypes.PYFUNCTYPE(None, word, word)(addresses["post"])
        self._enter = ctypes.CFUNCTYPE(None, word)(addresses["enter"])
        self._abandon = ctypes.CFUNCTYPE(None, word)(addresses["abandon"])
        self._leave = ctypes.PYFUNCTYPE(None, word)(addresses["leave"])
        self._communicate = ctypes.CFUNCTYPE(None, word)(addresses["communicate"])
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
            base = _HEAD + index * SLOT
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
        system(_FUTEX[platform.machine()], at, _WAKE, 2**31 - 1, 0, 0, 0)

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
