"""Recurrent layers: RNN, LSTM and GRU over sequences, plain, unbatched or packed.

In: (T, N, features), (N, T, features) with `batch_first`, (T, features), or a PackedSequence; the
states at the start. Out: what the last layer gives at each step, and the states at the end.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter
from tracejit.nn.recurrence import (
    State,
    gru_step,
    lstm_over_time,
    lstm_step,
    over_time,
    relu_step,
    tanh_step,
)
from tracejit.nn.utils.rnn import PackedSequence, as_padded, present_steps

_STEPS = {"RNN_TANH": tanh_step, "RNN_RELU": relu_step, "LSTM": lstm_step, "GRU": gru_step}
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """Base class of `RNN`, `LSTM` and `GRU`: layers over one another, in one or both directions.

    mode              "RNN_TANH", "RNN_RELU", "LSTM" or "GRU"
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional  as in `RNN`
    proj_size         size of projected states of an LSTM; default 0, no projection

    Parameters have the names `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0` and, with a
    projection, `weight_hr_l0`. Those of the way back end in `_reverse`. Raises TypeError or
    ValueError for sizes and flags that are none.

    >>> import tracejit
    >>> shapes = [p.shape for p in tracejit.nn.RNNBase("GRU", 3, 4).parameters()]
    >>> [tuple(shape) for shape in shapes]
    [(12, 3), (12, 4), (12,), (12,)]
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        if not isinstance(input_size, int):
            raise TypeError(f"input_size should be of type int, got: {type(input_size).__name__}")
        if input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        _check_options(mode, hidden_size, num_layers, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size = proj_size
        kind = {"device": device, "dtype": dtype}
        for layer, suffix in self._places():
            for name, shape in self._shapes(layer).items():
                made = Parameter(tracejit.empty(shape, **kind))
                self.register_parameter(f"{name}_l{layer}{suffix}", made)
        self.reset_parameters()

    def _places(self) -> list[tuple[int, str]]:
        """Return (layer, suffix of the direction) in the order in which states are stacked."""
        suffixes = ("", "_reverse") if self.bidirectional else ("",)
        return [(layer, suffix) for layer in range(self.num_layers) for suffix in suffixes]

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters of a layer in one direction."""
        given = self.input_size if layer == 0 else self._output_size() * self._directions()
        rows = _GATES[self.mode] * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, given), "weight_hh": (rows, self._output_size())
        }  # fmt: skip
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """Parameters of each layer and direction."""
        return [
            [getattr(self, f"{name}_l{layer}{suffix}") for name in self._shapes(layer)]
            for layer, suffix in self._places()
        ]

    def reset_parameters(self) -> None:
        """Fill uniformly in +-1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not lie in one piece."""

    def extra_repr(self) -> str:
        shown = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
            ("dropout", 0.0), ("bidirectional", False),
        ):  # fmt: skip
            value = getattr(self, name)
            if value != default:
                shown.append(f"{name}={value}")
        return ", ".join(shown)

    # -- a call ----------------------------------------------------------------------------------
    def _weights(self, layer: int, suffix: str) -> tuple[Any, Any, Any, Any, Any]:
        own = self._parameters
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        found = [own.get(f"{name}_l{layer}{suffix}") for name in names]
        return found[0], found[1], found[2], found[3], found[4]

    def _layers(self, input: Any, states: State, present: Any) -> tuple[Any, State]:
        """Run all layers over (T, N, features) from stacked states. Return (outputs, stacked
        states)."""
        step, run = _STEPS[self.mode], lstm_over_time if self.mode == "LSTM" else over_time
        after: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in ("", "_reverse")[: self._directions()]:
                # states are stacked layer by layer, each layer's way forward first
                state = tuple(x[len(after)] for x in states)
                output, last = run(
                    step, input, state, self._weights(layer, suffix), suffix != "", present
                )
                outputs.append(output)
                after.append(last)
            input = outputs[0] if len(outputs) == 1 else tracejit.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                input = F.dropout(input, self.dropout, self.training)
        return input, tuple(tracejit.stack(each) for each in zip(*after))

    def _initial(self, input: Any, batch: Any) -> State:
        """Return zeros for each kind of state."""
        count = self.num_layers * self._directions()
        kind = {"dtype": input.dtype, "device": input.device}
        sizes = (self._output_size(), self.hidden_size)[: 1 + (self.mode == "LSTM")]
        return tuple(tracejit.zeros((count, batch, size), **kind) for size in sizes)

    def _checked_states(self, given: State | None, input: Any, batch: Any) -> State:
        if given is None:
            return self._initial(input, batch)
        for k, (x, size) in enumerate(zip(given, (self._output_size(), self.hidden_size))):
            wanted = (self.num_layers * self._directions(), batch, size)
            if tuple(x.shape) != wanted:
                which = f"hidden[{k}]" if self.mode == "LSTM" else "hidden"
                sizes = ", ".join(map(str, wanted))
                raise RuntimeError(f"Expected {which} size ({sizes}), got {list(x.shape)}")
        return given

    def _check_input(self, input: Any, packed: bool) -> None:
        weight = self.weight_ih_l0
        if input.dtype is not weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        wanted = 2 if packed else 3
        if len(input.shape) != wanted:
            raise RuntimeError(
                f"input must have {wanted} dimensions, got {len(input.shape)}"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def _packed(self, input: PackedSequence, given: State | None) -> tuple[Any, State]:
        data, batch_sizes, order, back = input
        self._check_input(data, packed=True)
        if given is not None and order is not None:
            # states come in the caller's order, the data by decreasing length
            given = tuple(x.index_select(1, order) for x in given)
        present = present_steps(batch_sizes)
        states = self._checked_states(given, data, present.shape[1])
        padded, rows = as_padded(data, present)
        outputs, states = self._layers(padded, states, present.unsqueeze(-1))
        outputs = outputs.flatten(0, 1).index_select(0, rows)
        if back is not None:
            states = tuple(x.index_select(1, back) for x in states)
        return PackedSequence(outputs, batch_sizes, order, back), states

    def _run(self, input: Any, given: State | None) -> tuple[Any, State]:
        """Run a call with the states as a tuple."""
        if isinstance(input, PackedSequence):
            return self._packed(input, given)
        _check_dimensions(self.mode, input, given)
        unbatched = len(input.shape) == 2
        dim = 0 if self.batch_first else 1
        if unbatched:
            input = input.unsqueeze(dim)
            given = None if given is None else tuple(x.unsqueeze(1) for x in given)
        self._check_input(input, packed=False)
        states = self._checked_states(given, input, input.shape[dim])
        if self.batch_first:
            input = input.transpose(0, 1)
        if input.shape[0] == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        outputs, states = self._layers(input, states, None)
        if unbatched:
            return outputs.squeeze(1), tuple(x.squeeze(1) for x in states)
        return outputs.transpose(0, 1) if self.batch_first else outputs, states


class RNN(RNNBase):
    """Recurrent layers (Elman): h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)
    over time.

    input_size, hidden_size  features of inputs, and of states
    num_layers        layers over one another; default 1
    nonlinearity      "tanh" (default) or "relu"
    bias              False: no biases; default True
    batch_first       True: (N, T, features) instead of (T, N, features)
    dropout           probability between layers, in training; default 0
    bidirectional     True: a second direction from the end, whose features come after

    Parameters of layer k: `weight_ih_l{k}` (hidden_size, features), `weight_hh_l{k}` (hidden_size,
    hidden_size), `bias_ih_l{k}` and `bias_hh_l{k}` (hidden_size,), uniform in +-1 /
    sqrt(hidden_size). A call takes (T, N, input_size), (T, input_size) or a PackedSequence. It also
    takes states at the start (num_layers * directions, N, hidden_size); None is zeros. It returns
    the outputs of the last layer (T, N, directions * hidden_size), and the states at the end.
    Raises ValueError for inputs of other dimensions or dtypes, RuntimeError for other sizes. The
    source is Elman, "Finding structure in time" (1990).

    >>> import tracejit
    >>> outputs, h = tracejit.nn.RNN(3, 4, num_layers=2)(tracejit.zeros(5, 2, 3))
    >>> outputs.shape, h.shape
    (tracejit.Size([5, 2, 4]), tracejit.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        # the fourth is the nonlinearity, which the base class does not take
        if len(args) > 3:
            chosen, args = args[3], args[:3] + args[4:]
        else:
            chosen = kwargs.pop("nonlinearity", "tanh")
        if chosen not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{chosen}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = chosen
        super().__init__(f"RNN_{chosen.upper()}", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        outputs, (h,) = self._run(input, None if hx is None else (hx,))
        return outputs, h


class LSTM(RNNBase):
    """Long short-term memory over time: c' = f * c + i * g and h' = o * tanh(c'). The gates are i,
    f, o = sigmoid(...) and g = tanh(...) of x and h.

    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional  as in `RNN`
    proj_size         size of h after a projection; default 0, none

    Parameters are those of `RNN` with 4 * hidden_size rows, in the order i, f, g, o;
    `weight_hr_l{k}` (proj_size, hidden_size) projects, and `weight_hh_l{k}` then has proj_size
    columns. Input (T, N, input_size) or as in `RNN`; states (h, c), each (num_layers * directions,
    N, hidden_size). A call returns outputs (T, N, directions * hidden_size) and (h, c) at the end.
    Errors are those of `RNN`. The source is Hochreiter and Schmidhuber, "Long short-term memory"
    (1997).

    >>> import tracejit
    >>> outputs, (h, c) = tracejit.nn.LSTM(3, 4, bidirectional=True)(tracejit.zeros(5, 2, 3))
    >>> outputs.shape, h.shape, c.shape
    (tracejit.Size([5, 2, 8]), tracejit.Size([2, 2, 4]), tracejit.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        return self._run(input, None if hx is None else (hx[0], hx[1]))


class GRU(RNNBase):
    """Gated recurrent units over time: h' = (1 - z) * n + z * h, with r, z = sigmoid(...) and n =
    tanh(x @ W_n.T + b_n + r * (h @ U_n.T + c_n)).

    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional  as in `RNN`

    Parameters are those of `RNN` with 3 * hidden_size rows, in the order r, z, n. Input (T, N,
    input_size) or as in `RNN`; states (num_layers * directions, N, hidden_size). A call returns
    outputs (T, N, directions * hidden_size) and the states at the end. Errors are those of `RNN`.
    The source is Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014).

    >>> import tracejit
    >>> outputs, h = tracejit.nn.GRU(3, 4, batch_first=True)(tracejit.zeros(2, 5, 3))
    >>> outputs.shape, h.shape
    (tracejit.Size([2, 5, 4]), tracejit.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        outputs, (h,) = self._run(input, None if hx is None else (hx,))
        return outputs, h


def _check_options(mode: str, hidden_size: Any, num_layers: int, dropout: Any,
                   proj_size: int) -> None:  # fmt: skip
    number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    if hidden_size <= 0:
        raise ValueError("hidden_size must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError(
            "proj_size should be a positive integer or zero to disable projections"
        )
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _STEPS:
        raise ValueError(f"Unrecognized RNN mode: {mode}")


def _check_dimensions(mode: str, input: Any, given: State | None) -> None:
    ndim = len(input.shape)
    if ndim not in (2, 3):
        name, noun = ("RNN", " tensor") if mode.startswith("RNN") else (mode, "")
        raise ValueError(f"{name}: Expected input to be 2D or 3D, got {ndim}D{noun} instead")
    if given is None or all(len(x.shape) == ndim for x in given):
        return
    kind = "batched 3-D" if ndim == 3 else "unbatched 2-D"
    found = [f"{len(x.shape)}-D" for x in given]
    if mode == "LSTM":
        states = f"hx and cx should also be {ndim}-D but got ({', '.join(found)}) tensors"
    else:
        states = f"hx should also be {ndim}-D but got {found[0]} tensor"
    raise RuntimeError(f"For {kind} input, {states}")
