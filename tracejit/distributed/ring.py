"""Native functions of the ring: they post calls of MPI, carry them on, and begin those of programs.

In: words of the ring's head and of its slots, whose places are named here. Out: addresses of the
functions. Called by `communicator`, which owns the ring's memory.
"""

from __future__ import annotations

import functools
import hashlib
import platform

from tracejit.jit.lowering.library_collectives import (
    COMMUNICATOR,
    FUNCTIONS,
    IN_PLACE,
    OPERATIONS,
    RANK,
    RING,
    TYPES,
)
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache

# Words of the ring's head; what several threads write lies in a cache line of its own.
POSTED, LOCK, SLEEPING, SHUTDOWN = range(0, 32, 8)
BELL = 1  # counts what wakes the communication thread
TAKEN, FIRST, SLOTS, TEST, PROGRESS, SYSTEM, YIELD, SPINS, PAUSE = range(32, 41)
NAP = 42  # a timespec: two words
FLOWN, LANDED, FLIGHTS, MEMCPY = range(44, 48)  # flights begun, and those over from the first on
HEAD = 48
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
SPINS_ALONE = 2000
FUTEX = {"x86_64": 202, "aarch64": 98}
SLEEP, WAKE = 128, 129  # operations of futex, private to the process

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
        if spins > {SPINS_ALONE}:
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
        call_function(r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {WAKE}, 1, 0, 0, 0)
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
        if spins > {SPINS_ALONE}:
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
        if spins > {SPINS_ALONE}:
            call_function(r[{YIELD}])


def leave(ring):
    atomic_store(pointer_at(ring), {LOCK}, 0)


def post(ring, wakes):
    r = pointer_at(ring)
    atomic_add(r, {POSTED}, 1)
    atomic_add(r, {BELL}, 1)
    if wakes != 0 and atomic_load(r, {SLEEPING}) != 0:
        call_function(r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {WAKE}, 1, 0, 0, 0)


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
                    r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {SLEEP}, rung & 4294967295, 0, 0, 0
                )
            atomic_store(r, {SLEEPING}, 0)
            idle = 0
        else:
            idle += 1
            if idle > r[{PAUSE}]:
                call_function(
                    r[{SYSTEM}], {{futex}}, ring + {8 * BELL}, {SLEEP}, rung & 4294967295,
                    ring + {8 * NAP}, 0, 0
                )
            else:
                call_function(r[{YIELD}])
'''

_FUNCTIONS = ("progress", "drive", "begin", "land", "abandon", "gone", "enter", "leave", "post",
              "communicate")  # fmt: skip


@functools.cache
def addresses() -> dict[str, int]:
    """Return the native functions' addresses by name; the first call compiles or loads them."""
    source = _TEXT.replace("{futex}", str(FUTEX.get(platform.machine(), 0)))
    made = {}
    for name in _FUNCTIONS:
        digest = hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()[:32]
        made[name] = Kernel(name, source, digest, loops=1)
    found = cache.functions_of(list(made.values()))
    return {name: found[kernel.digest] for name, kernel in made.items()}
