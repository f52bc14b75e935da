"""Loops over time: single steps of recurrent layers, and their loop.

In: the inputs' part of the gates, (T, N, gates * H), the states before the first step, the weights
of one layer in one direction. Out: the result of each step, (T, N, H), and the states after the
last.

Called by recurrent layers; the steps by cells too. Capture rewrites the loop functions like the
user's: their loop is one node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.joining import stack
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.recurrent_steps import gru_after, lstm_gates
from tracejit.nn import functional as F

State = tuple[Any, ...]  # h, and c of an LSTM
Weights = tuple[Any, Any, Any, Any, Any]  # of inputs, of states, their biases, of the projection


def tanh_step(x: Any, state: State, weights: Weights) -> State:
    """Return h of a plain recurrent layer."""
    return (F.tanh(x + F.linear(state[0], weights[1], weights[3])),)


def relu_step(x: Any, state: State, weights: Weights) -> State:
    """Return h of a plain recurrent layer with relu."""
    return (F.relu(x + F.linear(state[0], weights[1], weights[3])),)


def lstm_step(x: Any, state: State, weights: Weights) -> State:
    """Return h and c of an LSTM; gates: input, forget, cell, output."""
    h, c = state
    h, c = lstm_gates(x, F.linear(h, weights[1], weights[3]), c)
    return h if weights[4] is None else F.linear(h, weights[4]), c


def gru_step(x: Any, state: State, weights: Weights) -> State:
    """Return h of a GRU; gates: reset, update, new."""
    (h,) = state
    return (gru_after(x, F.linear(h, weights[1], weights[3]), h),)


def _loop(step: Callable, inputs: Any, state: State, weights: Weights) -> tuple[Any, State]:
    outputs = []
    for x in inputs:
        state = step(x, state, weights)
        outputs.append(state[0])
    return stack(outputs), state


def _loop_where(
    step: Callable, inputs: Any, state: State, weights: Weights, present: Any
) -> tuple[Any, State]:
    outputs = []
    for x, takes_part in zip(inputs, present):
        after = step(x, state, weights)
        # sequences that have ended keep their state
        state = tuple([where(takes_part, new, old) for new, old in zip(after, state)])
        outputs.append(state[0])
    return stack(outputs), state


@autocasts(cuda="lower")
def over_time(
    step: Callable, input: Any, state: State, weights: Weights, backward: bool, present: Any
) -> tuple[Any, State]:
    """Return (outputs, last state) of `step` over (T, N, features), from the last on if `backward`.

    present  (T, N, 1), None for all: which elements of the batch a step is for; the others
             keep their state
    """
    w_ih, w_hh, b_ih, b_hh, projection = weights
    if b_hh is not None and step is not gru_step:  # a GRU scales the bias of its new gate
        b_ih, b_hh = b_ih + b_hh, None
    weights = w_ih, w_hh, b_ih, b_hh, projection
    # of all steps at once: only the product with h has to wait
    inputs = F.linear(input, w_ih, b_ih)
    if backward:
        inputs, present = inputs.flip(0), None if present is None else present.flip(0)
    rest = () if present is None else (present,)
    loop: Callable = _loop if present is None else _loop_where
    tracer = active.tracer
    if tracer is not None:
        loop = tracer.convert_call(loop)
    outputs, state = loop(step, inputs, state, weights, *rest)
    return outputs.flip(0) if backward else outputs, state


lstm_over_time = autocasts(cpu="lower", cuda="lower")(over_time)
