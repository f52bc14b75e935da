"""The only element of a small tensor as a Python number, in eager mode: a builtin function.

In: nothing. Out: a builtin function of a tensor. It returns a float, int or bool like the general
way, or NotImplemented. Called by `eager_calls`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracejit.core.ops.direct_calls import Direct
from tracejit.jit.runtime import eager_lines as lines
from tracejit.jit.runtime.builtin import function_over, method, python_api
from tracejit.jit.runtime.eager_lines import decline, declines_if, failed, indented
from tracejit.jit.runtime.eager_words import COMMON, at, table_of

_FLOAT_OF = f"table[{COMMON}]"


@functools.cache
def _text() -> str:
    # A float object that nobody else has yet receives the number itself.
    number = f"""\
result = call_function({_FLOAT_OF}, zero)
{failed("result")}\
if type0 == {at("F32")}:
    float64_scratch(pointer_at(result), 2)[0] = float32_scratch(pointer_at(address0), 0)[0]
else:
    float64_scratch(pointer_at(result), 2)[0] = float64_scratch(pointer_at(address0), 0)[0]
return result
"""
    body = f"""\
{declines_if("count != 1")}\
{lines.mode()}\
x0 = objects[0]
spread0 = 0
class0 = pointer_at(x0)[1]
if {lines.is_tensor("class0")}:
{indented(lines.tensor("x0", 0))}\
else:
{indented(decline())}\
itemsize = 8
if type0 == {at("F32")}:
    itemsize = 4
if type0 == {at("BOOL")}:
    itemsize = 1
shape = shape0
{lines.extent(1)}\
{lines.address("x0", 0, "itemsize", "")}\
if type0 == {at("F32")} or type0 == {at("F64")}:
{indented(number)}\
if type0 == {at("I64")}:
    return call_function({at("LONG")}, pointer_at(address0)[0])
{declines_if(f"type0 != {at('BOOL')}")}\
truth = false
if uint8_scratch(pointer_at(address0), 0)[0] != 0:
    truth = true
call_function(keep, truth)
return truth
"""
    return lines.beginning("number") + indented(body)


def direct(function: Direct) -> Callable[..., Any]:
    """Make the function of `item`."""
    table = table_of([python_api("PyNumber_Float")], (function,))
    return function_over(method("number", _text()), table)
