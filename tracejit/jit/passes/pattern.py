"""Rewrite patterns: expressions with holes, written with the operators that tensors and graph
values have.

In: `Pattern(lambda x: x * 1)`. Out: a Pattern that finds such expressions at a graph value and says
what the holes stand for. Called by `jit/passes/simplify.py`. A number in a pattern matches numbers
of equal value and sign of zero, an attribute that is a hole matches anything.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from tracejit.core.memory.devices import CPU
from tracejit.core.ops.operators import Operators
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import dtype, float32
from tracejit.jit.ir.digest import static_key
from tracejit.jit.ir.graph import Value

Bindings = dict[str, Any]


class Term(Operators):
    """Part of a pattern. To front ends it looks like a 0-dim tensor, so they add no conversions."""

    __slots__ = ("dtype",)
    dtype: dtype
    shape, device = (), CPU

    def match(self, x: Any, bound: Bindings) -> bool:
        """Return True if `x` is such an expression, and note in `bound` what the holes stand
        for."""
        raise NotImplementedError

    @staticmethod
    def dispatch(op: Op, operands: tuple, attributes: dict) -> Any:
        of = next(x.dtype for x in operands if isinstance(x, Term))
        return Applied(op, operands, attributes, of)


class Hole(Term):
    """Stands for any value; the same hole twice, for the same value."""

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: dtype):
        self.name, self.dtype = name, dtype

    def match(self, x: Any, bound: Bindings) -> bool:
        if not isinstance(x, Value):
            return False
        return bound.setdefault(self.name, x) is x


class Applied(Term):
    """Op applied to terms and numbers."""

    __slots__ = ("op", "operands", "attributes")

    def __init__(self, op: Op, operands: tuple, attributes: dict, dtype: dtype):
        self.op, self.operands, self.attributes, self.dtype = op, operands, attributes, dtype

    def match(self, x: Any, bound: Bindings) -> bool:
        node = x.node if isinstance(x, Value) else None
        if node is None or node.op is not self.op or len(node.inputs) != len(self.operands):
            return False
        return (all(_matches(p, y, bound) for p, y in zip(self.operands, node.inputs))
                and all(_attribute_matches(p, node.attributes.get(name), bound)
                        for name, p in self.attributes.items()))


def _matches(part: Any, x: Any, bound: Bindings) -> bool:
    return part.match(x, bound) if isinstance(part, Term) else same_number(part, x)


def _attribute_matches(part: Any, x: Any, bound: Bindings) -> bool:
    if isinstance(part, Hole):
        bound[part.name] = x
        return True
    return static_key(part) == static_key(x)


def same_number(a: Any, b: Any) -> bool:
    """Numbers of equal value; 0.0 and -0.0 differ, 1 and 1.0 do not.

    >>> same_number(1, 1.0), same_number(0.0, -0.0)
    (True, False)
    """
    if type(b) not in (int, float, bool) or a != b:
        return False
    return a != 0 or math.copysign(1, a) == math.copysign(1, b)


class Pattern:
    """Expression with holes; `root` is the op of its outermost application.

    Front ends take the holes for tensors of `dtype`. It is not matched: rules ask the values
    themselves.

    >>> from tracejit.core.ops import pointwise
    >>> Pattern(lambda x: -(-x)).root
    <op neg>
    """

    def __init__(self, expression: Callable[..., Any], dtype: dtype = float32):
        holes = [Hole(name, dtype) for name in inspect.signature(expression).parameters]
        self.term: Applied = expression(*holes)
        if not isinstance(self.term, Applied):
            raise TypeError("a pattern must apply an op to its holes")
        self.root = self.term.op

    def match(self, value: Value) -> Bindings | None:
        """Return what the holes stand for if the expression is found at `value`, else None."""
        bound: Bindings = {}
        return bound if self.term.match(value, bound) else None


