"""Small views of eager mode: builtin functions that work out a layout and record the view natively.

In: the name of a public function. Out: a builtin function of its arguments. It returns a view like
the one of the general way, with its record and its history, or NotImplemented. Called by
`eager_calls`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.core.eager.state import TensorState
from tracejit.core.eager.tape import OpNode, node_class
from tracejit.core.eager.views import AliasFamily, View
from tracejit.core.memory import Storage
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.record import REGISTRY
from tracejit.jit.capture.memory_words import SIZE, TUPLE_ITEMS, TYPE
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime.builtin import function_over, method
from tracejit.jit.runtime.eager_lines import decline, declines_if, failed, indented
from tracejit.jit.runtime.eager_words import (
    COMMON,
    HISTORY,
    MOST_DIMENSIONS,
    NO_HISTORY,
    UNRECORDED,
    at,
    of,
    room,
    table_of,
)

_OWN = ("OP", "NODE", "OTHER_OP", "OTHER_NODE", "NEEDED", "KEY_0", "KEY_1", "KEY_2", "KEY_3",
        "KEY_4")  # fmt: skip
_SHAPE_ITSELF = 1  # in place of a third key: the first one's value is the result's shape
_DIM = f"pointer_at({room('DIMS')})"
_STRIDE = f"pointer_at({room('STRIDES')})"
_NEW_DIM = f"pointer_at({room('NEW_DIMS')})"
_NEW_STRIDE = f"pointer_at({room('NEW_STRIDES')})"
_ORDER = f"pointer_at({room('ORDER')})"
_NULLS = ("_grad", "_node", "_hooks", "_traced", "_array")


def own(name: str) -> str:
    """Return the text that reads one of the function's own words."""
    return f"table[{COMMON + _OWN.index(name)}]"


def _beginning(name: str) -> str:
    """Return lines that look at the tensor, and write its layout to the table."""
    return lines.beginning(name) + indented(f"""\
{declines_if("count < 1")}\
{lines.mode()}\
x0 = objects[0]
class0 = pointer_at(x0)[{TYPE // 8}]
if {lines.is_tensor("class0")}:
    storage0 = {of("x0", "_storage")}
else:
{indented(decline())}\
{declines_if(f"{of('x0', '_device')} != {at('CPU')} or storage0 == none")}\
{declines_if(f"{of('storage0', 'nbytes', Storage)} == zero")}\
shape0 = {of("x0", "_shape")}
strides0 = {of("x0", "_strides")}
type0 = {of("x0", "_dtype")}
{lines.plain_view("x0")}\
wants = 0
if state >= {HISTORY} and {of("x0", "_requires_grad")} != false:
    wants = 1
{declines_if(f"wants == 1 and state == {UNRECORDED}")}\
rank0 = pointer_at(shape0)[{SIZE // 8}]
{declines_if(f"rank0 >= {MOST_DIMENSIONS}")}\
total = 1
for k in range(rank0):
    size = pointer_at(shape0 + {TUPLE_ITEMS})[k]
    if pointer_at(size)[{TYPE // 8}] != {at("INT")}:
{indented(decline(), 8)}\
    length = call_function({at("VALUE")}, size)
    {_DIM}[k] = length
    total = total * length
{declines_if("total < 1")}\
if strides0 == none:
    step = 1
    for j in range(rank0):
        {_STRIDE}[rank0 - 1 - j] = step
        step = step * {_DIM}[rank0 - 1 - j]
else:
    for k in range(rank0):
        {_STRIDE}[k] = call_function({at("VALUE")}, pointer_at(strides0 + {TUPLE_ITEMS})[k])
skipped = 0
rank = rank0
op = {own("OP")}
kind = {own("NODE")}
attributes = 0
""")


def _number(name: str, source: str) -> str:
    """Return lines that read an int object; they decline all others."""
    return f"""\
{name}_object = {source}
{declines_if(f"pointer_at({name}_object)[{TYPE // 8}] != {at('INT')}")}\
{name} = call_function({at("VALUE")}, {name}_object)
if {name} == -1:
    if call_function({at("FAILED")}) != 0:
        call_function({at("FORGIVE")})
{indented(decline(), 8)}"""


def _dimension(name: str, source: str, count: str) -> str:
    """Return lines that read a dimension's number, which may count from the end."""
    return f"""\
{_number(name, source)}\
if {name} < 0:
    {name} = {name} + {count}
{declines_if(f"{name} < 0 or {name} >= {count}")}"""


def _entry(key: str, value: str, drops: str = "attributes") -> str:
    """Return lines that put a number into the attributes."""
    return f"""\
number = call_function({at("LONG")}, {value})
{failed("number", drops)}\
call_function({at("SET_ITEM")}, attributes, {own(key)}, number)
call_function(drop, number)
"""


_NEW_ATTRIBUTES = f"""\
attributes = call_function({at("DICT")})
{failed("attributes")}"""


def _bound(name: str, field: int, default: str) -> str:
    return f"""\
{name} = {default}
if pointer_at(key)[{field}] != none:
{indented(_number(name, f"pointer_at(key)[{field}]"))}\
    if {name} < 0:
        {name} = {name} + length
        if {name} < 0:
            {name} = 0
    if {name} > length:
        {name} = length
"""


def _getitem() -> str:
    selected = f"""\
{_number("index", "key")}\
if index < 0:
    index = index + length
{declines_if("index < 0 or index >= length")}\
skipped = index * {_STRIDE}[0]
rank = rank0 - 1
for k in range(rank):
    {_NEW_DIM}[k] = {_DIM}[k + 1]
    {_NEW_STRIDE}[k] = {_STRIDE}[k + 1]
{_NEW_ATTRIBUTES}\
{_entry("KEY_0", "0")}\
{_entry("KEY_1", "index")}"""
    sliced = f"""\
if pointer_at(key)[4] != none and pointer_at(key)[4] != {at("ONE")}:
{indented(decline())}\
{_bound("first", 2, "0")}\
{_bound("last", 3, "length")}\
{declines_if("last <= first")}\
op = {own("OTHER_OP")}
kind = {own("OTHER_NODE")}
skipped = first * {_STRIDE}[0]
for k in range(rank):
    {_NEW_DIM}[k] = {_DIM}[k]
    {_NEW_STRIDE}[k] = {_STRIDE}[k]
{_NEW_DIM}[0] = last - first
{_NEW_ATTRIBUTES}\
{_entry("KEY_0", "0")}\
{_entry("KEY_2", "first")}\
{_entry("KEY_3", "last")}\
{_entry("KEY_4", "1")}"""
    return f"""\
{declines_if("count != 2 or rank0 < 1")}\
key = objects[1]
length = {_DIM}[0]
if pointer_at(key)[{TYPE // 8}] == {at("INT")}:
{indented(selected)}\
else:
    if pointer_at(key)[{TYPE // 8}] != {at("SLICE")}:
{indented(decline(), 8)}\
{indented(sliced)}"""


_GIVEN = f"""\
given = count - 1
source = arguments + 8
if count == 2:
    one = pointer_at(objects[1])[{TYPE // 8}]
    if one == {at("PLAIN_TUPLE")} or one == {at("SIZE")}:
        source = objects[1] + {TUPLE_ITEMS}
        given = pointer_at(objects[1])[{SIZE // 8}]
{declines_if(f"given >= {MOST_DIMENSIONS} or count < 2")}"""


def _reshape() -> str:
    return f"""\
{declines_if("strides0 != none")}\
{_GIVEN}\
unknown = -1
known = 1
for k in range(given):
{indented(_number("size_given", "pointer_at(source)[k]"))}\
    if size_given == -1:
        if unknown != -1:
{indented(decline(), 12)}\
        unknown = k
        size_given = 1
    if size_given < 1 or size_given > total:
{indented(decline(), 8)}\
    known = known * size_given
    if known > total:
{indented(decline(), 8)}\
    {_NEW_DIM}[k] = size_given
if unknown != -1:
    if total % known != 0:
{indented(decline(), 8)}\
    {_NEW_DIM}[unknown] = total // known
    known = total
{declines_if("known != total")}\
rank = given
step = 1
for j in range(rank):
    {_NEW_STRIDE}[rank - 1 - j] = step
    step = step * {_NEW_DIM}[rank - 1 - j]
{_NEW_ATTRIBUTES}"""


_ORDERED = f"""\
for k in range(rank):
    {_NEW_DIM}[k] = {_DIM}[{_ORDER}[k]]
    {_NEW_STRIDE}[k] = {_STRIDE}[{_ORDER}[k]]
order = call_function({at("TUPLE")}, rank)
{failed("order")}\
for k in range(rank):
    number = call_function({at("LONG")}, {_ORDER}[k])
{indented(failed("number", "order"))}\
    pointer_at(order + {TUPLE_ITEMS})[k] = number
attributes = call_function({at("DICT")})
{failed("attributes", "order")}\
call_function({at("SET_ITEM")}, attributes, {own("KEY_0")}, order)
call_function(drop, order)
"""


def _transpose() -> str:
    return f"""\
{declines_if("count != 3 or rank0 < 1")}\
{_dimension("one_dim", "objects[1]", "rank0")}\
{_dimension("other_dim", "objects[2]", "rank0")}\
for k in range(rank0):
    {_ORDER}[k] = k
{_ORDER}[one_dim] = other_dim
{_ORDER}[other_dim] = one_dim
{_ORDERED}"""


def _t() -> str:
    return f"""\
{declines_if("count != 1 or rank0 != 2")}\
{_ORDER}[0] = 1
{_ORDER}[1] = 0
{_ORDERED}"""


def _permute() -> str:
    return f"""\
{_GIVEN}\
{declines_if("given != rank0")}\
seen = 0
for k in range(given):
{indented(_dimension("one_dim", "pointer_at(source)[k]", "rank0"))}\
    if (seen >> one_dim) & 1 == 1:
{indented(decline(), 8)}\
    seen = seen + (1 << one_dim)
    {_ORDER}[k] = one_dim
{_ORDERED}"""


def _unsqueeze() -> str:
    return f"""\
{declines_if("count != 2")}\
rank = rank0 + 1
{_dimension("dim", "objects[1]", "rank")}\
for k in range(dim):
    {_NEW_DIM}[k] = {_DIM}[k]
    {_NEW_STRIDE}[k] = {_STRIDE}[k]
for k in range(dim, rank0):
    {_NEW_DIM}[k + 1] = {_DIM}[k]
    {_NEW_STRIDE}[k + 1] = {_STRIDE}[k]
{_NEW_DIM}[dim] = 1
{_NEW_STRIDE}[dim] = 1
if dim < rank0:
    {_NEW_STRIDE}[dim] = {_DIM}[dim] * {_STRIDE}[dim]
{_NEW_ATTRIBUTES}\
{_entry("KEY_0", "dim")}"""


def _expand() -> str:
    return f"""\
{_GIVEN}\
lead = given - rank0
{declines_if("lead < 0")}\
for k in range(given):
{indented(_number("size_given", "pointer_at(source)[k]"))}\
    if size_given < 1:
{indented(decline(), 8)}\
    {_NEW_DIM}[k] = size_given
    {_NEW_STRIDE}[k] = 0
    if k >= lead:
        if {_DIM}[k - lead] != 1:
            if {_DIM}[k - lead] != size_given:
{indented(decline(), 16)}\
            {_NEW_STRIDE}[k] = {_STRIDE}[k - lead]
step = 0
for j in range(given):
    if {_NEW_DIM}[given - 1 - j] == 1:
        {_NEW_STRIDE}[given - 1 - j] = step
        if given - 1 - j >= lead:
            {_NEW_STRIDE}[given - 1 - j] = {_STRIDE}[given - 1 - j - lead]
    step = {_NEW_DIM}[given - 1 - j] * {_NEW_STRIDE}[given - 1 - j]
rank = given
{_NEW_ATTRIBUTES}"""


# function -> (lines, records, keys of attributes)
_FUNCTIONS: dict[str, tuple[Callable[[], str], tuple[str, ...], tuple[str, ...]]] = {
    "getitem": (_getitem, ("select", "slice"), ("dim", "index", "start", "stop", "step")),
    "reshape": (_reshape, ("reshape",), ("shape",)),
    "expand": (_expand, ("expand",), ("shape",)),
    "transpose": (_transpose, ("permute",), ("dims",)),
    "t": (_t, ("permute",), ("dims",)),
    "permute": (_permute, ("permute",), ("dims",)),
    "unsqueeze": (_unsqueeze, ("unsqueeze",), ("dim",)),
}


def _tuple_of(name: str, numbers: str, drops: str) -> str:
    return f"""\
{name} = call_function({at("TUPLE")}, rank)
{failed(name, drops)}\
for k in range(rank):
    number = call_function({at("LONG")}, {numbers}[k])
{indented(failed("number", f"{name} {drops}"))}\
    pointer_at({name} + {TUPLE_ITEMS})[k] = number
"""


def _result() -> str:
    """Return lines that make the view `result`, and its record `view_made` and family `family`."""
    fields = {"_storage": "storage0", "_shape": "shape", "_strides": "strides", "_dtype": "type0",
              "_device": at("CPU"), "_offset": "offset", "_output_nr": "zero",
              "_requires_grad": "false", "_view": "record",
              **dict.fromkeys(_NULLS, "none")}  # fmt: skip
    of_family = {"generation": "zero", "version": "none", "inference": "false",
                 "written_by": "none", "stand_ins": "empty"}  # fmt: skip
    of_view = {"parent": "x0", "op": "op", "operands": "empty", "attributes": "attributes",
               "family": "family", "generation": of("family", "generation", AliasFamily),
               "origin": "origin", "version": of("storage0", "version", Storage),
               "viewed": "false", "output": "none"}  # fmt: skip
    strided = _tuple_of("strides", _NEW_STRIDE, "shape attributes")
    return f"""\
contiguous = 1
step = 1
for j in range(rank):
    length = {_NEW_DIM}[rank - 1 - j]
    if length != 1:
        if {_NEW_STRIDE}[rank - 1 - j] != step:
            contiguous = 0
        step = step * length
{_tuple_of("shape", _NEW_DIM, "attributes")}\
if {own("KEY_2")} == {_SHAPE_ITSELF}:
    call_function({at("SET_ITEM")}, attributes, {own("KEY_0")}, shape)
strides = none
if contiguous == 1:
    call_function(keep, none)
else:
{indented(strided)}\
offset = call_function({at("LONG")}, call_function({at("VALUE")}, {of("x0", "_offset")}) + skipped)
{failed("offset", "strides shape attributes")}\
fresh = call_function(new, {at("FAMILY")}, empty, 0)
{failed("fresh", "offset strides shape attributes")}\
{lines.filled("fresh", AliasFamily, of_family)}\
record = call_function(new, {at("VIEW")}, empty, 0)
{failed("record", "fresh offset strides shape attributes")}\
result = call_function(new, {at("TENSOR")}, empty, 0)
{failed("result", "record fresh offset strides shape attributes")}\
origin = none
if state == {NO_HISTORY}:
    origin = {at("NO_GRAD")}
family = {of("x0", "_view")}
if family == none:
    family = fresh
else:
    if pointer_at(family)[{TYPE // 8}] == {at("VIEW")}:
        family = {of("family", "family", View)}
{lines.filled("record", View, of_view)}\
{lines.filled("result", TensorState, fields, ("record", "shape", "strides", "offset"))}\
"""


def _linked() -> str:
    """Return lines that tell the parent of the view, once nothing more is allocated."""
    return f"""\
before = {of("x0", "_view")}
if before == none:
    {of("x0", "_view")} = family
    call_function(keep, family)
    call_function(drop, none)
else:
    if pointer_at(before)[{TYPE // 8}] == {at("VIEW")}:
        viewed = {of("before", "viewed", View)}
        {of("before", "viewed", View)} = true
        call_function(keep, true)
        call_function(drop, viewed)
call_function(drop, fresh)
call_function(drop, attributes)
"""


def _history() -> str:
    drops = "result fresh attributes"
    values = {"edges": "edges", "operands": "operands", "outputs": "outputs", "extras": "none",
              "op": "op", "attributes": "attributes", "needed": own("NEEDED"), "keeps": "false",
              "symbolic": "false"}  # fmt: skip
    return f"""\
{lines.edge("x0", 0, drops)}\
{lines.packed("edges", "edge", 1, f"edge0 {drops}")}\
{lines.known_type("operand0", 0, "shape0", "type0", f"edges {drops}")}\
{lines.packed("operands", "operand", 1, f"operand0 edges {drops}")}\
{lines.known_type("kept0", 1, "shape", "type0", f"operands edges {drops}")}\
{lines.packed("outputs", "kept", 1, f"kept0 operands edges {drops}")}\
{lines.new_node("kind", f"outputs operands edges {drops}")}\
{lines.filled("node", OpNode, values, ("edges", "operands", "outputs"))}\
{of("result", "_node")} = node
{of("result", "_requires_grad")} = true
call_function(drop, none)
call_function(drop, false)
call_function(keep, true)
"""


@functools.cache
def _text(name: str) -> str:
    body = _FUNCTIONS[name][0]() + _result()
    body += f"node = 0\nif wants == 1:\n{indented(_history())}"
    changed = (f"{of('x0', '_shape')} != shape0 or {of('x0', '_storage')} != storage0 "
               f"or {of('x0', '_strides')} != strides0")
    body += declines_if(changed, "result fresh attributes") + _linked() + "return result\n"
    return _beginning(f"view_{name}") + indented(body)


def direct(function: Direct) -> Callable[..., Any]:
    """Make the function for a public function in `_FUNCTIONS`."""
    _, names, keys = _FUNCTIONS[function.name]
    needed = (0,)
    words: list[int] = []
    for name in (*names, *names)[:2]:
        words += [id(REGISTRY[name]), id(node_class(REGISTRY[name]))]
    found = [*map(id, keys), 0, 0, 0, 0][:5]
    if keys == ("shape",):
        found[2] = _SHAPE_ITSELF
    words += [id(needed), *found]
    assert len(words) == len(_OWN)
    table = table_of(words, (needed, keys))
    return function_over(method(f"view_{function.name}", _text(function.name)), table)
