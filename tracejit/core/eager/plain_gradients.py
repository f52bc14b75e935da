"""Gradients of plain small ops, without the general way through rules.

In: a node of an op that is listed here, and the gradient of its result. Out: gradients along its
edges, the same bits as those of the op's rules; None where the general way has to run. Called by
the engine. All arithmetic is that of native functions, which decline whatever is not plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.saved import PACKED, Saved, SavedOutput, Unsaved
from tracejit.core.eager.state import TensorState
from tracejit.core.ops.cotangents import sum_to_shape
from tracejit.core.ops.direct_calls import functions
from tracejit.core.ops.record import REGISTRY

# (node, grad, position) -> the gradient of that operand, or NotImplemented
Rule = Callable[[Any, Any, int], Any]


def plain(rule: Rule) -> Callable[[Any, Any], list | None]:
    """Make the function of (node, gradient) that the engine tries first."""

    def gradients(node: Any, grad: Any) -> list | None:
        operands = node.operands
        if operands is None or node.symbolic or not isinstance(grad, TensorState):
            return None
        for x in (*operands, *node.outputs):
            if type(x) in (Saved, SavedOutput) and x.version == PACKED:
                return None
        results: list[Any] = [None] * len(operands)
        for k in node.needed:
            x = operands[k]
            found = rule(node, grad, k)
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


def rules_of(name: str) -> Callable[[Any, Any], list | None] | None:
    """Return the function for nodes of an op; None for most."""
    rule = _RULES.get(name)
    return None if rule is None else plain(rule)


def _operand(node: Any, k: int) -> Any:
    """Return an operand that a node keeps, checked as the general way checks it."""
    x = node.operands[k]
    return x.unpack() if type(x) is Saved else x


def _result(node: Any) -> Any:
    """Return the result that a node keeps, checked as the general way checks it."""
    x = node.outputs[0]
    return x.unpack() if type(x) is SavedOutput else x


def _passed(node: Any, grad: Any, k: int) -> Any:
    return grad


def _sub(node: Any, grad: Any, k: int) -> Any:
    return neg.direct(grad) if k else grad


def _neg(node: Any, grad: Any, k: int) -> Any:
    return neg.direct(grad)


def _mul(node: Any, grad: Any, k: int) -> Any:
    return mul.direct(grad, _operand(node, 1 - k))


def _div(node: Any, grad: Any, k: int) -> Any:
    return NotImplemented if k else div.direct(grad, _operand(node, 1))


def _exp(node: Any, grad: Any, k: int) -> Any:
    return mul.direct(grad, _result(node))


def _log(node: Any, grad: Any, k: int) -> Any:
    return div.direct(grad, _operand(node, 0))


def _tanh(node: Any, grad: Any, k: int) -> Any:
    out = _result(node)
    square = mul.direct(out, out)
    slope = square if square is NotImplemented else sub.direct(1, square)
    return slope if slope is NotImplemented else mul.direct(grad, slope)


def _square(node: Any, grad: Any, k: int) -> Any:
    twice = mul.direct(grad, 2)
    return twice if twice is NotImplemented else mul.direct(twice, _operand(node, 0))


def _relu(node: Any, grad: Any, k: int) -> Any:
    below = le.direct(_result(node), 0)
    return below if below is NotImplemented else functions["where"].direct(below, 0, grad)


def _sum(node: Any, grad: Any, k: int) -> Any:
    shape, dims = node.operands[0].shape, node.attributes["dims"]
    if not node.attributes["keepdim"] and len(dims) < len(shape):
        if dims != (len(shape) - 1,):
            return NotImplemented
        grad = functions["unsqueeze"].direct(grad, -1)
    return grad if grad is NotImplemented else functions["expand"].direct(grad, shape)


def _mean(node: Any, grad: Any, k: int) -> Any:
    shape, count = node.operands[0].shape, 1
    for d in node.attributes["dims"]:
        count *= shape[d]
    each = div.direct(grad, count)
    return each if each is NotImplemented else _sum(node, each, k)


def _matmul(node: Any, grad: Any, k: int) -> Any:
    other = functions["transpose"].direct(_operand(node, 1 - k), -2, -1)
    if other is NotImplemented:
        return other
    direct = functions["matmul"].direct
    return direct(other, grad) if k else direct(grad, other)


def _linear(node: Any, grad: Any, k: int) -> Any:
    direct = functions["matmul"].direct
    if k == 0:
        return direct(grad, _operand(node, 1))
    if k == 2:
        return sum_to_shape(grad, node.operands[2].shape)
    turned = functions["transpose"].direct(grad, 0, 1)
    return turned if turned is NotImplemented else direct(turned, _operand(node, 0))


sub, mul, div, neg, le = (REGISTRY[name] for name in "sub mul div neg le".split())
_RULES: dict[str, Rule] = {
    "add": _passed, "sub": _sub, "neg": _neg, "mul": _mul, "div": _div, "exp": _exp,
    "log": _log, "tanh": _tanh, "relu": _relu, "square": _square, "sum": _sum, "mean": _mean,
    "matmul": _matmul, "linear": _linear,
}  # fmt: skip
