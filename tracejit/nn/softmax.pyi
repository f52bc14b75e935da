# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from builtins import int as _int
from builtins import str as _str
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor



class _AlongDim(Module):
    def __init__(self, dim: _int | None=None) -> None: ...
    def extra_repr(self) -> _str: ...
    dim: _int | None
class Softmax(_AlongDim):
    def forward(self, input: Tensor) -> Tensor: ...
class LogSoftmax(_AlongDim):
    def forward(self, input: Tensor) -> Tensor: ...
class Softmin(Module):
    def __init__(self, dim: _int | None=None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    dim: _int | None
class Softmax2d(Module):
    def forward(self, input: Tensor) -> Tensor: ...
