"""State of an LSTM after a step, as one op, and its gradient as another.

In: the sum of both products, (N, 4 H) or (4 H,), and the cell before. Out: h and the cell. Called
by `nn/recurrence.py`. Eager mode runs each as one program (`Op.fused`); captured graphs open them.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.composite import composite
from tracejit.core.ops.joining import cat
from tracejit.core.ops.pointwise_math import sigmoid, tanh
from tracejit.core.ops.types import TensorType


def _gates(x: Any) -> tuple[Any, ...]:
    """Return the gates: input, forget, cell, output."""
    found: tuple[Any, ...] = x.unflatten(-1, (4, -1)).unbind(-2)
    return found


def _body(gates: Any, before: Any) -> tuple[Any, Any]:
    i, f, g, o = _gates(gates)
    cell = sigmoid(f) * before + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(cell), cell


def _backward_body(grad: Any, grad_cell: Any, gates: Any, before: Any) -> tuple[Any, ...]:
    i, f, g, o = _gates(gates)
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    seen = tanh(f * before + i * g)
    through = grad_cell + grad * o * (1 - seen * seen)
    return (through * g * (1 - i) * i, through * before * (1 - f) * f, through * i * (1 - g * g),
            grad * seen * (1 - o) * o, through * f)


def _types(gates: Any, before: Any) -> tuple[TensorType, TensorType]:
    kind = TensorType(before.dtype, tuple(before.shape), before.device)
    return kind, kind


lstm_backward = composite(
    "lstm_backward", ("grad", "grad_cell", "gates", "before"), _backward_body,
    infer=lambda grad, grad_cell, gates, before: _types(gates, before)[:1] * 5,
    outputs=("input_grad", "forget_grad", "new_grad", "output_grad", "before_grad"),
    fused="whole")


def _rules(grad_h: Any, grad_cell: Any, gates: Any, before: Any) -> dict[str, Any]:
    *found, of_before = lstm_backward(grad_h, grad_cell, gates, before)
    return {"gates": cat(found, -1), "before": of_before}


lstm_gates = composite(
    "lstm_gates", ("gates", "before"), _body, infer=_types, outputs=("h", "cell"),
    fused="whole", joint=_rules,
    gates=lambda grad_h, grad_cell, gates, before: _rules(
        grad_h, grad_cell, gates, before)["gates"],
    before=lambda grad_h, grad_cell, gates, before: _rules(
        grad_h, grad_cell, gates, before)["before"])
