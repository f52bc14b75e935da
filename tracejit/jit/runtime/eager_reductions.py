"""Small reductions of eager mode: builtin functions over all elements, or along the last dimension.

In: the name of a reduction. Out: a builtin function of (tensor, dimension or None, keepdim). It
returns a tensor like the one of the general way, or NotImplemented. Called by `eager_calls`.

NumPy's own loops add and compare, called as `ufunc.reduce` calls them, so results are the same
bits. Positions are compared here: they are numbers of places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.eager.tape import OpNode, node_class
from tracejit.core.ops.array_sums import FEW, ROWS
from tracejit.core.ops.cotangents import saved
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.capture.memory_words import SIZE, TUPLE_ITEMS
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime.builtin import function_over, method
from tracejit.jit.runtime.eager_lines import decline, declines_if, failed, indented
from tracejit.jit.runtime.eager_words import (
    COMMON,
    HISTORY,
    MOST_ADDED,
    UNRECORDED,
    at,
    loop_of,
    of,
    room,
    table_of,
)


class _Reduction(NamedTuple):
    """NumPy's function that combines two elements; None: positions of the largest.

    first   the combination starts with the first element, not with the identity
    mean    the result is divided by the number of elements
    """

    ufunc: Any
    first: bool = False
    mean: bool = False


_REDUCTIONS = {
    "sum": _Reduction(np.add), "mean": _Reduction(np.add, mean=True),
    "max": _Reduction(np.maximum, first=True), "amax": _Reduction(np.maximum, first=True),
    "argmax": _Reduction(None),
}  # fmt: skip
_DTYPES = "fdl"
_OWN = ("OP", "NODE", "NEEDED", "RULES", "KEY_DIMS", "KEY_KEEPDIM", "SAVES", "KEEPS",
        *(f"{part}{k}" for k in range(3) for part in ("LOOP", "DATA")),
        *(f"{part}{k}" for k in range(3) for part in ("DIVIDE", "DIVIDE_DATA")))  # fmt: skip
_DIM = f"pointer_at({room('DIMS')})"


def own(name: str) -> str:
    """Return the text that reads one of the function's own words."""
    return f"table[{COMMON + _OWN.index(name)}]"


def _arguments(reduction: _Reduction) -> str:
    """Return lines that read the arguments: dimensions from `first` to `end` are reduced. `across`:
    the first one of a matrix is, where NumPy adds row after row."""
    other = decline()
    if reduction.ufunc is np.add:
        other = f"""\
if first != 0 or rank != 2 or {_DIM}[1] < 2:
{indented(decline())}\
if total > {FEW} and {_DIM}[0] > {ROWS}:
{indented(decline())}\
across = 1
end = 1
"""
    return f"""\
{declines_if("count != 3")}\
{lines.mode()}\
x0 = objects[0]
spread0 = 0
class0 = pointer_at(x0)[1]
if {lines.is_tensor("class0")}:
{indented(lines.tensor("x0", 0))}\
else:
{indented(decline())}\
dtype = type0
shape = shape0
{lines.extent(MOST_ADDED)}\
{declines_if("strides0 != none or rank < 1")}\
rank0 = rank
keepdim = objects[2]
{declines_if("keepdim != true and keepdim != false")}\
first = 0
end = rank
across = 0
asked = objects[1]
if asked != none:
    if pointer_at(asked)[1] == {at("PLAIN_TUPLE")}:
        if {int(reduction.ufunc is not np.add)} == 1 or pointer_at(asked)[{SIZE // 8}] != 1:
{indented(decline(), 12)}\
        asked = pointer_at(asked + {TUPLE_ITEMS})[0]
    if pointer_at(asked)[1] != {at("INT")}:
{indented(decline(), 8)}\
    first = call_function({at("VALUE")}, asked)
    if first == -1:
        if call_function({at("FAILED")}) != 0:
            call_function({at("FORGIVE")})
{indented(decline(), 12)}\
    if first < 0:
        first = first + rank
    if first != rank - 1:
{indented(other, 8)}\
row = 1
for k in range(first, end):
    row = row * {_DIM}[k]
rows = total // row
"""


def _kinds(reduction: _Reduction) -> str:
    chosen = ""
    for k, name in enumerate(("F32", "F64", "I64")):
        chosen += f"""\
if dtype == {at(name)}:
    loop = {own(f"LOOP{k}")}
    context = {own(f"DATA{k}")}
    divide = {own(f"DIVIDE{k}")}
    divide_context = {own(f"DIVIDE_DATA{k}")}
    typenum = {[np.dtype(d).num for d in (np.float32, np.float64, np.int64)][k]}
"""
    unknown = "loop == 0" if reduction.ufunc is not None else "typenum == 0"
    result = ""
    if reduction.ufunc is None:
        result = f"result_type = {at('I64')}\ntypenum = {np.dtype(np.int64).num}\nresult_size = 8\n"
    return f"""\
loop = 0
context = 0
divide = 0
divide_context = 0
typenum = 0
{chosen}\
{declines_if(unknown)}\
itemsize = 8
if dtype == {at("F32")}:
    itemsize = 4
result_type = dtype
result_size = itemsize
{result}\
wants = 0
if state >= {HISTORY} and {own("RULES")} != 0 and {of("x0", "_requires_grad")} != false:
    wants = 1
{declines_if(f"wants == 1 and state == {UNRECORDED}")}"""


_SHAPED = f"""\
rank = first
if across == 1:
    rank = 1
if keepdim == true:
    rank = rank0
    for k in range(first, end):
        {_DIM}[k] = 1
else:
    if across == 1:
        {_DIM}[0] = {_DIM}[1]
shape = call_function({at("TUPLE")}, rank)
{failed("shape")}\
for k in range(rank):
    number = call_function({at("LONG")}, {_DIM}[k])
{indented(failed("number", "shape"))}\
    pointer_at(shape + {TUPLE_ITEMS})[k] = number
total = rows
"""


def _history() -> str:
    drops = "result shape"
    values = {"edges": "edges", "operands": "operands", "outputs": "outputs", "extras": "none",
              "op": own("OP"), "attributes": "attributes", "needed": own("NEEDED"),
              "keeps": own("KEEPS"), "symbolic": "false"}  # fmt: skip
    return f"""\
dims = call_function({at("TUPLE")}, end - first)
{failed("dims", drops)}\
for k in range(first, end):
    number = call_function({at("LONG")}, k)
{indented(failed("number", f"dims {drops}"))}\
    pointer_at(dims + {TUPLE_ITEMS})[k - first] = number
attributes = call_function({at("DICT")})
{failed("attributes", f"dims {drops}")}\
call_function({at("SET_ITEM")}, attributes, {own("KEY_DIMS")}, dims)
call_function({at("SET_ITEM")}, attributes, {own("KEY_KEEPDIM")}, keepdim)
call_function(drop, dims)
{lines.edge("x0", 0, f"attributes {drops}")}\
{lines.packed("edges", "edge", 1, f"edge0 attributes {drops}")}\
if {own("SAVES")} != 0:
{indented(lines.saved_operand("operand0", "x0", "storage0", f"edges attributes {drops}"))}\
else:
{indented(lines.known_type("operand0", 0, "shape0", "dtype", f"edges attributes {drops}"))}\
{lines.packed("operands", "operand", 1, f"operand0 edges attributes {drops}")}\
{lines.new_node(own("NODE"), f"operands edges attributes {drops}")}\
if {own("SAVES")} != 0:
{indented(lines.saved_output("kept0", f"node operands edges attributes {drops}", "dtype"))}\
else:
{indented(lines.known_type("kept0", 1, "shape", "dtype", f"node operands edges {drops}"))}\
{lines.packed("outputs", "kept", 1, f"kept0 node operands edges attributes {drops}")}\
{lines.filled("node", OpNode, values, ("edges", "operands", "outputs"))}\
call_function(drop, attributes)
{of("result", "_node")} = node
{of("result", "_requires_grad")} = true
call_function(drop, none)
call_function(drop, false)
call_function(keep, true)
"""


def _reduced(reduction: _Reduction) -> str:
    """Return lines that run NumPy's loop for each row."""
    begin = """\
    if itemsize == 4:
        float32_scratch(pointer_at(place), 0)[0] = 0.0
    else:
        pointer_at(place)[0] = 0
    many = row
"""
    if reduction.first:
        begin = """\
    if itemsize == 4:
        float32_scratch(pointer_at(place), 0)[0] = float32_scratch(pointer_at(given), 0)[0]
    else:
        pointer_at(place)[0] = pointer_at(given)[0]
    given = given + itemsize
    many = row - 1
"""
    by_row = f"""\
for k in range(rows):
    place = data + k * itemsize
    given = address0 + k * row * itemsize
{begin}\
    pointer_at({room("ARGS", 0)})[0] = place
    pointer_at({room("ARGS", 1)})[0] = given
    pointer_at({room("ARGS", 2)})[0] = place
    pointer_at({room("STEPS", 0)})[0] = 0
    pointer_at({room("STEPS", 1)})[0] = itemsize
    pointer_at({room("STEPS", 2)})[0] = 0
    pointer_at({room("COUNT")})[0] = many
    if many > 0:
        call_function(loop, {room("ARGS")}, {room("COUNT")}, {room("STEPS")}, context)
"""
    text = by_row
    if reduction.ufunc is np.add:
        text = f"""\
if across == 1:
    for k in range(rows):
        if itemsize == 4:
            float32_scratch(pointer_at(data), 0)[k] = 0.0
        else:
            pointer_at(data)[k] = 0
    pointer_at({room("COUNT")})[0] = rows
    for k in range(3):
        pointer_at({room("STEPS")})[k] = itemsize
    for k in range(row):
        pointer_at({room("ARGS", 0)})[0] = data
        pointer_at({room("ARGS", 1)})[0] = address0 + k * rows * itemsize
        pointer_at({room("ARGS", 2)})[0] = data
        call_function(loop, {room("ARGS")}, {room("COUNT")}, {room("STEPS")}, context)
else:
{indented(by_row)}"""
    if reduction.mean:
        text += f"""\
if itemsize == 4:
    float32_scratch(pointer_at({room("NUMBERS")}), 0)[0] = row
else:
    float64_scratch(pointer_at({room("NUMBERS")}), 0)[0] = row
pointer_at({room("ARGS", 0)})[0] = data
pointer_at({room("ARGS", 1)})[0] = {room("NUMBERS")}
pointer_at({room("ARGS", 2)})[0] = data
pointer_at({room("STEPS", 0)})[0] = itemsize
pointer_at({room("STEPS", 1)})[0] = 0
pointer_at({room("STEPS", 2)})[0] = itemsize
pointer_at({room("COUNT")})[0] = rows
call_function(divide, {room("ARGS")}, {room("COUNT")}, {room("STEPS")}, divide_context)
"""
    return text


def _position(pointer: str) -> str:
    return f"""\
    for k in range(rows):
        given = address0 + k * row * itemsize
        best = 0
        for j in range(1, row):
            element = {pointer}[j]
            top = {pointer}[best]
            if element > top or (element != element and top == top):
                best = j
        pointer_at(data)[k] = best
"""


def _positions() -> str:
    """Return lines that find the place of the first largest element, or NaN, of each row."""
    floats = _position("float32_scratch(pointer_at(given), 0)")
    doubles = _position("float64_scratch(pointer_at(given), 0)")
    integers = _position("pointer_at(given)")
    for name, text in (("double", doubles), ("whole", integers)):
        text = text.replace("element", f"{name}_element").replace("top", f"{name}_top")
        if name == "double":
            doubles = text
        else:
            integers = text
    return f"""\
if itemsize == 4:
{floats}\
else:
    if dtype == {at("F64")}:
{indented(doubles)}\
    else:
{indented(integers)}"""


@functools.cache
def _text(name: str) -> str:
    reduction = _REDUCTIONS[name]
    body = _arguments(reduction) + _kinds(reduction) + _SHAPED
    body += lines.made("typenum", "result_size", "result_type")
    body += f"node = 0\nif wants == 1:\n{indented(_history())}"
    body += "call_function(drop, shape)\n"
    body += lines.same_as_before("x0", 0, "result") + lines.address("x0", 0, "itemsize", "result")
    body += _positions() if reduction.ufunc is None else _reduced(reduction)
    return lines.beginning(f"reduction_{name}") + indented(body + "return result\n")


def direct(function: Direct) -> Callable[..., Any]:
    """Make the function for a reduction in `_REDUCTIONS`."""
    op, reduction = REGISTRY[function.name], _REDUCTIONS[function.name]
    node, needed = node_class(op), (0,)
    plan = saved(op, needed, 1)
    words = [id(op), id(node), id(needed), int(op.differentiable(0)), id("dims"), id("keepdim"),
             int(bool(plan.operands)), id(bool(plan.operands or plan.outputs))]  # fmt: skip
    assert bool(plan.operands) == bool(plan.outputs)
    for ufunc in (reduction.ufunc, np.true_divide):
        for kind in _DTYPES:
            integers_of_mean = reduction.mean and kind == "l"
            found = (0, 0)
            if ufunc is not None and not integers_of_mean:
                found = loop_of(ufunc, f"{kind}{kind}->{kind}")
            words += found
    assert len(words) == len(_OWN)
    table = table_of(words, (op, node, needed))
    return function_over(method(f"reduction_{function.name}", _text(function.name)), table)
