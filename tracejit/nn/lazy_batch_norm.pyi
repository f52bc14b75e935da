# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import float as _float
from builtins import int as _int
from typing import Any
from tracejit.core.eager.modes import no_grad as no_grad
from tracejit.core.ops.creation import zeros as zeros
from tracejit.core.ops.types import int64 as int64
from tracejit.nn.batch_norm import BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, InstanceNorm3d as InstanceNorm3d
from tracejit.nn.lazy import LazyModuleMixin as LazyModuleMixin
from tracejit.nn.lazy_parameter import UninitializedBuffer as UninitializedBuffer, UninitializedParameter as UninitializedParameter, is_lazy as is_lazy
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device



class _LazyNormBase(LazyModuleMixin):
    num_features: _int
    def __init__(self, eps: _float=1e-05, momentum: _float | None=0.1, affine: _bool=True, track_running_stats: _bool=True, device: _Device=None, dtype: _DType=None, *, bias: _bool=True) -> None: ...
    def reset_parameters(self) -> None: ...
    def initialize_parameters(self, input: _Any) -> None: ...
    affine: _bool
    track_running_stats: _bool
class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    cls_to_become = BatchNorm1d
class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    cls_to_become = BatchNorm2d
class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    cls_to_become = BatchNorm3d
class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    cls_to_become = InstanceNorm1d
class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    cls_to_become = InstanceNorm2d
class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    cls_to_become = InstanceNorm3d
