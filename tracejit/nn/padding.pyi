# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _IntOrInts



class _Pad(Module):
    dimensions: _int
    mode: _str
    def __init__(self, padding: _IntOrInts | _str) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
class _ConstantPadNd(_Pad):
    def __init__(self, padding: _IntOrInts | _str, value: _float) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    value: _float
class _CircularPadNd(_Pad):
    mode: _str
    def forward(self, input: Tensor) -> Tensor: ...
class _ReflectionPadNd(_Pad):
    mode: _str
class _ReplicationPadNd(_Pad):
    mode: _str
class ConstantPad1d(_ConstantPadNd):
    dimensions: _int
class ConstantPad2d(_ConstantPadNd):
    dimensions: _int
class ConstantPad3d(_ConstantPadNd):
    dimensions: _int
class ZeroPad1d(ConstantPad1d):
    def __init__(self, padding: _IntOrInts | _str) -> None: ...
    def extra_repr(self) -> _str: ...
class ZeroPad2d(ConstantPad2d):
    def __init__(self, padding: _IntOrInts | _str) -> None: ...
    def extra_repr(self) -> _str: ...
class ZeroPad3d(ConstantPad3d):
    def __init__(self, padding: _IntOrInts | _str) -> None: ...
    def extra_repr(self) -> _str: ...
class ReflectionPad1d(_ReflectionPadNd):
    dimensions: _int
class ReflectionPad2d(_ReflectionPadNd):
    dimensions: _int
class ReflectionPad3d(_ReflectionPadNd):
    dimensions: _int
class ReplicationPad1d(_ReplicationPadNd):
    dimensions: _int
class ReplicationPad2d(_ReplicationPadNd):
    dimensions: _int
class ReplicationPad3d(_ReplicationPadNd):
    dimensions: _int
class CircularPad1d(_CircularPadNd):
    dimensions: _int
class CircularPad2d(_CircularPadNd):
    dimensions: _int
class CircularPad3d(_CircularPadNd):
    dimensions: _int
