"""Find cheaper ways to compute the same bits, and, where numerics allow, nearly the same.

In: a Graph. Out: the same Graph with identities, conversions and views cancelled. Called by the
pipeline after `fold`, which has made numbers of constants. A rule is exact when it gives every
element the same bits for all inputs, NaN payloads aside. Others apply with numerics="fast" only.

Before you add a rule here: an exact rule keeps -0.0, inf and NaN in every dtype. A rule in
`_FAST` alone may only round differently: a sum of no terms stays 0, not inf * 0. A pattern matches
any dtype, so restrict it by `when`. `rewrite` offers what a rule makes to all rules again: two that
undo each other never end, and `x / -1.0` becomes `x * -1.0`, then `-x`. Operands are
simplified before the node, its readers after. The first rule of an op whose replacement has the
same dtype, shape and device wins, and `drop_expand` comes last. Compare sizes by `same_sizes` and
`is_one`, which record no guard. Numbers that a rule makes are not folded again: read them by
`constant`. A rule may leave dead nodes to `dce`. It may return an operand: at the end the pipeline
gives merged outputs memory of their own. A rule sees one region, never the producer of a value
outside. `tests/passes/test_simplify.py` shows wrong bits and guards, `test_random_graphs.py` rules
that meet and rounding that goes too far, `test_pipeline.py` merged outputs, and
`tests/golden/graphs` changed graphs.

>>> from tracejit.jit.ir.parser import parse_graph
>>> print(simplify(parse_graph('''graph g(in0: float32[2] "x"):
...   %0: float32[2] = mul(%in0, 1.0)
...   %1: float32[2] = neg(%0)
...   return %1''')))
graph g(in0: float32[2] "x"):
  %0: float32[2] = neg(%in0)
  return %0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.core.ops import pointwise
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import BOOL, COMPLEX, FLOATING, bool_, dtype, float32, float64
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.verify import same_sizes
from tracejit.jit.passes.fold import constant
from tracejit.jit.passes.pattern import Pattern
from tracejit.jit.passes.rewrite import Rule, rewrite
from tracejit.jit.passes.simplify_views import FAST_VIEW_RULES, VIEW_RULES, source_of_expand


@dataclass
class Identity:
    """Rule: compute `left` as `right`, a function of the same holes, if `when` is true of them."""

    left: Pattern
    right: Callable[..., Any]
    when: Callable[..., bool] | None = None

    def __call__(self, graph: Graph, node: Node) -> Any:
        bound = self.left.match(node.outputs[0])
        if bound is None or self.when is not None and not self.when(**bound):
            return None
        return self.right(**bound)


def simplify(graph: Graph, numerics: str = "fast") -> Graph:
    """Apply every rule that these numerics allow."""
    return rewrite(graph, "simplify", _FAST if numerics == "fast" else _EXACT)


def whole(x: Value) -> bool:
    """Integers: adding zero changes nothing, while the float -0.0 + 0.0 is 0.0."""
    return x.dtype.category < FLOATING


IDENTITIES = [
    Identity(Pattern(lambda x: x * 1), lambda x: x),
    Identity(Pattern(lambda x: 1 * x), lambda x: x),
    Identity(Pattern(lambda x: x / 1), lambda x: x),
    Identity(Pattern(lambda x: x + 0), lambda x: x, whole),
    Identity(Pattern(lambda x: 0 + x), lambda x: x, whole),
    Identity(Pattern(lambda x: x + -0.0), lambda x: x),
    Identity(Pattern(lambda x: -0.0 + x), lambda x: x),
    Identity(Pattern(lambda x: x - 0), lambda x: x),
    Identity(Pattern(lambda x: pointwise.neg(-x)), lambda x: x),
    Identity(Pattern(lambda x: x * -1), lambda x: -x),
    Identity(Pattern(lambda x: -1 * x), lambda x: -x),
    Identity(Pattern(lambda x, y: x + -y), lambda x, y: x - y),
    Identity(Pattern(lambda x, y: -x + y), lambda x, y: y - x),
    Identity(Pattern(lambda x, y: x - -y), lambda x, y: x + y),
    Identity(Pattern(lambda x, y: -x * -y), lambda x, y: x * y),
    Identity(Pattern(lambda x: x.clone()), lambda x: x),
    Identity(Pattern(lambda x: pointwise.stop_gradient(x)), lambda x: x),
    Identity(Pattern(lambda x: x.logical_not().logical_not(), bool_), lambda x: x),
]


# -- conversions -----------------------------------------------------------------------------------
def drop_conversion(graph: Graph, node: Node) -> Value | None:
    """To the same dtype; or through a dtype that holds every value of the first one."""
    x = node.inputs[0]
    if x.dtype is node.outputs[0].dtype:
        return x
    if x.node is None or x.node.op is not node.op:
        return None
    origin, target = x.node.inputs[0], node.outputs[0].dtype
    return pointwise.convert(origin, target) if holds(x.dtype, origin.dtype) else None


def drop_truth(graph: Graph, node: Node) -> Value | None:
    """Replace `number != 0` by the bool that the number was made of."""
    x = node.inputs[0]
    made = x.node is not None and x.node.op is pointwise.cast
    return x.node.inputs[0] if made and x.node.inputs[0].dtype is bool_ else None


_INTEGER_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_FLOAT_INTO = {"float16": ("float32", "float64"), "bfloat16": ("float32", "float64"),
               "float32": ("float64",)}


def holds(wide: dtype, narrow: dtype) -> bool:
    """Return True if every value of `narrow` is one of `wide`.

    >>> from tracejit.core.ops.types import float32, int16, int32
    >>> holds(float32, int16), holds(float32, int32)
    (True, False)
    """
    if wide is narrow or narrow.category == BOOL:
        return True
    if COMPLEX in (wide.category, narrow.category) or wide.category < narrow.category:
        return False
    if narrow.category == FLOATING:
        return wide.name in _FLOAT_INTO.get(narrow.name, ())
    bits = 8 * narrow.itemsize - narrow.is_signed
    if wide.category == FLOATING:
        return bits <= _INTEGER_BITS[wide.name]
    return bits <= 8 * wide.itemsize - wide.is_signed and (wide.is_signed or not narrow.is_signed)


# -- choices, divisions, broadcasts ----------------------------------------------------------------
def drop_choice(graph: Graph, node: Node) -> Any:
    """Replace a `where` with a constant condition, or between equals."""
    condition, yes, no = node.inputs
    if yes is no:
        return yes if isinstance(yes, Value) else None
    known = constant(condition)
    chosen = None if known is None else yes if known else no
    return chosen if isinstance(chosen, Value) else None


def divide_by_power_of_two(graph: Graph, node: Node) -> Any:
    """`x / 4.0` as `x * 0.25`, which rounds the same; only where the reciprocal is exact in every
    dtype."""
    x, divisor = node.inputs
    if type(divisor) is not float or divisor == 0 or not math.isfinite(divisor):
        return None
    fraction, exponent = math.frexp(divisor)
    return x * (1 / divisor) if abs(fraction) == 0.5 and abs(exponent) < 14 else None


def power_by_root(graph: Graph, node: Node) -> Any:
    """`x ** 1.5` as `x * sqrt(x)`, and other halves up to 3.5; roundings add up to 3 ulp.

    A power of -inf is inf or 0.0, not the NaN of its root; one of -0.0 is positive.
    """
    x, exponent = node.inputs
    if type(exponent) is not float or not isinstance(x, Value) or abs(exponent) > 3.5:
        return None
    if x.dtype not in (float32, float64) or 2 * exponent % 2 != 1 or abs(exponent) < 1:
        return None
    root, size = pointwise.abs(pointwise.sqrt(x)), pointwise.abs(x)
    found = root if exponent > 0 else 1.0 / root
    for _ in range(int(abs(exponent))):
        found = found * size if exponent > 0 else found / size
    return pointwise.where(pointwise.eq(x, -math.inf), math.inf if exponent > 0 else 0.0, found)


def drop_expand(graph: Graph, node: Node) -> Any:
    """Drop an `expand` before an elementwise op, which broadcasts by itself if another operand has
    all dimensions."""
    out = node.outputs[0].shape
    full = [isinstance(x, Value) and source_of_expand(x) is None and same_sizes(x.shape, out)
            for x in node.inputs]
    if not any(full):
        return None
    operands = [(source_of_expand(x) if isinstance(x, Value) else None) or x for x in node.inputs]
    if all(a is b for a, b in zip(operands, node.inputs)):
        return None
    return graph.append(node.op, operands, node.attributes)


# -- tables ----------------------------------------------------------------------------------------
RULES: list[tuple[str, Rule]] = [
    ("convert", drop_conversion),
    ("truth", drop_truth),
    ("where", drop_choice),
    ("div", divide_by_power_of_two),
    *((identity.left.root.name, identity) for identity in IDENTITIES),
]


class _Table:
    """Rules by name of op; elementwise ops share one more."""

    def __init__(self, rules: Iterable[tuple[str, Rule]]):
        self.rules: dict[str, tuple[Rule, ...]] = {}
        for name, rule in rules:
            self.rules[name] = (*self.rules.get(name, ()), rule)

    def __call__(self, op: Op) -> Sequence[Rule]:
        own = self.rules.get(op.name, ())
        return (*own, drop_expand) if op.kind == "pointwise" else own


_EXACT = _Table([*RULES, *VIEW_RULES])
_FAST = _Table([*RULES, *VIEW_RULES, *FAST_VIEW_RULES, ("pow", power_by_root)])
