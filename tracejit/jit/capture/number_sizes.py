"""Ints that differ between calls as sizes: `x[:n]`, `x[n]`, `zeros(n)` in one program for any n.

In: a `CallSymInt` of the recording, where an op takes a size. Out: a symbol that the program binds
to the int when it runs, like one of a tensor's extents; or a polynomial of such symbols. Guards
keep the int in 0 .. 2**31 - 1: symbols are never negative, and products of sizes must stay within
64 bits. Called by `CallSymInt.as_size`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracejit.jit.capture.runtime_numbers import evaluate, is_call_sym
from tracejit.jit.ir.sizes import SymInt

if TYPE_CHECKING:
    from tracejit.jit.capture.tracer import Tracer

_LARGEST = 2**31 - 1
_POLYNOMIAL = ("add", "sub", "mul", "neg")


def size_of(tracer: Tracer, number: Any) -> Any:
    """Return the symbolic size that stands for an int; if none can, the int's value, guarded."""
    if type(number) is int:
        return number
    if tracer.static:
        return number.concretize()
    ints = all(type(x) is int or is_call_sym(x) and x.kind is int for x in number.operands)
    divided = number.op == "floordiv" and type(number.operands[1]) is int and number.operands[1]
    if ints and (number.op in _POLYNOMIAL or divided):
        return evaluate(number.op, [size_of(tracer, x) for x in number.operands])
    if not 0 <= number.hint <= _LARGEST:
        return number.concretize()
    if not number >= 0 or number > _LARGEST:
        return number.concretize()
    value, graph = number.graph_value(tracer), tracer.graph
    k = next(k for k, x in enumerate(graph.inputs) if x is value)
    name = f"n{k}"
    if name in graph.symbol_sources:
        return graph.scope.resolve(SymInt({(name,): 1}, graph.scope))
    graph.symbol_sources[name] = ("number", k, 0)
    return graph.scope.symbol(number.hint, name)
