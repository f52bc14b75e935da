# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from builtins import bool as _bool
from builtins import float as _float
from builtins import list as _list
import warnings
from collections.abc import Iterable
from typing import Any
import tracejit
from tracejit.core.eager.modes import no_grad as no_grad
from tracejit.linalg import vector_norm as vector_norm
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor



def _gradients(parameters: _Any) -> _list[_Any]: ...
def get_total_norm(tensors: Iterable[_Any], norm_type: _float=2.0, error_if_nonfinite: _bool=False) -> _Any: ...
def clip_grad_norm_(parameters: _Any, max_norm: _float, norm_type: _float=2.0, error_if_nonfinite: _bool=False, foreach: _bool | None=None) -> Tensor: ...
def clip_grads_with_norm_(parameters: _Any, max_norm: _float, total_norm: _Any, foreach: _bool | None=None) -> None: ...
def _scale(gradients: _list[_Any], max_norm: _float, total: _Any) -> None: ...
def clip_grad_norm(parameters: _Any, max_norm: _float, norm_type: _float=2.0, error_if_nonfinite: _bool=False, foreach: _bool | None=None) -> _Any: ...
def clip_grad_value_(parameters: _Any, clip_value: _float, foreach: _bool | None=None) -> None: ...
