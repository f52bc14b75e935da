"""Native guards: a builtin function over a table, which compares words of memory.

In: the rows (address, expected word) of a `GuardSnapshot` and where its entry's inputs are. Out: a
builtin function. It returns the tuple of graph inputs, or None where a row differs. A table of a
thousand rows costs a microsecond. Importing this file installs `comparer` in `capture.snapshot`.

The rows are compared in order, and an address is read only after the rows that prove that the
object there is alive. The interpreter's lock is held from beginning to end. The tuple is allocated
before the first comparison, since that may collect garbage, which may run any code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.jit.capture.snapshot import install_comparer
from tracejit.jit.runtime.builtin import DATA, function_over, method, python_api

# Words of a table; then the roots, the rows, the inputs.
ROOTS, ROWS, INPUTS, NEW_TUPLE, KEEP, DROP, NONE = range(7)
_HEADER = 7
_ITEMS = tuple.__basicsize__ // 8  # words before the elements of a tuple

_TEXT = f'''\
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
    end = at + 2 * table[{ROWS}]
    while holds == 1 and at < end:
        if pointer_at(table[at])[0] != table[at + 1]:
            holds = 0
        at += 2
    if holds == 0:
        call_function(table[{DROP}], made)
        call_function(keep, table[{NONE}])
        return table[{NONE}]
    items = pointer_at(made)
    for k in range(number):
        one = table[end + k]
        if one < 0:
            one = given[-1 - one]
        call_function(keep, one)
        items[{_ITEMS} + k] = one
    return made
'''


def comparer(
    roots: Sequence[int], rows: Sequence[tuple[int, int]], inputs: Sequence[int]
) -> Callable[..., tuple | None]:
    """Make a function of (*roots, *further inputs) over these rows: see `snapshot.Comparer`."""
    functions = [python_api(name) for name in ("PyTuple_New", "Py_IncRef", "Py_DecRef")]
    words = [len(roots), len(rows), len(inputs), *functions, id(None), *roots]
    words += [word for row in rows for word in row]
    return function_over(method("compare", _TEXT), [*words, *inputs])


install_comparer(comparer)
