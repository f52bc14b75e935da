# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import int as _int
from builtins import str as _str
from builtins import tuple as _tuple
from typing import Any
from tracejit.nn import functional as F
from tracejit.nn.module import Module as Module
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _IntOrInts



class _MaxUnpoolNd(Module):
    dimensions: _int
    def __init__(self, kernel_size: _IntOrInts, stride: _IntOrInts | None=None, padding: _IntOrInts | _str=0) -> None: ...
    def _each(self, value: _Any) -> _tuple[_Any, ...]: ...
    def extra_repr(self) -> _str: ...
class MaxUnpool1d(_MaxUnpoolNd):
    dimensions: _int
    def forward(self, input: Tensor, indices: Tensor, output_size: _IntOrInts | None=None) -> Tensor: ...
class MaxUnpool2d(_MaxUnpoolNd):
    dimensions: _int
    def forward(self, input: Tensor, indices: Tensor, output_size: _IntOrInts | None=None) -> Tensor: ...
class MaxUnpool3d(_MaxUnpoolNd):
    dimensions: _int
    def forward(self, input: Tensor, indices: Tensor, output_size: _IntOrInts | None=None) -> Tensor: ...
