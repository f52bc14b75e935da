"""Single steps of recurrent layers as layers: RNNCell, LSTMCell, GRUCell.

In: (N, input_size) or (input_size,), the states before the step. Out: the states after it.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter
from tracejit.nn.recurrence import State, gru_step, lstm_step, relu_step, tanh_step


class RNNCellBase(Module):
    """Base class of `RNNCell`, `LSTMCell` and `GRUCell`: weights and biases of `num_chunks` gates.

    input_size, hidden_size  features of inputs, and of states
    bias              False: no biases
    num_chunks        number g of gates
    device, dtype     of the parameters

    Parameters: `weight_ih` (g * hidden_size, input_size), `weight_hh` (g * hidden_size,
    hidden_size), `bias_ih` and `bias_hh` (g * hidden_size,), uniform in +-1 / sqrt(hidden_size).

    >>> import tracejit
    >>> tracejit.nn.RNNCellBase(3, 4, True, 2).weight_ih.shape
    tracejit.Size([8, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        kind = {"device": device, "dtype": dtype}
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(tracejit.empty((rows, input_size), **kind))
        self.weight_hh = Parameter(tracejit.empty((rows, hidden_size), **kind))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(tracejit.empty(rows, **kind)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill uniformly in +-1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown

    def _after(self, step: Any, input: Any, states: State | None, names: tuple[str, ...]) -> State:
        """Return the states after a step. States that are not given are zeros."""
        self._check_dimensions(input, "input")
        for x, name in zip(states or (), names):
            self._check_dimensions(x, name)
        alone = len(input.shape) == 1
        x = input.unsqueeze(0) if alone else input
        if states is None:
            zeros = tracejit.zeros(
                (x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device
            )
            states = (zeros,) * len(names)
        elif alone:
            states = tuple(s.unsqueeze(0) for s in states)
        self._check_sizes(x, states)
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, None)
        after = step(F.linear(x, weights[0], weights[2]), states, weights)
        return tuple(s.squeeze(0) for s in after) if alone else after

    def _check_dimensions(self, x: Any, name: str) -> None:
        if len(x.shape) not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {len(x.shape)}D "
                "instead"
            )

    def _check_sizes(self, input: Any, states: State) -> None:
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for k, x in enumerate(states):
            if x.shape[0] != input.shape[0]:
                raise RuntimeError(
                    f"Input batch size {input.shape[0]} doesn't match hidden{k} batch size "
                    f"{x.shape[0]}"
                )
            if x.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{k} has inconsistent hidden_size: got {x.shape[1]}, expected "
                    f"{self.hidden_size}"
                )


class RNNCell(RNNCellBase):
    """Step of an `RNN`: h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh).

    input_size, hidden_size  features of inputs, and of states
    bias              False: no biases; default True
    nonlinearity      "tanh" (default) or "relu"

    Parameters are those of `RNNCellBase` with one gate. Input (N, input_size) or (input_size,);
    state (N, hidden_size) or (hidden_size,), None is zeros; output as the state. Raises ValueError
    for inputs of more dimensions, RuntimeError for other sizes.

    >>> import tracejit
    >>> tracejit.nn.RNNCell(3, 4)(tracejit.zeros(2, 3)).shape
    tracejit.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        steps = {"tanh": tanh_step, "relu": relu_step}
        if self.nonlinearity not in steps:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        states = None if hx is None else (hx,)
        return self._after(steps[self.nonlinearity], input, states, ("hidden",))[0]


class LSTMCell(RNNCellBase):
    """Step of an `LSTM`: c' = f * c + i * g and h' = o * tanh(c').

    input_size, hidden_size  features of inputs, and of states
    bias              False: no biases; default True

    Parameters are those of `RNNCellBase` with four gates: i, f, g, o. Input (N, input_size) or
    (input_size,); states (h, c), each (N, hidden_size) or (hidden_size,), None is zeros. A call
    returns the new (h, c). Raises ValueError for inputs of more dimensions, RuntimeError for other
    sizes.

    >>> import tracejit
    >>> h, c = tracejit.nn.LSTMCell(3, 4)(tracejit.zeros(2, 3))
    >>> h.shape, c.shape
    (tracejit.Size([2, 4]), tracejit.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        states = None if hx is None else (hx[0], hx[1])
        h, c = self._after(lstm_step, input, states, ("hx[0]", "hx[1]"))
        return h, c


class GRUCell(RNNCellBase):
    """Step of a `GRU`: h' = (1 - z) * n + z * h.

    input_size, hidden_size  features of inputs, and of states
    bias              False: no biases; default True

    Parameters are those of `RNNCellBase` with three gates: r, z, n. Input (N, input_size) or
    (input_size,); state (N, hidden_size) or (hidden_size,), None is zeros; output as the state.
    Raises ValueError for inputs of more dimensions, RuntimeError for other sizes.

    >>> import tracejit
    >>> tracejit.nn.GRUCell(3, 4)(tracejit.zeros(3)).shape
    tracejit.Size([4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._after(gru_step, input, None if hx is None else (hx,), ("hidden",))[0]
