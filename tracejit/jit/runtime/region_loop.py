"""Native driver of loops: it runs a body's job again and again, without Python between.

In: the address of a state, as words. Out: how many iterations ran, in the state. Called by
`regions`. The text below is compiled like a kernel and cached on disk.

Between iterations the driver changes addresses in the body's buffer table. An address moves by a
step (items that are scanned, stacked, pushed or popped). Two addresses swap (what is carried): the
body then reads what it wrote before, and writes where it read from.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from typing import Any

from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache

# Words of a state. INDEX: the iteration's number; INDEX_STEP: what is added to it. GO: the body's
# decision, written to the first byte; 0 ends the loop. LIMIT: at most so many iterations. SWAPS:
# (place read, place written, sum of the two addresses). MOVES: (place, bytes).
(
    INDEX, GO, INDEX_STEP, RUN, JOB, TABLE, STATUS, LIMIT, DONE, SWAPS, SWAP_COUNT, MOVES,
    MOVE_COUNT,
) = range(13)  # fmt: skip
STATE = 13

_TEXT = f'''\
"""The driver of loops. The parameter is a 64-bit integer."""
from tracejit.jit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def loop(state):
    s = pointer_at(state)
    run = s[{RUN}]
    job = s[{JOB}]
    table = pointer_at(s[{TABLE}])
    status = pointer_at(s[{STATUS}])
    swaps = pointer_at(s[{SWAPS}])
    moves = pointer_at(s[{MOVES}])
    swap_count = s[{SWAP_COUNT}]
    move_count = s[{MOVE_COUNT}]
    limit = s[{LIMIT}]
    step = s[{INDEX_STEP}]
    done = 0
    while done < limit:
        call_function(run, job)
        done += 1
        if status[0] != 0:
            limit = 0
        else:
            for k in range(swap_count):
                place = swaps[3 * k + 1]
                written = table[place]
                table[swaps[3 * k]] = written
                table[place] = swaps[3 * k + 2] - written
            for k in range(move_count):
                moved = moves[2 * k]
                table[moved] = table[moved] + moves[2 * k + 1]
            s[{INDEX}] = s[{INDEX}] + step
            if s[{GO}] == 0:
                limit = 0
    s[{DONE}] = done
'''


@functools.cache
def kernel() -> Kernel:
    """Return the driver as a kernel, so that one path compiles and caches everything."""
    digest = hashlib.sha256(f"loop\n{_TEXT}".encode()).hexdigest()[:32]
    return Kernel("loop", _TEXT, digest, loops=1)


@functools.cache
def entry_points() -> tuple[Any, Any, Any]:
    """Return the driver that keeps the interpreter's lock, the one that releases it, and the
    address of the runner that it calls."""
    from tracejit.jit.runtime import runner

    run, _ = runner.kernels()
    found = cache.functions_of([kernel(), run])
    word = ctypes.c_int64
    address = found[kernel().digest]
    hold = ctypes.PYFUNCTYPE(None, word)(address)
    return hold, ctypes.CFUNCTYPE(None, word)(address), found[run.digest]
