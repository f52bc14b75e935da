# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import dict as _dict
from builtins import float as _float
from builtins import int as _int
from builtins import list as _list
from builtins import str as _str
import warnings
from typing import Any
import tracejit
from tracejit.nn import functional as F
from tracejit.nn import init as init
from tracejit.nn.module import Module as Module
from tracejit.nn.parameter import Parameter as Parameter
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.tensor import _DType, _Device



class _NormBase(Module):
    _version: _int
    def __init__(self, num_features: _int, eps: _float=1e-05, momentum: _float | None=0.1, affine: _bool=True, track_running_stats: _bool=True, device: _Device=None, dtype: _DType=None, *, bias: _bool=True) -> None: ...
    def reset_running_stats(self) -> None: ...
    def reset_parameters(self) -> None: ...
    def _load_from_state_dict(self, state_dict: _dict[_str, _Any], prefix: _str, local_metadata: _dict[_str, _Any], strict: _bool, missing_keys: _list[_str], unexpected_keys: _list[_str], error_msgs: _list[_str]) -> None: ...
    def extra_repr(self) -> _str: ...
    num_features: _int
    eps: _float
    momentum: _float | None
    affine: _bool
    track_running_stats: _bool
class _BatchNorm(_NormBase):
    def _check_input_dim(self, input: _Any) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
class BatchNorm1d(_BatchNorm):
    def _check_input_dim(self, input: _Any) -> None: ...
class BatchNorm2d(_BatchNorm):
    def _check_input_dim(self, input: _Any) -> None: ...
class BatchNorm3d(_BatchNorm):
    def _check_input_dim(self, input: _Any) -> None: ...
class SyncBatchNorm(_BatchNorm):
    def __init__(self, num_features: _int, eps: _float=1e-05, momentum: _float | None=0.1, affine: _bool=True, track_running_stats: _bool=True, process_group: _Any=None, device: _Device=None, dtype: _DType=None, *, bias: _bool=True) -> None: ...
    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: _Any=None) -> Module: ...
    def _check_input_dim(self, input: _Any) -> None: ...
class _InstanceNorm(_NormBase):
    _dimensions: _int
    def __init__(self, num_features: _int, eps: _float=1e-05, momentum: _float=0.1, affine: _bool=False, track_running_stats: _bool=False, device: _Device=None, dtype: _DType=None, *, bias: _bool=True) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...
    def _check_channels(self, input: _Any) -> None: ...
class InstanceNorm1d(_InstanceNorm):
    _dimensions: _int
class InstanceNorm2d(_InstanceNorm):
    _dimensions: _int
class InstanceNorm3d(_InstanceNorm):
    _dimensions: _int
def _check_dimensions(input: _Any, *allowed: _int) -> None: ...
