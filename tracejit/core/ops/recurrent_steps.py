"""States of an LSTM and of a GRU after a step, as one op each, and their gradients as others.

In: both products, (N, gates * H) or (gates * H,), and the cell of an LSTM or the state of a GRU
before. Out: h and the cell; h. Called by `nn/recurrence.py`. Eager mode runs each as one program
(`Op.fused`); captured graphs open them.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.composite import composite
from tracejit.core.ops.joining import cat
from tracejit.core.ops.pointwise_math import sigmoid, tanh
from tracejit.core.ops.types import TensorType


def _gates(x: Any, count: int) -> tuple[Any, ...]:
    """Return the gates, of an LSTM input, forget, cell, output, of a GRU reset, update, new."""
    found: tuple[Any, ...] = x.unflatten(-1, (count, -1)).unbind(-2)
    return found


def _types(before: Any) -> tuple[TensorType, TensorType]:
    kind = TensorType(before.dtype, tuple(before.shape), before.device)
    return kind, kind


# -- LSTM -----------------------------------------------------------------------------------------


def _body(inputs: Any, states: Any, before: Any) -> tuple[Any, Any]:
    i, f, g, o = _gates(inputs + states, 4)
    cell = sigmoid(f) * before + sigmoid(i) * tanh(g)
    return sigmoid(o) * tanh(cell), cell


def _backward_body(grad: Any, grad_cell: Any, inputs: Any, states: Any,
                   before: Any) -> tuple[Any, ...]:
    i, f, g, o = _gates(inputs + states, 4)
    i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
    seen = tanh(f * before + i * g)
    through = grad_cell + grad * o * (1 - seen * seen)
    return (through * g * (1 - i) * i, through * before * (1 - f) * f, through * i * (1 - g * g),
            grad * seen * (1 - o) * o, through * f)


lstm_backward = composite(
    "lstm_backward", ("grad", "grad_cell", "inputs", "states", "before"), _backward_body,
    infer=lambda grad, grad_cell, inputs, states, before: _types(before)[:1] * 5,
    outputs=("input_grad", "forget_grad", "new_grad", "output_grad", "before_grad"),
    fused="whole")


def _rules(grad_h: Any, grad_cell: Any, inputs: Any, states: Any, before: Any) -> dict[str, Any]:
    *found, of_before = lstm_backward(grad_h, grad_cell, inputs, states, before)
    gates = cat(found, -1)
    return {"inputs": gates, "states": gates, "before": of_before}


lstm_gates = composite(
    "lstm_gates", ("inputs", "states", "before"), _body, outputs=("h", "cell"), fused="whole",
    infer=lambda inputs, states, before: _types(before), joint=_rules,
    inputs=lambda grad_h, grad_cell, inputs, states, before: _rules(
        grad_h, grad_cell, inputs, states, before)["inputs"],
    states=lambda grad_h, grad_cell, inputs, states, before: _rules(
        grad_h, grad_cell, inputs, states, before)["states"],
    before=lambda grad_h, grad_cell, inputs, states, before: _rules(
        grad_h, grad_cell, inputs, states, before)["before"])


# -- GRU ------------------------------------------------------------------------------------------


def _gru_body(inputs: Any, states: Any, before: Any) -> Any:
    xr, xz, xn = _gates(inputs, 3)
    hr, hz, hn = _gates(states, 3)
    # as in PyTorch the reset gate scales the product with h, bias included
    new = tanh(xn + sigmoid(xr + hr) * hn)
    # (1 - z) * new + z * before
    return new + sigmoid(xz + hz) * (before - new)


def _gru_backward_body(grad: Any, inputs: Any, states: Any, before: Any) -> tuple[Any, ...]:
    xr, xz, xn = _gates(inputs, 3)
    hr, hz, hn = _gates(states, 3)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    new = tanh(xn + r * hn)
    passed = grad * z
    through = (grad - passed) * (1 - new * new)
    return (through * hn * (1 - r) * r, grad * (before - new) * (1 - z) * z, through, through * r,
            passed)


gru_backward = composite(
    "gru_backward", ("grad", "inputs", "states", "before"), _gru_backward_body,
    infer=lambda grad, inputs, states, before: _types(before)[:1] * 5,
    outputs=("reset_grad", "update_grad", "new_grad", "scaled_grad", "before_grad"),
    fused="whole")


def _gru_rules(grad: Any, inputs: Any, states: Any, before: Any) -> dict[str, Any]:
    reset, update, new, scaled, of_before = gru_backward(grad, inputs, states, before)
    return {"inputs": cat((reset, update, new), -1), "states": cat((reset, update, scaled), -1),
            "before": of_before}


gru_gates = composite(
    "gru_gates", ("inputs", "states", "before"), _gru_body, fused="whole",
    infer=lambda inputs, states, before: _types(before)[0], joint=_gru_rules,
    inputs=lambda grad, inputs, states, before: _gru_rules(
        grad, inputs, states, before)["inputs"],
    states=lambda grad, inputs, states, before: _gru_rules(
        grad, inputs, states, before)["states"],
    before=lambda grad, inputs, states, before: _gru_rules(
        grad, inputs, states, before)["before"])


def gru_after(inputs: Any, states: Any, before: Any) -> Any:
    """Return h of a GRU. Under autocast the products may have another dtype than the state."""
    alike = inputs.dtype is states.dtype is before.dtype
    return (gru_gates if alike else _gru_body)(inputs, states, before)
