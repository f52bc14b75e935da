"""Small elementwise ops of eager mode: one builtin function each, which calls NumPy's own loop.

In: the record of an op. Out: a function of its operands. It returns a tensor like the one of the
general way, with the same history, or NotImplemented where the general way has to run. Called by
`core.ops.direct_calls` once an op was called a few times.

The loops are those that NumPy itself calls for contiguous arrays, so elements are the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.eager.tape import OpNode, differentiable_positions, node_class
from tracejit.core.ops.cotangents import saved
from tracejit.core.ops.record import Op
from tracejit.jit.capture.memory_words import SIZE, TUPLE_ITEMS
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime.builtin import DATA, function_over, method, python_api
from tracejit.jit.runtime.eager_lines import declines_if, failed, indented
from tracejit.jit.runtime.eager_words import (
    COMMON,
    HISTORY,
    MOST_DIMENSIONS,
    MOST_ELEMENTS,
    UNRECORDED,
    at,
    loop_of,
    of,
    room,
    table_of,
)


class Loop(NamedTuple):
    """NumPy's function behind an op.

    constant  0 is its first argument, as in `maximum(0, x)`
    dtypes    characters of the dtypes that it takes
    """

    ufunc: Any
    constant: bool = False
    dtypes: str = "fdl"
    result: str = ""


LOOPS: dict[str, Loop] = {
    "add": Loop(np.add), "sub": Loop(np.subtract), "mul": Loop(np.multiply),
    "div": Loop(np.true_divide, dtypes="fd"), "neg": Loop(np.negative),
    "relu": Loop(np.maximum, constant=True), "abs": Loop(np.absolute),
    "square": Loop(np.square),
    **{name: Loop(getattr(np, name), dtypes="fd")
       for name in "exp expm1 log log1p log2 sqrt tanh sin cos".split()},
    **{name: Loop(ufunc, result="?") for name, ufunc in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
        ("gt", np.greater), ("ge", np.greater_equal))},
}  # fmt: skip
_DTYPES = "fdl"
_OWN = ("OP", "NODE", "ATTRIBUTES", "RULES", "FLOAT_OF", "BOOLS",
        *(f"{part}{k}" for k in range(3) for part in ("LOOP", "DATA")),
        *(f"{part}{k}" for part in ("NEEDED", "OPERANDS", "OUTPUTS", "KEEPS") for k in range(3)),
        )  # fmt: skip


def own(name: str) -> str:
    """Return the text that reads one of the op's own words."""
    return f"table[{COMMON + _OWN.index(name)}]"


def _chosen(name: str) -> str:
    """Return the text that reads one of three own words, by the operands that get gradients."""
    return f"pointer_at(base + 8 * wants)[{COMMON + _OWN.index(f'{name}0') - 1}]"


def operand(k: int, numbers: bool) -> str:
    known = f"""\
    kind{k} = 2
else:
    if pointer_at(x{k})[1] != {at("INT")}:
{indented(lines.decline(), 8)}\
    kind{k} = 3
    number{k} = call_function({at("VALUE")}, x{k})
    if number{k} == -1:
        if call_function({at("FAILED")}) != 0:
            call_function({at("FORGIVE")})
{indented(lines.decline(), 12)}"""
    other = f"if pointer_at(x{k})[1] == {at('FLOAT')}:\n{known}" if numbers else lines.decline()
    return f"""\
x{k} = objects[{k}]
kind{k} = 0
number{k} = 0
spread{k} = 0
shape{k} = empty
strides{k} = none
type{k} = none
storage{k} = none
class{k} = pointer_at(x{k})[1]
if {lines.is_tensor(f"class{k}")}:
    kind{k} = 1
{indented(lines.tensor(f"x{k}", k))}\
else:
{indented(other)}"""


def _joined() -> str:
    """Return lines that find the dtype and the shape of two operands. A comparison takes no number
    first."""
    return f"""\
dtype = type0
shape = shape0
broadcast = 0
whole0 = 0
whole1 = 0
if kind0 != 1:
    if kind1 != 1 or {own("BOOLS")} != 0:
{indented(lines.decline(), 8)}\
    dtype = type1
    shape = shape1
if kind0 == 1 and kind1 == 1:
    if type0 != type1:
{indented(lines.decline(), 8)}\
    if shape0 != shape1:
        if shape0 == empty:
            shape = shape1
        else:
            if shape1 != empty:
                if call_function({at("EQUAL")}, shape0, shape1, 2) & 4294967295 != 1:
                    broadcast = 1
"""


def _broadcast() -> str:
    """Return lines that find the sizes of the result of two operands of different shapes, and the
    steps in their elements; 0 where a size is repeated."""
    sizes = ""
    for k in (0, 1):
        item = f"pointer_at(shape{k} + {TUPLE_ITEMS})[rank{k} - 1 - j]"
        sizes += f"""\
    size{k} = 1
    if j < rank{k}:
        size{k} = call_function({at("VALUE")}, {item})
"""
    steps = ""
    for k, name in ((0, "STRIDES"), (1, "NEW_STRIDES")):
        steps += f"""\
    pointer_at({room(name)})[rank - 1 - j] = 0
    if size{k} != 1:
        pointer_at({room(name)})[rank - 1 - j] = whole{k}
        whole{k} = whole{k} * size{k}
"""
    return f"""\
rank0 = pointer_at(shape0)[{SIZE // 8}]
rank1 = pointer_at(shape1)[{SIZE // 8}]
rank = rank0
if rank1 > rank:
    rank = rank1
{declines_if(f"rank > {MOST_DIMENSIONS} or spread0 == 1 or spread1 == 1")}\
total = 1
whole0 = 1
whole1 = 1
for j in range(rank):
{sizes}\
    if size0 != size1 and size0 != 1 and size1 != 1:
{indented(lines.decline(), 8)}\
{steps}\
    if size1 != 1:
        size0 = size1
    pointer_at({room("DIMS")})[rank - 1 - j] = size0
    total = total * size0
    if size0 < 1 or total > {MOST_ELEMENTS}:
{indented(lines.decline(), 8)}"""


_NEW_SHAPE = f"""\
if broadcast == 1:
    shape = call_function({at("TUPLE")}, rank)
{indented(failed("shape"))}\
    for k in range(rank):
        number = call_function({at("LONG")}, pointer_at({room("DIMS")})[k])
{indented(failed("number", "shape"), 8)}\
        pointer_at(shape + {TUPLE_ITEMS})[k] = number
"""


def _room_to_repeat(k: int) -> str:
    """Return lines that make room for an operand with its repeated elements: NumPy, too, runs its
    loop over such a copy."""
    given = f"{at('NDARRAY')}, rank, {room('DIMS')}, given_type, 0, 0, 0, 0, 0"
    return f"""\
whole_array{k} = 0
if broadcast == 1 and whole{k} != total:
    whole_array{k} = call_function({at("NEW_ARRAY")}, {given})
{indented(failed(f"whole_array{k}", "result"))}"""


def _repeated(k: int) -> str:
    steps = f"pointer_at({room(('STRIDES', 'NEW_STRIDES')[k])})"
    copying = "".join(f"""\
        {"if itemsize == 4" if size == 4 else "else"}:
            for j in range(length):
                {kind}(pointer_at(filled{k}), 0)[row * length + j] = {kind}(
                    pointer_at(address{k}), 0)[skipped + j * {steps}[rank - 1]]
""" for size, kind in ((4, "float32_scratch"), (8, "float64_scratch")))
    return f"""\
if whole_array{k} != 0:
    filled{k} = pointer_at(whole_array{k})[{DATA}]
    length = pointer_at({room("DIMS")})[rank - 1]
    for row in range(total // length):
        rest = row
        skipped = 0
        for j in range(1, rank):
            extent = pointer_at({room("DIMS")})[rank - 1 - j]
            skipped = skipped + rest % extent * {steps}[rank - 1 - j]
            rest = rest // extent
{copying}\
    address{k} = filled{k}
"""


def _kinds(count: int) -> str:
    """Return lines that choose the loop by the dtype."""
    floats = "".join(declines_if(f"dtype == {at('I64')} and kind{k} == 2") for k in range(count))
    return f"""\
loop = 0
context = 0
typenum = {np.dtype(np.float32).num}
itemsize = 4
if dtype == {at("F32")}:
    loop = {own("LOOP0")}
    context = {own("DATA0")}
else:
    itemsize = 8
    if dtype == {at("F64")}:
        typenum = {np.dtype(np.float64).num}
        loop = {own("LOOP1")}
        context = {own("DATA1")}
    else:
        if dtype == {at("I64")}:
            typenum = {np.dtype(np.int64).num}
            loop = {own("LOOP2")}
            context = {own("DATA2")}
{declines_if("loop == 0")}\
{floats}\
result_type = dtype
result_size = itemsize
given_type = typenum
if {own("BOOLS")} != 0:
    result_type = {at("BOOL")}
    typenum = {np.dtype(np.bool_).num}
    result_size = 1
"""


def _wanted(count: int) -> str:
    asked = "".join(f"""\
    if kind{k} == 1 and ({own("RULES")} >> {k}) & 1 == 1:
        if {of(f"x{k}", "_requires_grad")} != false:
            wants = wants + {1 << k}
""" for k in range(count))
    return f"""\
wants = 0
if state >= {HISTORY}:
{asked}\
    if wants != 0 and state == {UNRECORDED}:
{indented(lines.decline(), 8)}"""


def _history(count: int) -> str:
    """Return lines that put the op on the tape."""
    text, drops = "", "result"
    for k in range(count):
        text += lines.edge(f"x{k}", k, drops)
        drops = f"edge{k} {drops}"
    text, drops = text + lines.packed("edges", "edge", count, drops), "edges result"
    for k in range(count):
        kept = lines.saved_operand(f"operand{k}", f"x{k}", f"storage{k}", drops)
        typed = lines.known_type(f"operand{k}", k, f"shape{k}", "dtype", drops)
        text += f"""\
operand{k} = 0
if kind{k} == 1:
    if ({_chosen("OPERANDS")} >> {k}) & 1 == 1:
{indented(kept, 8)}\
    else:
{indented(typed, 8)}\
else:
    if dtype == {at("I64")} or kind{k} == 2:
        operand{k} = x{k}
        call_function(keep, x{k})
    else:
        operand{k} = call_function({own("FLOAT_OF")}, x{k})
{indented(failed(f"operand{k}", drops), 8)}"""
        drops = f"operand{k} {drops}"
    text += lines.packed("operands", "operand", count, drops)
    text += lines.new_node(own("NODE"), "operands edges result")
    drops = "node operands edges result"
    text += f"""\
if {_chosen("OUTPUTS")} != 0:
{indented(lines.saved_output("kept0", drops, "dtype"))}\
else:
{indented(lines.known_type("kept0", 2, "shape", "dtype", drops))}\
{lines.packed("outputs", "kept", 1, f"kept0 {drops}")}"""
    values = {"edges": "edges", "operands": "operands", "outputs": "outputs", "extras": "none",
              "op": own("OP"), "attributes": own("ATTRIBUTES"), "needed": _chosen("NEEDED"),
              "keeps": _chosen("KEEPS"), "symbolic": "false"}  # fmt: skip
    return text + f"""\
{lines.filled("node", OpNode, values, ("edges", "operands", "outputs"))}\
{of("result", "_node")} = node
{of("result", "_requires_grad")} = true
call_function(drop, none)
call_function(drop, false)
call_function(keep, true)
"""


def number(k: int) -> str:
    """Return lines that write a number to the table, in the dtype."""
    cell = room("NUMBERS", k)
    return f"""\
if kind{k} != 1:
    address{k} = {cell}
    if dtype == {at("I64")}:
        pointer_at({cell})[0] = number{k}
    else:
        if kind{k} == 2:
            float64_scratch(pointer_at({cell}), 0)[0] = float64_scratch(pointer_at(x{k}), 2)[0]
        else:
            float64_scratch(pointer_at({cell}), 0)[0] = number{k}
        if dtype == {at("F32")}:
            float32_scratch(pointer_at({cell}), 0)[0] = float64_scratch(pointer_at({cell}), 0)[0]
"""


def _computed(count: int, constant: bool) -> str:
    text = ""
    for k in range(count):
        found = lines.address(f"x{k}", k, "itemsize", "result")
        text += f"""\
address{k} = 0
if kind{k} == 1:
{indented(lines.same_as_before(f"x{k}", k, "result"))}\
{indented(found)}\
{number(k)}\
step{k} = 0
if shape{k} == shape or total == 1:
    step{k} = itemsize
if kind{k} == 1 and shape{k} != empty:
    step{k} = itemsize
{_repeated(k) if count == 2 else ""}\
if spread{k} == 1:
    step{k} = 0
"""
    arguments = [(f"address{k}", f"step{k}") for k in range(count)]
    if constant:
        text += f"pointer_at({room('NUMBERS')})[0] = 0\n"
        arguments.insert(0, (room("NUMBERS"), "0"))
    arguments.append(("data", "result_size"))
    for k, (address, step) in enumerate(arguments):
        text += f"pointer_at({room('ARGS', k)})[0] = {address}\n"
        text += f"pointer_at({room('STEPS', k)})[0] = {step}\n"
    return text + f"""\
pointer_at({room("COUNT")})[0] = total
call_function(loop, {room("ARGS")}, {room("COUNT")}, {room("STEPS")}, context)
"""


@functools.cache
def _text(name: str, count: int, constant: bool) -> str:
    body = declines_if(f"count != {count}") + lines.mode()
    for k in range(count):
        body += operand(k, count > 1)
    body += _joined() if count == 2 else "dtype = type0\nshape = shape0\n"
    extent = lines.extent()
    if count == 2:
        extent = (f"if broadcast == 0:\n{indented(extent)}else:\n{indented(_broadcast())}"
                  f"{_NEW_SHAPE}")
    body += _kinds(count) + _wanted(count) + extent
    body += lines.made("typenum", "result_size", "result_type")
    body += f"node = 0\nif wants != 0:\n{indented(_history(count))}"
    if count == 2:
        body += "if broadcast == 1:\n    call_function(drop, shape)\n"
        body += _room_to_repeat(0) + _room_to_repeat(1)
    body += _computed(count, constant)
    if count == 2:
        for k in range(2):
            body += f"if whole_array{k} != 0:\n    call_function(drop, whole_array{k})\n"
    body += "return result\n"
    return lines.beginning(name) + indented(body)


def direct(op: Op) -> Callable[..., Any]:
    """Make the function of an op in `LOOPS`."""
    loop, count = LOOPS[op.name], len(op.operands)
    name = f"elementwise_{count}{'c' if loop.constant else ''}"
    rules = differentiable_positions(op, count)
    node = node_class(op)
    attributes: dict[str, Any] = {}
    wanted = [tuple(k for k in range(count) if bits >> k & 1) for bits in (1, 2, 3)]
    plans = [saved(op, tuple(k for k in needed if k in rules), count) for needed in wanted]
    keeps = [bool(plan.operands or plan.outputs) for plan in plans]
    words = [id(op), id(node), id(attributes), sum(1 << k for k in rules),
             python_api("PyNumber_Float"), int(loop.result == "?")]
    for kind in _DTYPES:
        arguments = kind * (loop.ufunc.nin)
        found = (0, 0)
        if kind in loop.dtypes:
            found = loop_of(loop.ufunc, f"{arguments}->{loop.result or kind}")
        words += found
    words += map(id, wanted)
    words += [sum(1 << k for k in plan.operands) for plan in plans]
    words += [len(plan.outputs) for plan in plans]
    words += map(id, keeps)
    assert len(words) == len(_OWN)
    table = table_of(words, (op, node, attributes, wanted))
    return function_over(method(name, _text(name, count, loop.constant)), table)

