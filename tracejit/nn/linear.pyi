# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from typing import TypeVar as _TypeVar
from builtins import bool as _bool
from builtins import int as _int
from builtins import str as _str
import math
from typing import Any
import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init as init
from tracejit.nn.module import Module as Module
from tracejit.nn.parameter import Parameter as Parameter
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device

_T = _TypeVar("_T")


class Linear(Module):
    def __init__(self, in_features: _int, out_features: _int, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def reset_parameters(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    in_features: _int
    out_features: _int
    weight: _Parameter
    bias: _Parameter
class Bilinear(Module):
    def __init__(self, in1_features: _int, in2_features: _int, out_features: _int, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def reset_parameters(self) -> None: ...
    def forward(self, input1: Tensor, input2: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    in1_features: _int
    in2_features: _int
    out_features: _int
    weight: _Parameter
    bias: _Parameter
class Identity(Module):
    def __init__(self, *args: _Any, **kwargs: _Any) -> None: ...
    def forward(self, input: _T) -> _T: ...
class Flatten(Module):
    def __init__(self, start_dim: _int=1, end_dim: _int=...) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    start_dim: _int
    end_dim: _int
class Unflatten(Module):
    def __init__(self, dim: _int, unflattened_size: _Any) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    dim: _int
