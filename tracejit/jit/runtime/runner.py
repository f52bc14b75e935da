"""Native runner: it walks a table of instructions, alone or with its own worker threads.

In: the address of a job. Out: the memory its kernels write, and a status. Called by `executable`,
once per stretch of native instructions, and by the loop driver. The text below is compiled like a
kernel and cached on disk.

A job is JOB words; a row of its table is 8 words. They are function, operands, sizes, total, chunk,
whether it may be shared, its first ticket, the ticket after its last. Shapes fix the chunks; any
thread may run one. Each chunk of a shared instruction has a ticket. A free thread draws the next
ticket and waits until the calling thread has come to that instruction. The calling thread runs
everything else. So one counter hands out the work, one counts what is done, and idle workers cost
nothing.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import platform
import sys
import threading
from typing import Any

import numpy as np

from tracejit import logs
from tracejit.core.memory import forks
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache

# Handing a chunk to a worker that is awake costs a microsecond; waking one takes some 100.
SHARED_STEP = 1 << 17  # bytes moved by an instruction whose chunks are worth handing over
SHARED_PROGRAM = 1 << 18
WAKING_PROGRAM = 1 << 22
# Words of a job.
(
    TABLE, COUNT, BUFFERS, STATUS, SCRATCH, SCRATCH_STRIDE, POOL, HELPERS, TICKETS, BLAS, WAKES,
) = range(11)  # fmt: skip
JOB = 11
# Words of the status: message number + 1, value, row. 0: all is well. The last word counts what
# `lowering/library_collectives.py` began.
STATUS_WORDS = 4
ROW = 8
# Words of the pool, each in a cache line of its own.
EPOCH, BUSY, ACTIVE, TICKET, DONE, STAGE, ABORT, SLEEPERS, SHUTDOWN, CURRENT = range(0, 80, 8)
WAITING, RESTING = 80, 88
SYSTEM, YIELD = 96, 97  # addresses of libc's syscall and sched_yield
MISSED, PATIENCE = 98, 99  # jobs that workers slept through since the last wake; how many they may
_POOL_WORDS = 104
# Some 50 us: a step that follows at once finds its workers awake. Threads that wait longer sleep,
# and leave the cores to other processes.
_SPINS_BEFORE_SLEEP = 3000
# A job too short to be worth waking workers wakes them if jobs follow each other so fast that the
# next ones find them awake. The runner tries that after PATIENCE jobs, and later each time that it
# did not help. These are the bounds of PATIENCE.
_FEWEST, _MOST = 4, 1024
_WAIT, _WAKE, _ALL = 128, 129, 2147483647  # futex operations, private to the process
_FUTEX = {"x86_64": 202, "aarch64": 98}

_TEXT = f'''\
"""The runner. Every parameter is a 64-bit integer."""
from tracejit.jit.lowering.abi import (
    atomic_add, atomic_load, atomic_store, atomic_swap_if, call_function, call_kernel, pause,
    pointer_at,
)

PARAMETERS = "int64"


def run(job):
    j = pointer_at(job)
    table = j[{TABLE}]
    count = j[{COUNT}]
    buffers = j[{BUFFERS}]
    state = j[{STATUS}]
    scratch = j[{SCRATCH}]
    status = pointer_at(state)
    pool = pointer_at(j[{POOL}])
    blas = pointer_at(j[{BLAS}])
    if j[{BLAS}] != 0:
        while not atomic_swap_if(blas, 0, 0, 1):
            pause()
        if blas[1] == 0:
            blas[2] = call_function(blas[3]) & 4294967295
            if blas[2] != 1:
                call_function(blas[4], 1)
        blas[1] += 1
        atomic_store(blas, 0, 0)
    shared = 0
    mine = 0
    system = 0
    at_done = 0
    at_stage = 0
    if j[{POOL}] != 0 and atomic_swap_if(pool, {BUSY}, 0, 1):
        shared = 1
        system = pool[{SYSTEM}]
        at_done = j[{POOL}] + {8 * DONE}
        at_stage = j[{POOL}] + {8 * STAGE}
        atomic_store(pool, {TICKET}, 0)
        atomic_store(pool, {DONE}, 0)
        atomic_store(pool, {STAGE}, -1)
        atomic_store(pool, {ABORT}, 0)
        pool[{CURRENT}] = job
        atomic_add(pool, {EPOCH}, 1)
        wakes = j[{WAKES}]
        if atomic_load(pool, {SLEEPERS}) == 0:
            wakes = 0
            pool[{PATIENCE}] = max(pool[{PATIENCE}] - pool[{PATIENCE}] // 4 - 1, {_FEWEST})
        elif wakes == 0:
            pool[{MISSED}] += 1
            if pool[{MISSED}] > pool[{PATIENCE}]:
                wakes = 1
                pool[{MISSED}] = 0
                pool[{PATIENCE}] = min(2 * pool[{PATIENCE}] + {_FEWEST}, {_MOST})
        if wakes != 0:
            call_function(system, {{futex}}, j[{POOL}], {_WAKE}, {_ALL}, 0, 0, 0)
        mine = atomic_add(pool, {TICKET}, 1)
    spins = 0
    for k in range(count):
        row = pointer_at(table + {8 * ROW} * k)
        total = row[3]
        chunk = row[4]
        if shared == 1 and row[5] != 0:
            atomic_store(pool, {STAGE}, k)
            if atomic_load(pool, {RESTING}) > 0:
                call_function(system, {{futex}}, at_stage, {_WAKE}, {_ALL}, 0, 0, 0)
            while mine < row[7]:
                lo = (mine - row[6]) * chunk
                hi = min(lo + chunk, total)
                call_kernel(row[0], buffers, row[1], row[2], scratch, state, lo, hi)
                atomic_add(pool, {DONE}, 1)
                mine = atomic_add(pool, {TICKET}, 1)
            spins = 0
            done = atomic_load(pool, {DONE})
            while done < row[7]:
                pause()
                spins += 1
                if spins > {_SPINS_BEFORE_SLEEP}:
                    atomic_store(pool, {WAITING}, 1)
                    call_function(system, {{futex}}, at_done, {_WAIT}, done & 4294967295, 0, 0, 0)
                    atomic_store(pool, {WAITING}, 0)
                done = atomic_load(pool, {DONE})
        else:
            lo = 0
            while lo < total:
                hi = min(lo + chunk, total)
                call_kernel(row[0], buffers, row[1], row[2], scratch, state, lo, hi)
                lo = hi
        if status[0] != 0:
            status[2] = k
            break
    if shared == 1:
        atomic_store(pool, {ABORT}, 1)
        atomic_add(pool, {EPOCH}, 1)
        atomic_store(pool, {STAGE}, {_ALL})
        if atomic_load(pool, {RESTING}) > 0:
            call_function(system, {{futex}}, at_stage, {_WAKE}, {_ALL}, 0, 0, 0)
        while atomic_load(pool, {ACTIVE}) != 0:
            pause()
            spins += 1
            if spins > {_SPINS_BEFORE_SLEEP}:
                spins = 0
                call_function(pool[{YIELD}])
        atomic_store(pool, {BUSY}, 0)
    if j[{BLAS}] != 0:
        while not atomic_swap_if(blas, 0, 0, 1):
            pause()
        blas[1] -= 1
        if blas[1] == 0 and blas[2] != 1:
            call_function(blas[4], blas[2])
        atomic_store(blas, 0, 0)


def work(at_pool, index):
    pool = pointer_at(at_pool)
    system = pool[{SYSTEM}]
    at_done = at_pool + {8 * DONE}
    at_stage = at_pool + {8 * STAGE}
    seen = 0
    idle = 0
    spins = 0
    while atomic_load(pool, {SHUTDOWN}) == 0:
        epoch = atomic_load(pool, {EPOCH})
        if (epoch & 1) == 1 and epoch != seen:
            seen = epoch
            idle = 0
            atomic_add(pool, {ACTIVE}, 1)
            # Only now is it certain that the job stays: its owner waits for ACTIVE to be 0.
            if atomic_load(pool, {EPOCH}) == epoch:
                j = pointer_at(pool[{CURRENT}])
                if index <= j[{HELPERS}]:
                    table = j[{TABLE}]
                    tickets = j[{TICKETS}]
                    scratch = j[{SCRATCH}] + index * j[{SCRATCH_STRIDE}]
                    k = 0
                    ticket = atomic_add(pool, {TICKET}, 1)
                    while ticket < tickets:
                        while pointer_at(table + {8 * ROW} * k)[7] <= ticket:
                            k += 1
                        row = pointer_at(table + {8 * ROW} * k)
                        spins = 0
                        stage = atomic_load(pool, {STAGE})
                        while stage < k:
                            pause()
                            spins += 1
                            if spins > {_SPINS_BEFORE_SLEEP}:
                                atomic_add(pool, {RESTING}, 1)
                                seen32 = stage & 4294967295
                                call_function(
                                    system, {{futex}}, at_stage, {_WAIT}, seen32, 0, 0, 0
                                )
                                atomic_add(pool, {RESTING}, -1)
                            stage = atomic_load(pool, {STAGE})
                        if atomic_load(pool, {ABORT}) != 0:
                            ticket = tickets
                        else:
                            lo = (ticket - row[6]) * row[4]
                            hi = min(lo + row[4], row[3])
                            call_kernel(
                                row[0], j[{BUFFERS}], row[1], row[2], scratch, j[{STATUS}], lo, hi
                            )
                            atomic_add(pool, {DONE}, 1)
                            if atomic_load(pool, {WAITING}) != 0:
                                call_function(system, {{futex}}, at_done, {_WAKE}, {_ALL}, 0, 0, 0)
                            ticket = atomic_add(pool, {TICKET}, 1)
            atomic_add(pool, {ACTIVE}, -1)
        elif idle < {_SPINS_BEFORE_SLEEP}:
            idle += 1
            pause()
        else:
            idle = 0
            atomic_add(pool, {SLEEPERS}, 1)
            call_function(system, {{futex}}, at_pool, {_WAIT}, epoch & 4294967295, 0, 0, 0)
            atomic_add(pool, {SLEEPERS}, -1)
'''


@functools.cache
def kernels() -> tuple[Kernel, Kernel]:
    """Return the runner's two functions as kernels, so that one path compiles and caches
    everything."""
    source = _TEXT.replace("{futex}", str(_FUTEX.get(platform.machine(), 0)))

    def kernel(name: str) -> Kernel:
        digest = hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()[:32]
        return Kernel(name, source, digest, loops=1)

    return kernel("run"), kernel("work")


class Runner:
    """Native entry points, and the pool of workers they share."""

    def __init__(self) -> None:
        run, work = kernels()
        addresses = cache.functions_of([run, work])
        word = ctypes.c_int64
        # `hold` keeps the interpreter's lock, for calls too short for another thread to use it.
        self.run = addresses[run.digest]
        self.hold = ctypes.PYFUNCTYPE(None, word)(addresses[run.digest])
        self.release = ctypes.CFUNCTYPE(None, word)(addresses[run.digest])
        self._work = ctypes.CFUNCTYPE(None, word, word)(addresses[work.digest])
        self._memory = np.zeros(_POOL_WORDS + 8, np.int64)
        skip = -self._memory.ctypes.data % 64 // 8
        self.words = self._memory[skip : skip + _POOL_WORDS]
        self.pool = int(self.words.ctypes.data)
        self._reset()
        forks.in_child(self._reset)
        atexit.register(self.shut_down)

    def _reset(self) -> None:
        """Clear the pool: no workers, no job. A forked child has the parent's words and none of its
        threads."""
        libc = ctypes.CDLL(None)
        self.words[:] = 0
        if can_share():
            self.words[SYSTEM] = _address(libc.syscall)
            self.words[YIELD] = _address(libc.sched_yield)
        self.workers: list[threading.Thread] = []
        self._lock = forks.rlock()

    def prepare(self, helpers: int) -> None:
        """Have at least `helpers` worker threads, which sleep until a job is opened.

        From Python 3.12 on no thread can start once the main thread is over. Jobs then run without.
        """
        with self._lock:
            while len(self.workers) < helpers and not self.words[SHUTDOWN]:
                index = len(self.workers) + 1
                thread = threading.Thread(
                    target=self._work, args=(self.pool, index), daemon=True,
                    name=f"tracejit-worker-{index}",
                )  # fmt: skip
                try:
                    thread.start()
                except RuntimeError:
                    return
                self.workers.append(thread)

    def shut_down(self) -> None:
        """End the workers, when the interpreter exits."""
        if not self.workers:
            return
        self.words[SHUTDOWN] = 1
        self.words[EPOCH] += 2  # the futex then refuses a worker that is about to sleep
        number = _FUTEX[platform.machine()]
        system = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_int64] * 7)(int(self.words[SYSTEM]))
        system(number, self.pool, 129, 2**31 - 1, 0, 0, 0)
        for thread in self.workers:
            thread.join(1.0)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def can_share() -> bool:
    """Return True if workers can sleep here, for which they need Linux's futex.

    Without it programs run on one thread, which the `kernels` log says once.
    """
    able = sys.platform == "linux" and platform.machine() in _FUTEX
    if not able:
        logs.emit("kernels", "no futex on this system: programs run on one thread")
    return able


@functools.cache
def runner() -> Runner:
    """Return the runner of this process. The first call loads or compiles it."""
    return Runner()
