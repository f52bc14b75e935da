"""Small `where` of eager mode, without history: a builtin function that copies chosen elements.

In: nothing. Out: a builtin function of a condition and two operands, tensors of one shape or
numbers. It returns a tensor like the one of the general way, or NotImplemented. Called by
`eager_calls`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.ops.direct_calls import Direct
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime.builtin import function_over, method
from tracejit.jit.runtime.eager_elementwise import number, operand
from tracejit.jit.runtime.eager_lines import decline, declines_if, indented
from tracejit.jit.runtime.eager_words import HISTORY, at, of, table_of


def _same_shape(k: int) -> str:
    return f"""\
if kind{k} == 1:
    if dtype != none and type{k} != dtype:
{indented(decline(), 8)}\
    dtype = type{k}
    if spread{k} == 1:
{indented(decline(), 8)}\
    if shape{k} != shape:
        if call_function({at("EQUAL")}, shape{k}, shape, 2) & 4294967295 != 1:
{indented(decline(), 12)}\
    if state >= {HISTORY} and {of(f"x{k}", "_requires_grad")} != false:
{indented(decline(), 8)}"""


def _moderate(k: int) -> str:
    """Return lines that decline numbers which some dtype does not hold: the general way says so."""
    value = f"float64_scratch(pointer_at(x{k}), 2)[0]"
    return f"""\
if kind{k} == 2:
    if {value} < -1e38 or {value} > 1e38 or {value} != {value}:
{indented(decline(), 8)}\
if kind{k} == 3:
    if number{k} < -16777216 or number{k} > 16777216:
{indented(decline(), 8)}"""


def _found(k: int) -> str:
    found = lines.address(f"x{k}", k, "itemsize", "result")
    return f"""\
address{k} = 0
step{k} = 0
if kind{k} == 1:
    step{k} = 1
{indented(lines.same_as_before(f"x{k}", k, "result"))}\
{indented(found)}\
{number(k)}"""


_CHOSEN = "".join(f"""\
{"if itemsize == 4" if size == 4 else "else"}:
    for k in range(total):
        if uint8_scratch(pointer_at(address2), 0)[k] != 0:
            {kind}(pointer_at(data), 0)[k] = {kind}(pointer_at(address0), 0)[k * step0]
        else:
            {kind}(pointer_at(data), 0)[k] = {kind}(pointer_at(address1), 0)[k * step1]
""" for size, kind in ((4, "float32_scratch"), (8, "float64_scratch")))


@functools.cache
def _text() -> str:
    typenums = {name: np.dtype(d).num for name, d in
                (("F32", np.float32), ("F64", np.float64), ("I64", np.int64))}  # fmt: skip
    body = f"""\
{declines_if("count != 3")}\
{lines.mode()}\
x2 = objects[0]
spread2 = 0
class2 = pointer_at(x2)[1]
if {lines.is_tensor("class2")}:
{indented(lines.tensor("x2", 2))}\
else:
{indented(decline())}\
{declines_if(f"type2 != {at('BOOL')} or spread2 == 1")}\
{operand(0, True).replace("objects[0]", "objects[1]")}\
{operand(1, True).replace("objects[1]", "objects[2]")}\
shape = shape2
dtype = none
{_same_shape(0)}\
{_same_shape(1)}\
typenum = {typenums["F32"]}
itemsize = 4
if dtype != {at("F32")}:
    itemsize = 8
    typenum = {typenums["F64"]}
    if dtype != {at("F64")}:
        typenum = {typenums["I64"]}
        if dtype != {at("I64")} or kind0 == 2 or kind1 == 2:
{indented(decline(), 12)}\
{_moderate(0)}\
{_moderate(1)}\
{lines.extent()}\
{lines.made("typenum", "itemsize", "dtype")}\
{lines.same_as_before("x2", 2, "result")}\
{lines.address("x2", 2, "1", "result")}\
{_found(0)}\
{_found(1)}\
{_CHOSEN}\
return result
"""
    return lines.beginning("selection") + indented(body)


def direct(function: Direct) -> Callable[..., Any]:
    """Make the function of `where`."""
    return function_over(method("selection", _text()), table_of((), (function,)))
