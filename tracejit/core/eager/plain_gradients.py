"""Gradients of plain small ops, without the general way through rules.

In: a node of an op that is listed here, and the gradient of its result. Out: gradients along its
edges, the same bits as those of the op's rules; None where the general way has to run. Called by
the engine. All arithmetic is that of native functions, which decline whatever is not plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.saved import Saved, SavedOutput, Unsaved
from tracejit.core.ops.record import REGISTRY

# (grad, operands, outputs, position) -> the gradient of that operand, or NotImplemented
Rule = Callable[[Any, Any, Any, int], Any]


def plain(rule: Rule) -> Callable[[Any, Any], list | None]:
    """Make the function of (node, gradient) that the engine tries first."""

    def gradients(node: Any, grad: Any) -> list | None:
        operands = node.operands
        if operands is None or node.symbolic:
            return None
        results: list[Any] = [None] * len(operands)
        for k in node.needed:
            x = operands[k]
            found = rule(grad, operands, node.outputs, k)
            if found is NotImplemented:
                return None
            if type(x) is Saved:
                x = x.tensor
                shape, dtype = x._shape, x._dtype
            elif type(x) is Unsaved:
                shape, dtype = x.shape, x.dtype
            else:
                return None
            if found._dtype is not dtype or found._shape != shape:
                return None
            results[k] = found
        return results

    return gradients


def _read(x: Any) -> Any:
    """Return an operand or a result that a node keeps, checked as the general way checks it."""
    return x.unpack() if type(x) is Saved or type(x) is SavedOutput else x


def _passed(grad: Any, operands: Any, outputs: Any, k: int) -> Any:
    return grad


def rules_of(name: str) -> Callable[[Any, Any], list | None] | None:
    """Return the function for nodes of an op; None for most."""
    make = _RULES.get(name)
    return None if make is None else plain(make())


def _sub() -> Rule:
    neg = REGISTRY["neg"]
    return lambda grad, operands, outputs, k: neg.direct(grad) if k else grad


def _neg() -> Rule:
    neg = REGISTRY["neg"]
    return lambda grad, operands, outputs, k: neg.direct(grad)


def _mul() -> Rule:
    mul = REGISTRY["mul"]
    return lambda grad, operands, outputs, k: mul.direct(grad, _read(operands[1 - k]))


def _div() -> Rule:
    div = REGISTRY["div"]
    return lambda grad, operands, outputs, k: (
        NotImplemented if k else div.direct(grad, _read(operands[1])))


def _exp() -> Rule:
    mul = REGISTRY["mul"]
    return lambda grad, operands, outputs, k: mul.direct(grad, _read(outputs[0]))


def _log() -> Rule:
    div = REGISTRY["div"]
    return lambda grad, operands, outputs, k: div.direct(grad, _read(operands[0]))


def _tanh() -> Rule:
    mul, sub = REGISTRY["mul"], REGISTRY["sub"]

    def rule(grad: Any, operands: Any, outputs: Any, k: int) -> Any:
        out = _read(outputs[0])
        square = mul.direct(out, out)
        slope = square if square is NotImplemented else sub.direct(1, square)
        return slope if slope is NotImplemented else mul.direct(grad, slope)

    return rule


_RULES: dict[str, Callable[[], Rule]] = {
    "add": lambda: _passed, "sub": _sub, "neg": _neg, "mul": _mul, "div": _div, "exp": _exp,
    "log": _log, "tanh": _tanh,
}  # fmt: skip
