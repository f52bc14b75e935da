"""Native starts: builtin functions that fill a frame's buffer table, run its job, and do what
follows a run.

In: a frame of a program that is one native call, and a `PostRun`. Out: functions of (inputs, a
Storage for each output), inputs a tuple of tensors, floats and ints. Called by what `launch`
generates.

After a run the functions make the output tensors, advance the versions of what was written, and set
gradients.

`start` does all of it and gives a list: the outputs' tensors, then the gradients that were
replaced. It gives False where an address is not known yet or a number does not fit, and True where
a check failed. It holds the interpreter's lock from beginning to end, and allocates nothing after
the program began. So a call that is ended from outside has happened, or has not. For programs that
release the lock, `place` and `follow` are the parts before and after.

`again`, made once a few calls have left Storages, is `start` without any. It takes those that
nobody but the frame holds any more, and gives None where one is missing. So Storages of small
outputs neither die nor are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.core.eager.array_storage import ArrayStorage
from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import Storage
from tracejit.jit.capture.memory_words import (
    FLOAT,
    INT_DIGITS,
    INT_SIZE,
    LIST_ITEMS,
    TUPLE_ITEMS,
    TYPE,
    slot_offset,
    supported,
    word,
)
from tracejit.jit.runtime.builtin import DATA, function_over, method, python_api

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class PostRun:
    """Work that follows a program's run.

    input_mutations  (input, writes): memory whose version advances
    grads            (input, output): a tensor's new gradient
    """

    input_mutations: Pairs = ()
    grads: Pairs = ()


NOTHING = PostRun()
SPARES = 3  # Storages kept for each output: callers often hold the last one or two
SMALL = 4096  # bytes of an output whose Storages are kept

# Words of `this`. Behind them: for each input the bytes of an element, or `number_word`; for each
# input a cell for a number; for each output shape, dtype and device; its Storage; its spare
# Storages; the pairs of the `PostRun`.
_WORDS = (
    "RAN", "JOB", "RUN", "TABLE", "STATUS", "INPUTS", "OUTPUTS", "WRITTEN", "GRADS", "CLASS",
    "FLOAT_CLASS", "INT_CLASS", "EMPTY", "NONE", "FALSE", "TRUE", "ZERO", "ARRAY_STORAGE",
    "ARRAY_CLASS", "TWO_DIGITS", "LIST", "NEW", "VALUE", "NUMBER", "FAILED", "FORGIVE", "KEEP",
    "DROP",
)  # fmt: skip
_FUNCTIONS = ("PyList_New", "PyType_GenericNew", "PyLong_AsLongLong", "PyLong_FromLongLong",
              "PyErr_Occurred", "PyErr_Clear", "Py_IncRef", "Py_DecRef")  # fmt: skip
_FLOAT_INPUT, _INT_INPUT = 0, -1
_NO_SPARE = """\
            call_function(keep, none)
            return none
"""
_NO_ADDRESS = """\
        call_function(drop, made)
        call_function(keep, false)
        return false
"""
_EMPTY: tuple = ()
_LARGE = 1 << 40  # as large as most addresses: an int object of two digits
_NONE_SLOTS = ("_strides", "_grad", "_node", "_view", "_hooks", "_array", "_traced")


def of_words(*names: str) -> str:
    """Return lines that read words of the table into variables of the same lower-case names."""
    return "".join(f"    {name.lower()} = words[{_WORDS.index(name)}]\n" for name in names)


def number_of(name: str) -> int:
    """Return the number of a word of the table."""
    return _WORDS.index(name)


def slots() -> dict[str, int]:
    """Return the word of each slot in a tensor, and of `_ptr`, `version` and `block` in a
    Storage."""
    slots = {n: TensorState.__dict__[n] for n in TensorState.__slots__ if not n.startswith("__")}
    slots |= {name: Storage.__dict__[name] for name in ("_ptr", "version", "block")}
    slots["array of storage"] = ArrayStorage.__dict__["_array"]
    found = {name: slot_offset(descriptor) // 8 for name, descriptor in slots.items()}
    return found | {"__weakref__": Storage.__weakrefoffset__ // 8}


_BEGIN = f"""
    words = pointer_at(pointer_at(this)[{DATA}])
    given = pointer_at(arguments)
    inputs = pointer_at(given[0] + {TUPLE_ITEMS})
"""
LAYOUT = f"""
    sizes = {len(_WORDS)}
    cells = sizes + words[{_WORDS.index("INPUTS")}]
    kinds = cells + words[{_WORDS.index("INPUTS")}]
    stored = kinds + 3 * words[{_WORDS.index("OUTPUTS")}]
    spares = stored + words[{_WORDS.index("OUTPUTS")}]
    pairs = spares + {SPARES} * words[{_WORDS.index("OUTPUTS")}]
"""
_GIVEN = f"""
    for k in range(words[{_WORDS.index("OUTPUTS")}]):
        words[stored + k] = given[1 + k]
"""


def look_for_spare(slot: dict[str, int], candidate: str = "candidate") -> str:
    """Return code that finds for output k a spare Storage that only the frame holds, or 0."""
    return f"""\
        found = 0
        for spare in range(spares + {SPARES} * k, spares + {SPARES} * (k + 1)):
            one = words[spare]
            if one != 0:
                {candidate} = pointer_at(one)
                if {candidate}[0] == 1:
                    if pointer_at({candidate}[{slot["block"]}])[0] == 1:
                        if {candidate}[{slot["__weakref__"]}] == 0:
                            found = one
                            break
"""


def find_spares(slot: dict[str, int], otherwise: str) -> str:
    """Return code that finds a spare Storage for each output, and otherwise runs `otherwise`.

    The code sets its version back to 0, as that of a new one.
    """
    return f"""
{of_words("OUTPUTS", "NONE", "ZERO", "KEEP", "DROP")}
    for k in range(outputs):
{look_for_spare(slot)}
        if found == 0:
{otherwise}
        words[stored + k] = found
    for k in range(outputs):
        fresh = pointer_at(words[stored + k])
        version = fresh[{slot["version"]}]
        if version != zero:
            call_function(keep, zero)
            fresh[{slot["version"]}] = zero
            call_function(drop, version)
"""


def allocate(slot: dict[str, int], storages: bool = True) -> str:
    """Return code that makes the list `made`: the output tensors, then None for each gradient.

    storages  False: the tensors get their Storages later
    """
    fields = {
        **({"_storage": "words[stored + k]"} if storages else {}), "_shape": "words[kinds + 3 * k]",
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
{of_words(*names)}
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


def _decoded(name: str, indent: int) -> str:
    """Return lines that replace an int object by its value. Asking CPython takes longer."""
    lines = [
        f"if pointer_at({name})[{INT_SIZE // 8}] == two_digits:",
        f"    digits = pointer_at({name})[{INT_DIGITS // 8}]",
        f"    {name} = (digits & {(1 << 30) - 1}) + ((digits >> 32) << 30)",
        "else:",
        f"    {name} = call_function(value, {name})",
    ]
    return "\n".join(" " * indent + line for line in lines)


_UNKNOWN = """\
                known = 0
                break
"""


def _of_array(slot: dict[str, int]) -> str:
    """Return code that finds the address of a Storage in its array, which must be one of NumPy's
    own class."""
    return f"""\
                holder = pointer_at(storage)[{slot["block"]}]
                if pointer_at(storage)[{TYPE // 8}] == array_storage:
                    holder = pointer_at(storage)[{slot["array of storage"]}]
                if holder == 0:
                    known = 0
                    break
                if pointer_at(holder)[{TYPE // 8}] != array_class:
                    known = 0
                    break
                address = pointer_at(holder)[{DATA}]
"""


def place(slot: dict[str, int], otherwise: str, of_arrays: bool = True) -> str:
    """Return code that puts the addresses of inputs and outputs into the buffer table.

    The code runs `otherwise` where an address is not known.

    of_arrays  look in the array of a Storage that does not know its address
    """
    names = ("TABLE", "INPUTS", "FLOAT_CLASS", "INT_CLASS", "ARRAY_STORAGE", "ARRAY_CLASS", "VALUE",
             "FAILED", "FORGIVE", "ZERO", "TWO_DIGITS")  # fmt: skip
    return f"""\
{of_words(*names).replace("    inputs =", "    count_of_inputs =")}
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
            addresses[k] = address_of(words) + 8 * (cells + k)
        else:
            storage = pointer_at(one)[{slot["_storage"]}]
            if storage == none:
                known = 0
                break
            address = pointer_at(storage)[{slot["_ptr"]}]
            if address == none:
{_of_array(slot) if of_arrays else _UNKNOWN}
            else:
{_decoded("address", 16)}
            offset = pointer_at(one)[{slot["_offset"]}]
            if offset != zero:
                address += call_function(value, offset) * size
            addresses[k] = address
    if known == 0:
{otherwise}
    for k in range(outputs):
        address = pointer_at(words[stored + k])[{slot["_ptr"]}]
{_decoded("address", 8)}
        addresses[count_of_inputs + k] = address
"""


_RUN = f"""\
{of_words("JOB", "RUN", "STATUS", "TRUE")}
    call_function(run, job)
    if pointer_at(status)[0] != 0:
        call_function(drop, made)
        call_function(keep, true)
        return true
    words[{_WORDS.index("RAN")}] = 1
"""


def _follow(slot: dict[str, int]) -> str:
    """Return code that advances versions and sets gradients.

    Replaced gradients stay alive at the end of `made`: freeing them could run other code.
    """
    return f"""\
{of_words("WRITTEN")}
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
    slot = slots()
    again = f"""\
{of_words("OUTPUTS", "GRADS", "NONE", "VALUE", "KEEP", "DROP")}
    items = pointer_at(pointer_at(given[1])[{LIST_ITEMS // 8}])
"""
    # Where the lock is released, `launch` tells by the addresses if the program ran.
    rest = [allocate(slot), place(slot, _NO_ADDRESS, name != "place")]
    whole = [*rest, _RUN, _follow(slot), "    return made\n"]
    body = {
        "again": [find_spares(slot, _NO_SPARE), *whole],
        "start": [_GIVEN, *whole],
        "place": [_GIVEN, *rest, "    return made\n"],
        "follow": [again, _follow(slot), "    call_function(keep, none)\n    return none\n"],
    }[name]
    return f'''\
"""A builtin function: `this` is an ndarray of words; `arguments` the address of the objects."""
from tracejit.jit.lowering.abi import address_of, call_function, pointer_at

PARAMETERS = "int64"


def {name}(this, arguments, count) -> "int64":
{_BEGIN}{LAYOUT}
    words[{_WORDS.index("RAN")}] = 0
{"".join(body)}'''


def available(kinds: str) -> bool:
    """Return True if native code can take inputs of these kinds (`launch.kinds_of`)."""
    return set(kinds) <= {"t", "d", "q"} and supported()


class Calls:
    """Functions over one frame with one `PostRun`, the words they share, and spare Storages."""

    __slots__ = ("again", "start", "place", "follow", "words", "spares", "turn", "types", "_at")

    def __init__(
        self,
        names: Sequence[str],
        frame: tuple[int, int, int, int],
        sizes: Sequence[int],
        types: Sequence[tuple],
        post_run: PostRun,
    ):
        """Make the functions of these names.

        frame  addresses of the job, the runner, the table, the status
        sizes  bytes of an element of each input; `number_word` of a number
        types  (shape, dtype, device) of each output
        """
        of_python = [python_api(name) for name in _FUNCTIONS]
        known = [Tensor, float, int, _EMPTY, None, False, True, 0, ArrayStorage, np.ndarray]
        words = [0, *frame, len(sizes), len(types),
                 len(post_run.input_mutations), len(post_run.grads)]
        words += [*(id(x) for x in known), word(id(_LARGE) + INT_SIZE), *of_python]
        assert len(words) == len(_WORDS)
        words += [*sizes, *(0 for _ in sizes), *(id(part) for kind in types for part in kind)]
        self._at = len(words)
        words += [0] * (1 + SPARES) * len(types)
        words += [n for pair in (*post_run.input_mutations, *post_run.grads) for n in pair]
        self.words = np.array(words, np.int64)
        self.types = types
        self.spares: list[Storage | None] = [None] * (SPARES * len(types))
        self.turn = 0
        self.again: Callable[..., Any] | None = None
        for name in names:
            self._make(name)

    def _make(self, name: str) -> None:
        setattr(self, name, function_over(method(name, _text(name)), self.words))

    def ran(self) -> bool:
        """Return True if the last `again` or `start` ran the program."""
        return bool(self.words[_WORDS.index("RAN")])

    def storages(self) -> list[Storage]:
        """Return the Storages that the last `again` took."""
        known = {id(storage): storage for storage in self.spares if storage is not None}
        return [known[int(word)] for word in self.words[self._at : self._at + len(self.types)]]

    def spare(self, stored: Sequence[Storage]) -> None:
        """Keep these Storages for later calls of `again`, which take them when nobody else holds
        them."""
        self.turn = turn = (self.turn + 1) % SPARES
        if turn == 0 and self.again is None:
            self._make("again")
        at = self._at + len(stored) + turn
        for k, storage in enumerate(stored):
            self.words[at + SPARES * k] = 0  # the old Storage may die in the next line
            self.spares[SPARES * k + turn] = storage
            self.words[at + SPARES * k] = id(storage)


def number_word(kind: str) -> int:
    """Return the word that marks an input as a number, in place of an element's size."""
    return _FLOAT_INPUT if kind == "d" else _INT_INPUT
