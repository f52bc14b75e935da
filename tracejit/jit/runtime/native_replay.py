"""Native replays: one builtin function that checks a call, runs its program and makes the results.

In: an entry, and a call that it has just served from a snapshot. Out: a function of the tuple of
arguments. It gives the results, or None where anything differs: then nothing has happened, and the
call goes the way through Python. Called by `CompiledFunction`.

Served are entries whose replay only runs a short program, for tensors as arguments. The function
compares the words of the snapshot and those of the arguments, the modes of this thread, and what
else the generated check reads. Objects are allocated first, since that may run any code. From the
first comparison to the end no other code runs. So the frame is not taken from the others, and
a call that is ended from outside has happened, or has not.

`NativeReplay` keeps alive what the table has the addresses of.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from textwrap import indent
from typing import Any

import numpy as np

from tracejit.config import flags
from tracejit.core.eager.global_hooks import everywhere
from tracejit.core.eager.nodes import LeafSink
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import AliasFamily, View, counting_family
from tracejit.core.memory import devices
from tracejit.core.ops import autocast
from tracejit.core.ops.types import default as default_type
from tracejit.jit.capture.memory_words import (
    DICT_VERSION,
    INT_DIGITS,
    INT_SIZE,
    LIST_ITEMS,
    SIZE,
    TUPLE_ITEMS,
    TYPE,
    slot_offset,
    word,
)
from tracejit.jit.capture.snapshot import GuardSnapshot, Rows, Uncovered, attribute_rows
from tracejit.jit.lowering.library_collectives import FLOWN
from tracejit.jit.runtime.builtin import DATA, function_over, method, python_api
from tracejit.jit.runtime.native_guard import check_stretches, stretches
from tracejit.jit.runtime.native_start import (
    LAYOUT,
    NOTHING,
    allocate,
    find_spares,
    look_for_spare,
    number_of,
    of_words,
    place,
    slots,
)

# Words of a table. Behind them: for each object with modes of the thread its key, the version of
# its dict, the number of modes, and for each mode its name, what it is by default, what it must
# be; the arguments that must be one object; rows of settings; the snapshot's rows; for each tensor
# among the arguments its place, class, shape and slots; for each input of the program its object,
# or -1 - the place of an argument; a word for each input; for each output the function that takes
# its Storage, and bytes.
_WORDS = (
    "COUNT", "FRAMES", "FRAME", "CALLS", "SERVED", "ROOT", "LOCALS", "ROOTS", "ROWS", "TENSORS",
    "LARGE", "RELEASES", "TAKES", "SINK", "VIEW_CLASS", "FAMILY_CLASS", "ONE_DIGIT", "THREAD",
    "ITEM", "CALL", "AS_TUPLE", "NEW_TUPLE", "SET_SLICE", "APPEND", "RELEASE", "ACQUIRE",
)  # fmt: skip
_FUNCTIONS = ("PyThreadState_GetDict", "PyDict_GetItem", "PyObject_CallOneArg", "PyList_AsTuple",
              "PyTuple_New", "PyList_SetSlice", "PyList_Append", "PyEval_SaveThread",
              "PyEval_RestoreThread")  # fmt: skip
_SAME = ("_strides", "_dtype", "_device", "_requires_grad", "_hooks", "_traced")
_ARGUMENT = 3 + len(_SAME)
_DIGIT = (1 << 32) - 1  # half a word
_TUPLE = -1  # in place of the number of the only result
_SERVED = _WORDS.index("SERVED")

# Modes of a thread that a replay depends on: the key of their owner, and their names.
_MODES = ("tracejit modes", active, ("tracer", "grad_enabled", "inference", "op_by_op"))
_AUTOCAST = ("tracejit autocast", autocast.switches, ("state",))
_PLACE = ("tracejit device", devices.default, ("place",))


def _slot(kind: type, name: str) -> int:
    return slot_offset(vars(kind)[name]) // 8


def _missed(spaces: int, *before: str) -> str:
    """Return lines that end the call with None: nothing has happened."""
    lines = [*before, "call_function(keep, none)", "return none"]
    return "".join(" " * spaces + line + "\n" for line in lines)


def _own(*names: str) -> str:
    return "".join(f"    {name.lower()} = own[{_WORDS.index(name)}]\n" for name in names)


_CHECK_MODES = f"""\
    of_thread = call_function(thread)
    if of_thread == 0:
        holds = 0
    at = {len(_WORDS)}
    left = locals
    while holds == 1 and left > 0:
        names = own[at + 2]
        modes = call_function(item, of_thread, own[at])
        if modes == 0:
            holds = 0
        elif pointer_at(modes)[{DICT_VERSION // 8}] != own[at + 1]:
            for k in range(names):
                one = call_function(item, modes, own[at + 3 + 3 * k])
                if one == 0:
                    one = own[at + 4 + 3 * k]
                if one != own[at + 5 + 3 * k]:
                    holds = 0
            if holds == 1:
                own[at + 1] = pointer_at(modes)[{DICT_VERSION // 8}]
        at += 3 + 3 * names
        left -= 1
"""
_CHECK_WORDS = """\
    while holds == 1 and roots > 0:
        if given[own[at]] != own[at + 1]:
            holds = 0
        at += 2
        roots -= 1
    while holds == 1 and rows > 0:
        if pointer_at(own[at])[0] != own[at + 1]:
            holds = 0
        at += 2
        rows -= 1
"""  # the rows of the snapshot follow


def _check_arguments(slot: dict[str, int]) -> str:
    """Return code that compares the tensors among the arguments with what they must be."""
    differs = " | ".join(
        f"(tensor[{slot[name]}] ^ own[at + {k}])" for k, name in enumerate(_SAME, 3))
    return f"""\
    while holds == 1 and tensors > 0:
        tensor = pointer_at(given[own[at]])
        if tensor[{TYPE // 8}] != own[at + 1]:
            holds = 0
        elif ({differs}) != 0:
            holds = 0
        else:
            node = tensor[{slot["_node"]}]
            if node == 0:
                holds = 0
            elif node != none:
                if pointer_at(node)[{TYPE // 8}] != sink:
                    holds = 0
            view = tensor[{slot["_view"]}]
            family = view
            if view == 0:
                holds = 0
            elif view != none:
                if pointer_at(view)[{TYPE // 8}] == view_class:
                    family = pointer_at(view)[{_slot(View, "family")}]
                    if pointer_at(view)[{_slot(View, "origin")}] != none:
                        holds = 0
                    elif pointer_at(view)[{_slot(View, "op")}] == none or family == 0:
                        holds = 0
                if holds == 1:
                    if pointer_at(family)[{TYPE // 8}] != family_class:
                        holds = 0
                    elif pointer_at(family)[{_slot(AliasFamily, "version")}] != none:
                        holds = 0
                    elif pointer_at(family)[{_slot(AliasFamily, "inference")}] != false:
                        holds = 0
                if holds == 1 and view != family:
                    generation = pointer_at(view)[{_slot(View, "generation")}]
                    if generation != pointer_at(family)[{_slot(AliasFamily, "generation")}]:
                        holds = 0
            shape = tensor[{slot["_shape"]}]
            known = own[at + 2]
            if shape == 0:
                holds = 0
            elif shape != known:
                if pointer_at(shape)[{TYPE // 8}] != pointer_at(known)[{TYPE // 8}]:
                    holds = 0
                elif pointer_at(shape)[{SIZE // 8}] != pointer_at(known)[{SIZE // 8}]:
                    holds = 0
                else:
                    for k in range(pointer_at(shape)[{SIZE // 8}]):
                        extent = pointer_at(pointer_at(shape + {TUPLE_ITEMS})[k])
                        other = pointer_at(pointer_at(known + {TUPLE_ITEMS})[k])
                        if address_of(extent) != address_of(other):
                            if extent[{TYPE // 8}] != int_class or other[{TYPE // 8}] != int_class:
                                holds = 0
                            elif extent[{INT_SIZE // 8}] != one_digit:
                                holds = 0
                            elif other[{INT_SIZE // 8}] != one_digit:
                                holds = 0
                            else:
                                digits = extent[{INT_DIGITS // 8}] ^ other[{INT_DIGITS // 8}]
                                if digits & {_DIGIT} != 0:
                                    holds = 0
        at += {_ARGUMENT}
        tensors -= 1
"""


@functools.cache
def _text() -> str:
    slot = slots()
    drop = "call_function(drop, made)"
    gone = [drop, "if held != 0:", "    call_function(drop, held)"]
    return f'''\
"""A builtin function: `this` is an ndarray of words; `arguments` the address of the objects."""
from tracejit.jit.lowering.abi import address_of, call_function, pointer_at

PARAMETERS = "int64"


def replay(this, arguments, count) -> "int64":
    own = pointer_at(pointer_at(this)[{DATA}])
    words = pointer_at(own[{_WORDS.index("CALLS")}])
{of_words("NONE", "FALSE", "INT_CLASS", "KEEP", "DROP")}
{_own(*_WORDS)}
    if pointer_at(pointer_at(arguments)[0])[{SIZE // 8}] != count_of_arguments:
{_missed(8)}
    given = pointer_at(pointer_at(arguments)[0] + {TUPLE_ITEMS})
{LAYOUT}
{allocate(slot, storages=False)}
    without = large
    if without == 0:
        for k in range(outputs):
{indent(look_for_spare(slot, "spare_of"), "    ")}
            if found == 0:
                without = 1
    if without != 0:
        for k in range(outputs):
            storage = call_function(call, own[takes + 2 * k], own[takes + 2 * k + 1])
            if storage == 0:
                {drop}
                return 0
            pointer_at(items[k])[{slot["_storage"]}] = storage
    held = 0
    if releases != 0:
        held = call_function(new_tuple, words[{number_of("INPUTS")}])
        if held == 0:
            {drop}
            return 0
    holds = 1
    number = pointer_at(frames)[{SIZE // 8}]
    if number == 0:
        holds = 0
    elif pointer_at(pointer_at(frames)[{LIST_ITEMS // 8}])[number - 1] != frame:
        holds = 0
{_CHECK_MODES}
{_CHECK_WORDS}
{check_stretches("own")}
{_check_arguments(slot)}
    if holds == 0:
{_missed(8, *gone)}
    words[{number_of("RAN")}] = 0
    inputs = pointer_at(address_of(own) + 8 * (at + words[{number_of("INPUTS")}]))
    for k in range(words[{number_of("INPUTS")}]):
        one = own[at + k]
        if one < 0:
            one = given[-1 - one]
        inputs[k] = one
    if without != 0:
        for k in range(outputs):
            words[stored + k] = pointer_at(items[k])[{slot["_storage"]}]
    else:
{indent(find_spares(slot, _missed(12, *gone)), "    ")}
{place(slot, _missed(8, *gone))}
    if without == 0:
        for k in range(outputs):
            pointer_at(items[k])[{slot["_storage"]}] = words[stored + k]
            call_function(keep, words[stored + k])
    if releases != 0:
        for k in range(words[{number_of("INPUTS")}]):
            pointer_at(held + {TUPLE_ITEMS})[k] = inputs[k]
            call_function(keep, inputs[k])
        call_function(set_slice, frames, number - 1, number, 0)
        of_thread = call_function(release)
    call_function(words[{number_of("RUN")}], words[{number_of("JOB")}])
    if releases != 0:
        call_function(acquire, of_thread)
    failed = pointer_at(words[{number_of("STATUS")}])[0]
    if failed != 0:
        for k in range({FLOWN}):
            pointer_at(words[{number_of("STATUS")}])[k] = 0
    if releases != 0:
        call_function(append, frames, frame)
        call_function(drop, held)
    if failed != 0:
{_missed(8, drop)}
    own[{_SERVED}] += 1
    result = 0
    if root == {_TUPLE}:
        result = call_function(as_tuple, made)
    else:
        result = items[root]
        call_function(keep, result)
    {drop}
    return result
'''.replace("count =", "count_of_arguments =")


class NativeReplay:
    """Native replay of one entry.

    call  function of the tuple of arguments: the results, or None
    """

    __slots__ = ("call", "entry", "snapshot", "_words", "_own_rows")

    def __init__(self, entry: Any, snapshot: GuardSnapshot, words: Sequence[int], own_rows: int,
                 kept: tuple):
        """Make the function. It keeps `kept` alive."""
        self.entry, self.snapshot = entry, snapshot
        self._words = np.array(words, np.int64)
        self._own_rows = own_rows
        self.call = function_over(method("replay", _text()), self._words, kept)

    def begin(self, owner: Any) -> bool:
        """Take the attributes of the CompiledFunction as they are now, once `call` is among them.
        """
        try:
            rows = attribute_rows(owner)
        except Uncovered:
            return False
        self._words[self._own_rows : self._own_rows + 2 * len(rows)] = [w for r in rows for w in r]
        return True

    def served(self) -> int:
        """Return how many calls it has served since this was last asked."""
        found = int(self._words[_SERVED])
        self._words[_SERVED] -= found
        self.snapshot.hits += found
        return found


def native_replay(
    entry: Any, count: int, arguments: tuple, inputs: Sequence[Any], bound: Any,
    snapshot: GuardSnapshot
) -> NativeReplay | None:
    """Make the native replay of an entry for calls like this one, which it has just served. None
    where there is something to do that native code does not know."""
    native = getattr(bound.binding, "native", None)
    plain = not (entry.backward or entry.contents or entry.kept or entry.exclusive)
    if bound.direct is None or not entry.simple or not plain:
        return None
    if native is None or not native.simple or not native.plain:
        return None
    frames = bound.binding.frames
    frame = frames[-1] if frames else None
    calls = frame and frame.calls.get(NOTHING)
    places = entry.fast_guards.arguments_of(snapshot)
    if calls is None or places is None:
        return None
    root = entry.root
    if entry.make is not None:
        if entry.row != list(range(len(calls.types))) or type(entry.make([])) is not tuple:
            return None
        root = _TUPLE
    return _made(entry, root, count, arguments, inputs, snapshot, places, frames, frame, calls)


def _made(
    entry: Any, root: int, count: int, arguments: tuple, inputs: Sequence[Any],
    snapshot: GuardSnapshot, places: Sequence[int], frames: list, frame: Any, calls: Any
) -> NativeReplay | None:
    pins: list[Any] = [snapshot, frames, frame, calls]
    modes = [_modes(*_MODES, pins)]
    modes += [_modes(*_AUTOCAST, pins)] if autocast.used.ever else []
    modes += [_modes(*_PLACE, pins)] if devices.asked.ever else []
    tensors = []
    for n in dict.fromkeys(n for n in places if n >= 0):
        found = _tensor(n, arguments[n], pins)
        if found is None:
            return None
        tensors.append(found)
    try:
        rows = _settings()
    except Uncovered:
        return None
    roots = [(snapshot.arguments[k], at) for k, at in snapshot.roots.items()]
    roots += [(n, id(arguments[n])) for n in snapshot.same]
    pins += [arguments[n] for n in snapshot.same]
    native = frame.native
    takes = [part for pair in native.outputs for part in pair]
    pins.append(takes)
    given = [-1 - n if n >= 0 else id(x) for n, x in zip(places, inputs)]
    before = [word for part in (*modes, *roots) for word in part]
    own_rows = len(_WORDS) + len(before)
    before += [id(None) + TYPE, 0] * _OWN_ROWS  # they do not hold until `begin`
    before += [word for row in rows for word in row]
    before += stretches([row for part in snapshot.rows.values() for row in part])
    before += [word for part in tensors for word in part]
    values = {
        "COUNT": count, "FRAMES": id(frames), "FRAME": id(frame), "CALLS": calls.words.ctypes.data,
        "SERVED": 0, "ROOT": root, "LOCALS": len(modes), "ROOTS": len(roots),
        "ROWS": _OWN_ROWS + len(rows), "TENSORS": len(tensors),
        "LARGE": int(calls.again is None), "RELEASES": int(native.call is not native.runner.hold),
        "TAKES": len(_WORDS) + len(before) + 2 * len(given), "SINK": id(LeafSink),
        "VIEW_CLASS": id(View), "FAMILY_CLASS": id(AliasFamily),
        "ONE_DIGIT": word(id(1) + INT_SIZE),
        **dict(zip(_WORDS[-len(_FUNCTIONS):], map(python_api, _FUNCTIONS))),
    }  # fmt: skip
    assert tuple(values) == _WORDS
    words = [*values.values(), *before, *given, *(0 for _ in given), *map(id, takes)]
    return NativeReplay(entry, snapshot, words, own_rows, tuple(pins))


_OWN_ROWS = 2  # of the attributes of the CompiledFunction


def _settings() -> Rows:
    """Return rows that hold as long as no flag or default changes; raise Uncovered if there are
    none."""
    owners = (flags, default_type, autocast.used, devices.asked)
    rows = [row for owner in owners for row in attribute_rows(owner)]
    return rows if everywhere else [*rows, (id(everywhere) + SIZE, 0)]


def _modes(key: str, owner: threading.local, names: Sequence[str], pins: list[Any]) -> list[int]:
    """Return the words that the thread's modes must have, and give this thread the key to them."""
    modes = vars(owner)
    of_thread()[key] = modes
    words = [id(key), 0, len(names)]
    for name in names:
        default, now = getattr(type(owner), name), getattr(owner, name)
        pins += [default, now]
        words += [id(name), id(default), id(now)]
    return words


def of_thread() -> dict:
    """Return the dict in which CPython lets libraries keep what belongs to this thread."""
    find = ctypes.pythonapi.PyThreadState_GetDict
    find.restype, find.argtypes = ctypes.c_void_p, ()  # a borrowed reference
    return ctypes.cast(find(), ctypes.py_object).value


def _tensor(n: int, x: Any, pins: list[Any]) -> list[int] | None:
    """Return the words that argument n must have, or None if it is no plain tensor."""
    plain = isinstance(x, Tensor) and x._hooks is None and x._strides is None
    if not plain or x._storage is None or type(x._shape) is not tuple:
        return None
    if type(x._node) not in (type(None), LeafSink) or counting_family(x) is not None:
        return None
    if type(x._view) is View and x._view.origin is not None:
        return None
    known = [type(x), x._shape, *(getattr(x, name) for name in _SAME)]
    pins += known
    return [n, *map(id, known)]
