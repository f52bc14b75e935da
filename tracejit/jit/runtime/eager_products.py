"""Small products of matrices in eager mode: builtin functions that call NumPy's own loop.

In: `matmul` or `linear`. Out: a builtin function of two matrices, and a bias. It returns a tensor
like the one of the general way, or NotImplemented. Called by `eager_calls`.

As the general way does, it multiplies row-major matrices: others are copied first, and the second
one where both share memory. `matmul` hands vectors on to `eager_vector_calls`; those of `linear` go
the general way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.eager.tape import OpNode, node_class
from tracejit.core.ops.array_sums import PART
from tracejit.core.ops.cotangents import saved
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.capture.memory_words import SIZE, TUPLE_ITEMS
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime import eager_vector_calls
from tracejit.jit.runtime.builtin import DATA, function_over, method
from tracejit.jit.runtime.eager_lines import decline, declines_if, failed, indented
from tracejit.jit.runtime.eager_words import (
    COMMON,
    HISTORY,
    MOST_ELEMENTS,
    UNRECORDED,
    at,
    loop_of,
    of,
    room,
    table_of,
)

_MOST = 1 << 19  # multiplications of a product: at most as many as are made of row-major copies
_SETS = 7  # sets of operands that get gradients
_OWN = ("OP", "NODE", "ATTRIBUTES", "VECTORS", "VECTOR_TABLE",
        *(f"{part}{k}" for k in range(2) for part in ("LOOP", "DATA")),
        *(f"{part}{k}" for k in range(2) for part in ("ADD", "ADD_DATA")),
        *(f"{part}{k}" for part in ("NEEDED", "OPERANDS", "KEEPS") for k in range(_SETS)),
        )  # fmt: skip
_DIM = f"pointer_at({room('DIMS')})"


def own(name: str) -> str:
    """Return the text that reads one of the function's own words."""
    return f"table[{COMMON + _OWN.index(name)}]"


def _chosen(name: str) -> str:
    """Return the text that reads an own word, by the operands that get gradients."""
    return f"pointer_at(base + 8 * wants)[{COMMON + _OWN.index(f'{name}0') - 1}]"


def _size(name: str, source: str) -> str:
    return f"""\
size = {source}
{declines_if(f"pointer_at(size)[1] != {at('INT')}")}\
{name} = call_function({at("VALUE")}, size)
{declines_if(f"{name} < 1")}"""


def _hand_on() -> str:
    """Return lines that leave operands to the function of products with a vector."""
    return f"return call_function({own('VECTORS')}, {own('VECTOR_TABLE')}, arguments, count)\n"


def _matrix(k: int, otherwise: str) -> str:
    """Return lines that read a matrix of any layout; others run the lines `otherwise`."""
    items = f"pointer_at(shape{k} + {TUPLE_ITEMS})"
    strides = f"pointer_at(strides{k} + {TUPLE_ITEMS})"
    x = f"x{k}"
    return f"""\
{x} = objects[{k}]
class{k} = pointer_at({x})[1]
storage{k} = none
if {lines.is_tensor(f"class{k}")}:
    storage{k} = {of(x, "_storage")}
else:
{indented(decline())}\
{declines_if(f"{of(x, '_device')} != {at('CPU')} or storage{k} == none")}\
shape{k} = {of(x, "_shape")}
strides{k} = {of(x, "_strides")}
type{k} = {of(x, "_dtype")}
{lines.plain_view(x)}\
if pointer_at(shape{k})[{SIZE // 8}] != 2:
{indented(otherwise)}\
{_size(f"rows{k}", f"{items}[0]")}\
{_size(f"columns{k}", f"{items}[1]")}\
down{k} = columns{k}
right{k} = 1
if strides{k} != none:
    down{k} = call_function({at("VALUE")}, {strides}[0])
    right{k} = call_function({at("VALUE")}, {strides}[1])
"""


_BIAS = f"""\
bias = 0
x2 = objects[2]
storage2 = none
shape2 = empty
strides2 = none
type2 = type0
spread2 = 0
if x2 != none:
    bias = 1
    class2 = pointer_at(x2)[1]
    if {lines.is_tensor("class2")}:
{indented(lines.tensor("x2", 2), 8)}\
    else:
{indented(decline(), 8)}\
    if strides2 != none or type2 != type0 or pointer_at(shape2)[{SIZE // 8}] != 1:
{indented(decline(), 8)}\
{indented(_size("length", f"pointer_at(shape2 + {TUPLE_ITEMS})[0]"))}\
    if length != columns:
{indented(decline(), 8)}\
"""


def _joined(linear: bool) -> str:
    """Return lines that find the sizes: `rows` times `inner` by `inner` times `columns`."""
    turned = "columns = columns1\ninner1 = rows1\n"
    if linear:  # the second matrix is turned
        turned = ("columns = rows1\ninner1 = columns1\nstep = down1\ndown1 = right1\n"
                  "right1 = step\n")  # fmt: skip
    kinds = ""
    for k, (name, number) in enumerate((("F32", np.float32), ("F64", np.float64))):
        kinds += f"""\
if dtype == {at(name)}:
    loop = {own(f"LOOP{k}")}
    context = {own(f"DATA{k}")}
    add = {own(f"ADD{k}")}
    add_context = {own(f"ADD_DATA{k}")}
    typenum = {np.dtype(number).num}
    itemsize = {np.dtype(number).itemsize}
"""
    return f"""\
{turned}\
rows = rows0
inner = columns0
dtype = type0
{declines_if("inner1 != inner or type1 != dtype")}\
if rows < 2 or columns < 2:
{indented(decline() if linear else _hand_on())}\
{declines_if(f"rows > {MOST_ELEMENTS} or columns > {MOST_ELEMENTS} or inner > {PART}")}\
{declines_if(f"rows * columns > {MOST_ELEMENTS} or rows * columns * inner > {_MOST}")}\
loop = 0
context = 0
add = 0
add_context = 0
typenum = 0
itemsize = 0
{kinds}\
{declines_if("loop == 0")}"""


def _wanted(count: int) -> str:
    asked = "".join(f"""\
    if {"bias == 1 and " if k == 2 else ""}{of(f"x{k}", "_requires_grad")} != false:
        wants = wants + {1 << k}
""" for k in range(count))
    return f"""\
wants = 0
if state >= {HISTORY}:
{asked}\
{declines_if(f"wants != 0 and state == {UNRECORDED}")}"""


_SHAPED = f"""\
{_DIM}[0] = rows
{_DIM}[1] = columns
rank = 2
total = rows * columns
shape = call_function({at("TUPLE")}, 2)
{failed("shape")}\
for k in range(2):
    number = call_function({at("LONG")}, {_DIM}[k])
{indented(failed("number", "shape"))}\
    pointer_at(shape + {TUPLE_ITEMS})[k] = number
"""


def _history(count: int) -> str:
    text, drops = "", "result shape"
    for k in range(count):
        text += lines.edge(f"x{k}", k, drops)
        drops = f"edge{k} {drops}"
    text, drops = text + lines.packed("edges", "edge", count, drops), "edges result shape"
    for k in range(count):
        kept = lines.saved_operand(f"operand{k}", f"x{k}", f"storage{k}", drops)
        typed = lines.known_type(f"operand{k}", k, f"shape{k}", "dtype", drops)
        choice = f"""\
operand{k} = 0
if ({_chosen("OPERANDS")} >> {k}) & 1 == 1:
{indented(kept)}\
else:
{indented(typed)}"""
        if k == 2:
            choice = f"""\
operand2 = none
if bias == 1:
{indented(choice)}\
else:
    call_function(keep, none)
"""
        text += choice
        drops = f"operand{k} {drops}"
    values = {"edges": "edges", "operands": "operands", "outputs": "outputs", "extras": "none",
              "op": own("OP"), "attributes": own("ATTRIBUTES"), "needed": _chosen("NEEDED"),
              "keeps": _chosen("KEEPS"), "symbolic": "false"}  # fmt: skip
    drops = "operands edges result shape"
    return f"""\
{text}\
{lines.packed("operands", "operand", count, f"operand0 operand1 {drops[9:]}")}\
kept0 = call_function(new, {at("UNSAVED")}, empty, 0)
{failed("kept0", drops)}\
{lines.filled("kept0", lines.Unsaved, {"shape": "shape", "dtype": "dtype", "device": at("CPU")})}\
{lines.packed("outputs", "kept", 1, f"kept0 {drops}")}\
{lines.new_node(own("NODE"), f"outputs {drops}")}\
{lines.filled("node", OpNode, values, ("edges", "operands", "outputs"))}\
{of("result", "_node")} = node
{of("result", "_requires_grad")} = true
call_function(drop, none)
call_function(drop, false)
call_function(keep, true)
"""


def _copied(k: int, height: str, width: str, shared: str) -> str:
    """Return lines that make room for a copy of a matrix that is not row-major."""
    given = f"{at('NDARRAY')}, 2, {room('DIMS')}, typenum, 0, 0, 0, 0, 0"
    return f"""\
copy{k} = 0
if right{k} != 1 or down{k} != {width}{shared}:
    {_DIM}[0] = {height}
    {_DIM}[1] = {width}
    copy{k} = call_function({at("NEW_ARRAY")}, {given})
{indented(failed(f"copy{k}", "result"))}"""


def _laid_out(k: int, height: str, width: str) -> str:
    copying = "".join(f"""\
{"if itemsize == 4" if size == 4 else "else"}:
    for i in range({height}):
        for j in range({width}):
            {kind}(pointer_at(target{k}), 0)[i * {width} + j] = {kind}(
                pointer_at(address{k}), 0)[i * down{k} + j * right{k}]
""" for size, kind in ((4, "float32_scratch"), (8, "float64_scratch")))
    return f"""\
if copy{k} != 0:
    target{k} = pointer_at(copy{k})[{DATA}]
{indented(copying)}\
    address{k} = target{k}
"""


def _multiplied(linear: bool) -> str:
    words = {"ARGS": ("address0", "address1", "data"),
             "NEW_DIMS": ("1", "rows", "inner", "columns"),
             "NEW_STRIDES": ("0", "0", "0", "inner * itemsize", "itemsize", "columns * itemsize",
                             "itemsize", "columns * itemsize", "itemsize")}  # fmt: skip
    text = "".join(f"pointer_at({room(name, 0)})[{k}] = {value}\n"
                   for name, values in words.items() for k, value in enumerate(values))
    text += (f"call_function(loop, {room('ARGS')}, {room('NEW_DIMS')}, {room('NEW_STRIDES')}, "
             "context)\n")  # fmt: skip
    if not linear:
        return text
    repeated = "".join(f"""\
{"if itemsize == 4" if size == 4 else "else"}:
    for i in range(rows):
        for j in range(columns):
            {kind}(pointer_at(spread), 0)[i * columns + j] = {kind}(pointer_at(address2), 0)[j]
""" for size, kind in ((4, "float32_scratch"), (8, "float64_scratch")))
    return text + f"""\
if bias == 1:
    spread = pointer_at(wide)[{DATA}]
{indented(repeated)}\
    pointer_at({room("COUNT")})[0] = total
    for k in range(3):
        pointer_at({room("STEPS")})[k] = itemsize
    pointer_at({room("ARGS", 0)})[0] = data
    pointer_at({room("ARGS", 1)})[0] = spread
    pointer_at({room("ARGS", 2)})[0] = data
    call_function(add, {room("ARGS")}, {room("COUNT")}, {room("STEPS")}, add_context)
    call_function(drop, wide)
"""


@functools.cache
def _text(name: str) -> str:
    linear = name == "linear"
    count = 3 if linear else 2
    drops = "result"
    otherwise = decline() if linear else _hand_on()
    body = declines_if(f"count != {count}") + lines.mode()
    body += _matrix(0, otherwise) + _matrix(1, otherwise)
    body += _joined(linear) + (_BIAS if linear else "") + _wanted(count) + _SHAPED
    body += lines.made("typenum", "itemsize", "dtype")
    body += f"node = 0\nif wants != 0:\n{indented(_history(count))}call_function(drop, shape)\n"
    body += _copied(0, "rows", "inner", "")
    body += _copied(1, "inner", "columns", " or storage0 == storage1")
    for k in range(2):
        body += lines.same_as_before(f"x{k}", k, drops)
        body += lines.address(f"x{k}", k, "itemsize", drops)
    if linear:  # NumPy, too, adds all elements in one loop, beside a bias that it repeats
        given = f"{at('NDARRAY')}, 2, {room('DIMS')}, typenum, 0, 0, 0, 0, 0"
        body += f"""\
wide = 0
if bias == 1:
    {_DIM}[0] = rows
    {_DIM}[1] = columns
    wide = call_function({at("NEW_ARRAY")}, {given})
{indented(failed("wide", "result"))}"""
        found = lines.same_as_before("x2", 2, drops) + lines.address("x2", 2, "itemsize", drops)
        body += f"address2 = 0\nif bias == 1:\n{indented(found)}"
    body += _laid_out(0, "rows", "inner") + _laid_out(1, "inner", "columns") + _multiplied(linear)
    for k in range(2):
        body += f"if copy{k} != 0:\n    call_function(drop, copy{k})\n"
    return lines.beginning(f"product_{name}") + indented(body + "return result\n")


def direct(function: Direct) -> Callable[..., Any]:
    """Make the function of `matmul` or `linear`."""
    op = REGISTRY[function.name]
    count = len(op.operands)
    node = node_class(op)
    attributes: dict[str, Any] = {}
    wanted = [tuple(k for k in range(count) if bits >> k & 1) for bits in range(1, _SETS + 1)]
    plans = [saved(op, needed, count) for needed in wanted]
    words = [id(op), id(node), id(attributes), *eager_vector_calls.of_matmul()]
    for ufunc in (np.matmul, np.add):
        for kind in "fd":
            words += loop_of(ufunc, f"{kind}{kind}->{kind}")
    words += map(id, wanted)
    words += [sum(1 << k for k in plan.operands) for plan in plans]
    words += [id(bool(plan.operands)) for plan in plans]
    assert len(words) == len(_OWN) and not any(plan.outputs for plan in plans)
    table = table_of(words, (op, node, attributes, wanted))
    return function_over(method(f"product_{function.name}", _text(function.name)), table)
