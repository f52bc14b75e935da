# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from collections.abc import Sequence as _Sequence
from builtins import bool as _bool
from builtins import float as _float
from builtins import str as _str
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _Ints



class Upsample(Module):
    def __init__(self, size: _Ints | None=None, scale_factor: _float | _Sequence[_float] | None=None, mode: _str='nearest', align_corners: _bool | None=None, recompute_scale_factor: _bool | None=None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    size: _Ints | None
    mode: _str
    align_corners: _bool | None
    recompute_scale_factor: _bool | None
class UpsamplingNearest2d(Upsample):
    def __init__(self, size: _Ints | None=None, scale_factor: _float | _Sequence[_float] | None=None) -> None: ...
class UpsamplingBilinear2d(Upsample):
    def __init__(self, size: _Ints | None=None, scale_factor: _float | _Sequence[_float] | None=None) -> None: ...
