"""Native starts: builtin functions that fill a frame's buffer table, run its job, and do what
follows a run: make the output tensors, advance the versions of what was written, set gradients.

In: a frame of a program that is one native call, and a `Tail`. Out: functions of (inputs, a Storage
for each output), inputs a tuple of tensors, floats and ints. Called by what `launch` generates.

`start` does all of it and gives a list: the outputs' tensors, then the gradients that were
replaced. It gives False where an address is not known yet or a number does not fit, and True where a
check failed. The interpreter's lock is held from beginning to end, and nothing is allocated after
the program began: a call that is ended from outside has happened, or has not. For programs that
release the lock `place` and `follow` are the parts before and after.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.capture.memory_words import FLOAT, LIST_ITEMS, TUPLE_ITEMS, TYPE, slot_offset, supported
from tracejit.eager.state import TensorState
from tracejit.eager.tensor import Tensor
from tracejit.memory import Storage
from tracejit.runtime.builtin import DATA, function_over, method, python_api

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Tail:
    """What follows a program's run.

    written  (input, writes): memory whose version advances
    grads    (input, output): a tensor's new gradient
    """

    written: Pairs = ()
    grads: Pairs = ()


NOTHING = Tail()

# Words of `this`, then: bytes of an element of each input, or what a number is, and a cell for it;
# shape, dtype and device of each output; the pairs of the tail.
_WORDS = (
    "JOB", "RUN", "TABLE", "STATUS", "INPUTS", "OUTPUTS", "WRITTEN", "GRADS", "CLASS", "FLOAT_CLASS",
    "INT_CLASS", "EMPTY", "NONE", "FALSE", "TRUE", "ZERO", "LIST", "NEW", "VALUE", "NUMBER", "FAILED",
    "FORGIVE", "KEEP", "DROP",
)  # fmt: skip
_FUNCTIONS = ("PyList_New", "PyType_GenericNew", "PyLong_AsLongLong", "PyLong_FromLongLong",
              "PyErr_Occurred", "PyErr_Clear", "Py_IncRef", "Py_DecRef")  # fmt: skip
_FLOAT_INPUT, _INT_INPUT = 0, -1
_EMPTY: tuple = ()
_NONE_SLOTS = ("_strides", "_grad", "_node", "_view", "_hooks", "_array", "_traced")


def _words(*names: str) -> str:
    """Lines that read words under their lower-case names."""
    return "".join(f"    {name.lower()} = words[{_WORDS.index(name)}]\n" for name in names)


def _slots() -> dict[str, int]:
    """The word of each slot in a tensor, of `_ptr` and `version` in a Storage."""
    slots = {n: TensorState.__dict__[n] for n in TensorState.__slots__ if not n.startswith("__")}
    slots |= {name: Storage.__dict__[name] for name in ("_ptr", "version")}
    return {name: slot_offset(descriptor) // 8 for name, descriptor in slots.items()}


_BEGIN = f"""
    words = pointer_at(pointer_at(this)[{DATA}])
    given = pointer_at(arguments)
    inputs = pointer_at(given[0] + {TUPLE_ITEMS})
    sizes = {len(_WORDS)}
    cells = sizes + words[{_WORDS.index("INPUTS")}]
    kinds = cells + words[{_WORDS.index("INPUTS")}]
    pairs = kinds + 3 * words[{_WORDS.index("OUTPUTS")}]
"""


def _allocate(slot: dict[str, int]) -> str:
    """`made`, a list of the output tensors and of None for each gradient."""
    fields = {
        "_storage": "given[1 + k]", "_shape": "words[kinds + 3 * k]",
        "_dtype": "words[kinds + 3 * k + 1]", "_device": "words[kinds + 3 * k + 2]",
        "_offset": "zero", "_output_nr": "zero", "_requires_grad": "false",
        **dict.fromkeys(_NONE_SLOTS, "none"),
    }  # fmt: skip
    filled = "".join(
        f"        x[{slot[name]}] = {value}\n        call_function(keep, {value})\n"
        for name, value in fields.items()
    )
    names = ("OUTPUTS", "GRADS", "EMPTY", "NONE", "FALSE", "ZERO", "LIST", "NEW", "KEEP", "DROP")
    return f"""\
{_words(*names)}
    made = call_function(list, outputs + grads)
    if made == 0:
        return 0
    items = pointer_at(pointer_at(made)[{LIST_ITEMS // 8}])
    for k in range(outputs):
        new_one = call_function(new, words[{_WORDS.index("CLASS")}], empty, 0)
        if new_one == 0:
            call_function(drop, made)
            return 0
        items[k] = new_one
        x = pointer_at(new_one)
{filled}
    for k in range(grads):
        items[outputs + k] = none
        call_function(keep, none)
"""


def _place(slot: dict[str, int]) -> str:
    """The addresses of inputs and outputs into the table; `known` is whether all are."""
    names = ("TABLE", "INPUTS", "FLOAT_CLASS", "INT_CLASS", "VALUE", "FAILED", "FORGIVE")
    return f"""\
{_words(*names).replace("    inputs =", "    count_of_inputs =")}
    addresses = pointer_at(table)
    known = 1
    for k in range(count_of_inputs):
        one = inputs[k]
        size = words[sizes + k]
        if size == {_FLOAT_INPUT}:
            addresses[k] = one + {FLOAT}
            if pointer_at(one)[{TYPE // 8}] != float_class:
                known = 0
                break
        elif size == {_INT_INPUT}:
            if pointer_at(one)[{TYPE // 8}] != int_class:
                known = 0
                break
            number = call_function(value, one)
            if number == -1:
                if call_function(failed) != 0:
                    call_function(forgive)
                    known = 0
                    break
            words[cells + k] = number
            addresses[k] = pointer_at(this)[{DATA}] + 8 * (cells + k)
        else:
            storage = pointer_at(one)[{slot["_storage"]}]
            if storage == none:
                known = 0
                break
            address = pointer_at(storage)[{slot["_ptr"]}]
            if address == none:
                known = 0
                break
            offset = call_function(value, pointer_at(one)[{slot["_offset"]}])
            addresses[k] = call_function(value, address) + offset * size
    if known == 0:
        call_function(drop, made)
        call_function(keep, false)
        return false
    for k in range(outputs):
        address = pointer_at(given[1 + k])[{slot["_ptr"]}]
        addresses[count_of_inputs + k] = call_function(value, address)
"""


_RUN = f"""\
{_words("JOB", "RUN", "STATUS", "TRUE")}
    call_function(run, job)
    if pointer_at(status)[0] != 0:
        call_function(drop, made)
        call_function(keep, true)
        return true
"""


def _follow(slot: dict[str, int]) -> str:
    """Versions and gradients; the gradients that were there stay alive at the end of `made`."""
    return f"""\
{_words("WRITTEN")}
    for k in range(written):
        storage = pointer_at(inputs[words[pairs + 2 * k]])[{slot["_storage"]}]
        before = pointer_at(storage)[{slot["version"]}]
        after = call_function(value, before) + words[pairs + 2 * k + 1]
        pointer_at(storage)[{slot["version"]}] = call_function(
            words[{_WORDS.index("NUMBER")}], after
        )
        call_function(drop, before)
    for k in range(grads):
        at = pairs + 2 * (written + k)
        leaf = pointer_at(inputs[words[at]])
        grad = items[words[at + 1]]
        call_function(keep, grad)
        call_function(drop, none)
        items[outputs + k] = leaf[{slot["_grad"]}]
        leaf[{slot["_grad"]}] = grad
"""


@functools.cache
def _text(name: str) -> str:
    slot = _slots()
    again = f"""\
{_words("OUTPUTS", "GRADS", "NONE", "VALUE", "KEEP", "DROP")}
    items = pointer_at(pointer_at(given[1])[{LIST_ITEMS // 8}])
"""
    body = {
        "start": [_allocate(slot), _place(slot), _RUN, _follow(slot), "    return made\n"],
        "place": [_allocate(slot), _place(slot), "    return made\n"],
        "follow": [again, _follow(slot), "    call_function(keep, none)\n    return none\n"],
    }[name]
    return f'''\
"""A builtin function: `this` is an ndarray of words; `arguments` the address of the objects."""
from tracejit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def {name}(this, arguments, count) -> "int64":
{_BEGIN}
{"".join(body)}'''


def available(kinds: str) -> bool:
    """Whether inputs of these kinds (`launch.kinds_of`) can be handed over like this."""
    return set(kinds) <= {"t", "d", "q"} and supported()


def functions(
    names: Sequence[str],
    frame: tuple[int, int, int, int],
    sizes: Sequence[int],
    types: Sequence[tuple],
    tail: Tail,
) -> list[Callable[..., Any]]:
    """`start`, or `place` and `follow`, over one frame.

    frame  addresses of the job, the runner, the table, the status
    sizes  bytes of an element of each input; `number_word` of a number
    types  (shape, dtype, device) of each output
    """
    of_python = [python_api(name) for name in _FUNCTIONS]
    words = [*frame, len(sizes), len(types), len(tail.written), len(tail.grads), id(Tensor),
             id(float), id(int), id(_EMPTY), id(None), id(False), id(True), id(0), *of_python,
             *sizes, *(0 for _ in sizes), *(id(part) for kind in types for part in kind),
             *(n for pair in (*tail.written, *tail.grads) for n in pair)]  # fmt: skip
    assert len(_WORDS) == 16 + len(of_python)
    shared = np.array(words, np.int64)
    return [function_over(method(name, _text(name)), shared) for name in names]


def number_word(kind: str) -> int:
    """What stands for the size of an input that is a number."""
    return _FLOAT_INPUT if kind == "d" else _INT_INPUT
