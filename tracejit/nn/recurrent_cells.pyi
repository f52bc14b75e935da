# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import int as _int
from builtins import str as _str
from builtins import tuple as _tuple
import math
from typing import Any
import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init as init
from tracejit.nn.module import Module as Module
from tracejit.nn.parameter import Parameter as Parameter
from tracejit.nn.recurrence import State as State, gru_step as gru_step, lstm_step as lstm_step, relu_step as relu_step, tanh_step as tanh_step
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _Number, _DType, _Device



class RNNCellBase(Module):
    def __init__(self, input_size: _int, hidden_size: _int, bias: _bool, num_chunks: _int, device: _Device=None, dtype: _DType=None) -> None: ...
    def reset_parameters(self) -> None: ...
    def extra_repr(self) -> _str: ...
    def _after(self, step: _Number | Tensor, input: _Any, states: State | None, names: _tuple[_str, ...]) -> State: ...
    def _check_dimensions(self, x: _Any, name: _str) -> None: ...
    def _check_sizes(self, input: _Any, states: State) -> None: ...
    input_size: _int
    hidden_size: _int
    bias: _bool
    weight_ih: _Parameter
    weight_hh: _Parameter
class RNNCell(RNNCellBase):
    def __init__(self, input_size: _int, hidden_size: _int, bias: _bool=True, nonlinearity: _str='tanh', device: _Device=None, dtype: _DType=None) -> None: ...
    def forward(self, input: Tensor, hx: Tensor | None=None) -> Tensor: ...
    nonlinearity: _str
class LSTMCell(RNNCellBase):
    def __init__(self, input_size: _int, hidden_size: _int, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def forward(self, input: Tensor, hx: _tuple[Tensor, Tensor] | None = None) -> _tuple[Tensor, Tensor]: ...
class GRUCell(RNNCellBase):
    def __init__(self, input_size: _int, hidden_size: _int, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def forward(self, input: Tensor, hx: Tensor | None=None) -> Tensor: ...
