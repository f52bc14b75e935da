# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from builtins import bool as _bool
from builtins import float as _float
from builtins import str as _str
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor



class _DropoutNd(Module):
    def __init__(self, p: _float=0.5, inplace: _bool=False) -> None: ...
    def extra_repr(self) -> _str: ...
    p: _float
    inplace: _bool
class Dropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...
class Dropout1d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...
class Dropout2d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...
class Dropout3d(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...
class AlphaDropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...
class FeatureAlphaDropout(_DropoutNd):
    def forward(self, input: Tensor) -> Tensor: ...
