"""Native guards: a builtin function over a table, which compares words of memory.

In: the rows (address, expected word) of a `GuardSnapshot` and where its entry's inputs are. Out: a
builtin function. It returns the tuple of graph inputs, or None where a row differs. A table of a
thousand rows costs a microsecond. Importing this file installs `comparer` in `capture.snapshot`.

Rows of a tensor are one record, compared without a branch for each word.

The rows are compared in order, and an address is read only after the rows that prove that the
object there is alive. The interpreter's lock is held from beginning to end. The tuple is allocated
before the first comparison, since that may collect garbage, which may run any code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tracejit.jit.capture.memory_words import TYPE
from tracejit.jit.capture.snapshot import Rows, install_comparer, tensor_offsets
from tracejit.jit.runtime.builtin import DATA, function_over, method, python_api

# Words of a table; then the roots, the number of stretches of rows, the stretches, the inputs. A
# stretch has the numbers of its pairs and of its records; the pairs; the records, each the address
# of a tensor and the words that are expected.
ROOTS, INPUTS, NEW_TUPLE, KEEP, DROP, NONE = range(6)
_HEADER = 6
_ITEMS = tuple.__basicsize__ // 8  # words before the elements of a tuple


@functools.cache
def _tensor_words() -> tuple[list[int], list[int]]:
    """Return the offsets of a record's words: in the tensor, the last of which has the Storage, and
    in that."""
    slots, of_storage = tensor_offsets()
    return [TYPE, *slots], of_storage


def stretches(rows: Rows) -> list[int]:
    """Return the number of stretches of these rows, and their words."""
    of_tensor, of_storage = _tensor_words()
    size = len(of_tensor) + len(of_storage)
    found: list[tuple[list[int], list[int]]] = [([], [])]
    at = 0
    while at < len(rows):
        part = rows[at : at + size]
        x = part[0][0] - TYPE
        expected = [x + n for n in of_tensor]
        storage = part[len(of_tensor) - 1][1] if len(part) == size else 0
        expected += [storage + n for n in of_storage]
        if [address for address, _ in part] == expected:
            found[-1][1].extend([x, *(word for _, word in part)])
            at += size
        else:
            if found[-1][1]:
                found.append(([], []))
            found[-1][0].extend(rows[at])
            at += 1
    words = [len(found)]
    for pairs, records in found:
        words += [len(pairs) // 2, len(records) // (1 + size), *pairs, *records]
    return words


@functools.cache
def check_stretches(table: str) -> str:
    """Return code that compares the stretches of a table, of which the first word is at `at`. The
    code goes on from the word behind them, and sets `holds` to 0 where a word differs."""
    of_tensor, of_storage = _tensor_words()
    own = " | ".join(f"(x_at[{n // 8}] ^ {table}[at + {k}])" for k, n in enumerate(of_tensor, 1))
    place = len(of_tensor)
    behind = " | ".join(f"(storage_at[{n // 8}] ^ {table}[at + {k}])"
                        for k, n in enumerate(of_storage, place + 1))  # fmt: skip
    return f"""\
    left = {table}[at]
    at += 1
    while holds == 1 and left > 0:
        pairs = {table}[at]
        records = {table}[at + 1]
        at += 2
        while holds == 1 and pairs > 0:
            if pointer_at({table}[at])[0] != {table}[at + 1]:
                holds = 0
            at += 2
            pairs -= 1
        while holds == 1 and records > 0:
            x_at = pointer_at({table}[at])
            if ({own}) != 0:
                holds = 0
            else:
                storage_at = pointer_at({table}[at + {place}])
                if ({behind}) != 0:
                    holds = 0
            at += {1 + place + len(of_storage)}
            records -= 1
        left -= 1
"""


@functools.cache
def _text() -> str:
    return f'''\
"""A builtin function: `this` is the table, an ndarray; `arguments` the address of the objects."""
from tracejit.jit.lowering.abi import call_function, pointer_at

PARAMETERS = "int64"


def compare(this, arguments, count) -> "int64":
    table = pointer_at(pointer_at(this)[{DATA}])
    given = pointer_at(arguments)
    roots = table[{ROOTS}]
    number = table[{INPUTS}]
    keep = table[{KEEP}]
    made = call_function(table[{NEW_TUPLE}], number)
    if made == 0:
        return 0
    holds = 1
    for k in range(roots):
        if given[k] != table[{_HEADER} + k]:
            holds = 0
            break
    at = {_HEADER} + roots
{check_stretches("table")}
    if holds == 0:
        call_function(table[{DROP}], made)
        call_function(keep, table[{NONE}])
        return table[{NONE}]
    items = pointer_at(made)
    for k in range(number):
        one = table[at + k]
        if one < 0:
            one = given[-1 - one]
        call_function(keep, one)
        items[{_ITEMS} + k] = one
    return made
'''


def comparer(
    roots: Sequence[int], rows: Rows, inputs: Sequence[int]
) -> Callable[..., tuple | None]:
    """Make a function of (*roots, *further inputs) over these rows: see `snapshot.Comparer`."""
    functions = [python_api(name) for name in ("PyTuple_New", "Py_IncRef", "Py_DecRef")]
    words = [len(roots), len(inputs), *functions, id(None), *roots, *stretches(rows)]
    return function_over(method("compare", _text()), [*words, *inputs])


install_comparer(comparer)
