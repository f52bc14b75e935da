# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor



class CosineSimilarity(Module):
    def __init__(self, dim: _int=1, eps: _float=1e-08) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor: ...
    dim: _int
    eps: _float
class PairwiseDistance(Module):
    def __init__(self, p: _float=2.0, eps: _float=1e-06, keepdim: _bool=False) -> None: ...
    def forward(self, x1: Tensor, x2: Tensor) -> Tensor: ...
    norm: _float
    eps: _float
    keepdim: _bool
