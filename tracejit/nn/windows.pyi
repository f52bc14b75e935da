# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from builtins import str as _str
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _IntOrInts



class Unfold(Module):
    def __init__(self, kernel_size: _IntOrInts, dilation: _IntOrInts=1, padding: _IntOrInts | _str=0, stride: _IntOrInts=1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    kernel_size: _IntOrInts
    dilation: _IntOrInts
    padding: _IntOrInts | _str
    stride: _IntOrInts
class Fold(Module):
    def __init__(self, output_size: _IntOrInts, kernel_size: _IntOrInts, dilation: _IntOrInts=1, padding: _IntOrInts | _str=0, stride: _IntOrInts=1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def extra_repr(self) -> _str: ...
    output_size: _IntOrInts
    kernel_size: _IntOrInts
    dilation: _IntOrInts
    padding: _IntOrInts | _str
    stride: _IntOrInts
