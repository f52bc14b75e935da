# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import dict as _dict
from builtins import int as _int
from builtins import str as _str
from builtins import tuple as _tuple
from builtins import type as _type
from collections.abc import Sequence
from itertools import chain
from typing import Any
from tracejit.core.eager.modes import no_grad as no_grad
from tracejit.nn.convolution import Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d, ConvTranspose2d as ConvTranspose2d, ConvTranspose3d as ConvTranspose3d
from tracejit.nn.lazy_parameter import UninitializedParameter as UninitializedParameter, is_lazy as is_lazy
from tracejit.nn.linear import Linear as Linear
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device



__all__ = ['LazyConv1d', 'LazyConv2d', 'LazyConv3d', 'LazyConvTranspose1d', 'LazyConvTranspose2d', 'LazyConvTranspose3d', 'LazyLinear', 'LazyModuleMixin']
class LazyModuleMixin:
    cls_to_become: _type | None
    _parameters: _dict[_str, _Any]
    _buffers: _dict[_str, _Any]
    def __init__(self, *args: _Any, **kwargs: _Any) -> None: ...
    def initialize_parameters(self, *args: _Any, **kwargs: _Any) -> None: ...
    def has_uninitialized_params(self) -> _bool: ...
def _initialize(module: _Module, args: _tuple[_Any, ...], kwargs: _dict[_str, _Any]) -> None: ...
class LazyLinear(LazyModuleMixin, Linear):
    cls_to_become = Linear
    weight: _Any
    bias: _Any
    def __init__(self, out_features: _int, bias: _bool=True, device: _Device=None, dtype: _DType=None) -> None: ...
    def reset_parameters(self) -> None: ...
    def initialize_parameters(self, input: _Any) -> None: ...
    out_features: _int
class _LazyConvXdMixin(LazyModuleMixin):
    dimensions: _int
    transposed: _bool
    weight: _Any
    bias: _Any
    def _become_lazy(self, bias: _bool, device: _Device, dtype: _DType, out_channels: _int) -> None: ...
    def reset_parameters(self) -> None: ...
    def initialize_parameters(self, input: _Any, *args: _Any, **kwargs: _Any) -> None: ...
    def _channels_of(self, input: _Any) -> _int: ...
class _LazyPlain(_LazyConvXdMixin):
    in_channels: _int
    def __init__(self, out_channels: _int, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int]=1, padding: _str | _int | Sequence[_int]=0, dilation: _int | Sequence[_int]=1, groups: _int=1, bias: _bool=True, padding_mode: _str='zeros', device: _Device=None, dtype: _DType=None) -> None: ...
class _LazyTransposed(_LazyConvXdMixin):
    in_channels: _int
    def __init__(self, out_channels: _int, kernel_size: _int | Sequence[_int], stride: _int | Sequence[_int]=1, padding: _int | Sequence[_int]=0, output_padding: _int | Sequence[_int]=0, groups: _int=1, bias: _bool=True, dilation: _int | Sequence[_int]=1, padding_mode: _str='zeros', device: _Device=None, dtype: _DType=None) -> None: ...
class LazyConv1d(_LazyPlain, Conv1d):
    cls_to_become = Conv1d
class LazyConv2d(_LazyPlain, Conv2d):
    cls_to_become = Conv2d
class LazyConv3d(_LazyPlain, Conv3d):
    cls_to_become = Conv3d
class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    cls_to_become = ConvTranspose1d
class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    cls_to_become = ConvTranspose2d
class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    cls_to_become = ConvTranspose3d
