# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from builtins import list as _list
from builtins import tuple as _tuple
from collections.abc import Sequence
from typing import Any, NamedTuple
import tracejit
from tracejit.nn import functional as F
from tracejit.nn.containers import ModuleList as ModuleList, Sequential as Sequential
from tracejit.nn.linear import Linear as Linear
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device



class ASMoutput(NamedTuple):
    output: _Any
    loss: _Any
_ASMoutput = ASMoutput
class AdaptiveLogSoftmaxWithLoss(Module):
    def __init__(self, in_features: _int, n_classes: _int, cutoffs: Sequence[_int], div_value: _float=4.0, head_bias: _bool=False, device: _Device=None, dtype: _DType=None) -> None: ...
    def _clusters(self) -> _list[_tuple[_int, _int]]: ...
    def reset_parameters(self) -> None: ...
    def forward(self, input: Tensor, target: Tensor) -> ASMoutput: ...
    def _check(self, input: _Any, target: Tensor) -> None: ...
    def log_prob(self, input: _Any) -> _Any: ...
    def predict(self, input: _Any) -> _Any: ...
    in_features: _int
    n_classes: _int
    div_value: _float
    head_bias: _bool
