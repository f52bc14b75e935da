"""Single steps of recurrent layers as functions of their weights: `tracejit.lstm_cell` and its kin.

In: (N, input_size), the states before the step, (gates * H, input_size) and (gates * H, H), perhaps
biases. Out: the states after it, (N, H).
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.recurrence import State, gru_step, lstm_step, relu_step, tanh_step


def _after(step: Any, input: Any, states: State, w_ih: Any, w_hh: Any, b_ih: Any,
           b_hh: Any) -> State:
    return step(F.linear(input, w_ih, b_ih), states, (w_ih, w_hh, b_ih, b_hh, None))


def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
              b_hh: Any = None) -> tuple[Any, Any]:
    """`nn.LSTMCell` with these weights: h and c.

    >>> import tracejit
    >>> h, c = tracejit.zeros(2, 1, 3)
    >>> h, c = lstm_cell(tracejit.ones(1, 2), (h, c), tracejit.ones(12, 2), tracejit.ones(12, 3))
    >>> h.shape
    tracejit.Size([1, 3])
    """
    h, c = _after(lstm_step, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    return h, c


def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """Compute `nn.GRUCell` with these weights: input (N, n), hx (N, h), w_ih (3h, n), w_hh (3h, h);
    the result is (N, h).

    >>> import tracejit
    >>> x, h = tracejit.zeros(2, 3), tracejit.zeros(2, 4)
    >>> tracejit.gru_cell(x, h, tracejit.ones(12, 3), tracejit.ones(12, 4)).shape
    tracejit.Size([2, 4])
    """
    return _after(gru_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
                  b_hh: Any = None) -> Any:
    """Compute `nn.RNNCell` with these weights: input (N, n), hx (N, h), w_ih (h, n), w_hh (h, h);
    the result is (N, h).

    >>> import tracejit
    >>> x, h = tracejit.zeros(2, 3), tracejit.zeros(2, 4)
    >>> tracejit.rnn_tanh_cell(x, h, tracejit.ones(4, 3), tracejit.ones(4, 4)).shape
    tracejit.Size([2, 4])
    """
    return _after(tanh_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None,
                  b_hh: Any = None) -> Any:
    """Compute `nn.RNNCell` of relu with these weights: input (N, n), hx (N, h), w_ih (h, n), w_hh
    (h, h); the result is (N, h).

    >>> import tracejit
    >>> x, h = tracejit.zeros(2, 3), tracejit.zeros(2, 4)
    >>> tracejit.rnn_relu_cell(x, h, tracejit.ones(4, 3), tracejit.ones(4, 4)).shape
    tracejit.Size([2, 4])
    """
    return _after(relu_step, input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]
