# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import int as _int
from builtins import str as _str
from builtins import tuple as _tuple
import math
from collections.abc import Sequence
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



_PADDING_MODES: _Any
def per_dimension(value: _Any, count: _int) -> _tuple[_Any, ...]: ...
class _ConvNd(Module):
    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _tuple[_int, ...], stride: _tuple[_int, ...], padding: _str | _tuple[_int, ...], dilation: _tuple[_int, ...], transposed: _bool, output_padding: _tuple[_int, ...], groups: _int, bias: _bool, padding_mode: _str, device: _Device=None, dtype: _DType=None) -> None: ...
    def _check(self) -> None: ...
    def _weight_shape(self) -> _tuple[_int, ...]: ...
    def reset_parameters(self) -> None: ...
    def _amounts(self) -> Sequence[_int]: ...
    def extra_repr(self) -> _str: ...
    in_channels: _int
    out_channels: _int
    groups: _int
    kernel_size: _tuple[_int, ...]
    stride: _tuple[_int, ...]
    padding: _str | _tuple[_int, ...]
    dilation: _tuple[_int, ...]
    transposed: _bool
    output_padding: _tuple[_int, ...]
    padding_mode: _str
    weight: _Parameter
    bias: _Parameter
class _Convolution(_ConvNd):
    dimensions: _int
    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int]=1, padding: _str | _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, groups: _int=1, bias: _bool=True, padding_mode: _str='zeros', device: _Device=None, dtype: _DType=None) -> None: ...
    def _conv_forward(self, input: _Any, weight: Tensor, bias: _bool) -> _Any: ...
    def forward(self, input: Tensor) -> Tensor: ...
class Conv1d(_Convolution):
    dimensions: _int
class Conv2d(_Convolution):
    dimensions: _int
class Conv3d(_Convolution):
    dimensions: _int
class _ConvTransposeNd(_ConvNd):
    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _tuple[_int, ...], stride: _tuple[_int, ...], padding: _tuple[_int, ...], dilation: _tuple[_int, ...], transposed: _bool, output_padding: _tuple[_int, ...], groups: _int, bias: _bool, padding_mode: _str, device: _Device=None, dtype: _DType=None) -> None: ...
class _Transposed(_ConvTransposeNd):
    dimensions: _int
    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int]=1, padding: _int | Sequence[_int]=0, output_padding: _int | Sequence[_int]=0, groups: _int=1, bias: _bool=True, dilation: _int | Sequence[_int]=1, padding_mode: _str='zeros', device: _Device=None, dtype: _DType=None) -> None: ...
    def _padding_for(self, sizes: Sequence[_int], wanted: Sequence[_int]) -> _tuple[_int, ...]: ...
    def forward(self, input: Tensor, output_size: Sequence[_int] | None=None) -> Tensor: ...
class ConvTranspose1d(_Transposed):
    dimensions: _int
class ConvTranspose2d(_Transposed):
    dimensions: _int
class ConvTranspose3d(_Transposed):
    dimensions: _int
