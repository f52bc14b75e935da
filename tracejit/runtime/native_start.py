"""Native starts: a builtin function that fills a frame's buffer table and runs its job.

In: a frame of a program that is one short native call. Out: `start(*inputs, *outputs)` for tensors,
floats and Storages: None when the program ran, False where an address is not known yet, True where
a check failed. Called by the functions that `launch` generates.

The interpreter's lock is held from beginning to end: what was looked at is still there when the
program runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.capture.memory_words import FLOAT, TYPE, slot_offset, supported
from tracejit.eager.state import TensorState
from tracejit.memory import Storage
from tracejit.runtime.builtin import DATA, function_over, method, python_api

# Words of `this`; then of each input the bytes of an element, 0 for a float.
JOB, RUN, TABLE, STATUS, INPUTS, NUMBER, KEEP, NONE, FALSE, TRUE, KIND = range(11)
_HEADER = 11


@functools.cache
def _text() -> str:
    storage, offset = (
        slot_offset(TensorState.__dict__[name]) // 8 for name in ("_storage", "_offset")
    )
    pointer = slot_offset(Storage.__dict__["_ptr"]) // 8
    return f'''\
"""A builtin function: `this` is an ndarray of words; `arguments` the address of the objects."""
from tracejit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def start(this, arguments, count) -> "int64":
    words = pointer_at(pointer_at(this)[{DATA}])
    given = pointer_at(arguments)
    table = pointer_at(words[{TABLE}])
    inputs = words[{INPUTS}]
    number = words[{NUMBER}]
    none = words[{NONE}]
    answer = none
    for k in range(inputs):
        size = words[{_HEADER} + k]
        if size == 0:
            table[k] = given[k] + {FLOAT}
            if pointer_at(given[k])[{TYPE // 8}] != words[{KIND}]:
                answer = words[{FALSE}]
                break
        else:
            x = pointer_at(given[k])
            storage = x[{storage}]
            if storage == none:
                answer = words[{FALSE}]
                break
            address = pointer_at(storage)[{pointer}]
            if address == none:
                answer = words[{FALSE}]
                break
            at = call_function(number, address)
            offset = call_function(number, x[{offset}])
            table[k] = at + offset * size
    if answer == none:
        for k in range(inputs, count):
            table[k] = call_function(number, pointer_at(given[k])[{pointer}])
        call_function(words[{RUN}], words[{JOB}])
        if pointer_at(words[{STATUS}])[0] != 0:
            answer = words[{TRUE}]
    call_function(words[{KEEP}], answer)
    return answer
'''


def available(kinds: str) -> bool:
    """Whether inputs of these kinds (`launch.kinds_of`) can be handed over like this."""
    return set(kinds) <= {"t", "d"} and supported()


def starter(
    run: int, job: int, table: int, status: int, itemsizes: Sequence[int]
) -> Callable[..., Any]:
    """`start` over one frame, given addresses of the runner, the job, the table, the status."""
    functions = [python_api("PyLong_AsLongLong"), python_api("Py_IncRef")]
    answers = [id(None), id(False), id(True)]
    words = [job, run, table, status, len(itemsizes), *functions, *answers, id(float)]
    return function_over(method("start", _text()), [*words, *itemsizes])
