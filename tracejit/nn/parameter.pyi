# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from typing import Self as _Self
from builtins import bool as _bool
from builtins import dict as _dict
from builtins import str as _str
from builtins import type as _type
from typing import Any
import tracejit
from tracejit.core.ops.direct_calls import install_parameter as install_parameter
from tracejit.core.ops.overriding import PLAIN as PLAIN, disabled as disabled
from tracejit.nn.module import Module as _Module
from tracejit.core.eager.tensor import Tensor



class Parameter(Tensor):
    __torch_function__: _Any
    _keeps_windows: _bool
    def __new__(cls, data: Tensor | None = None, requires_grad: _bool = True) -> _Self: ...
    def __init__(self, data: Tensor | None = None, requires_grad: _bool = True) -> None: ...
    def __deepcopy__(self, memo: _dict[_str, _Any]) -> Parameter: ...
    def __repr__(self, *, tensor_contents: _Any=None) -> _str: ...
class _OfBuffers(type):
    def __instancecheck__(cls, instance: _Any) -> _bool: ...
class Buffer(metaclass=_OfBuffers):
    def __new__(cls, data: _Any=None, *, persistent: _bool=True) -> _Any: ...
def __getattr__(name: _str) -> _Any: ...
def _rebuilt(cls: _type[Parameter], data: _Any, requires_grad: _bool) -> Parameter: ...
def factory_kwargs(kwargs: _dict[_str, _Any] | None) -> _dict[_str, _Any]: ...
_Parameter = Parameter
