# Written by `make stubs` from the source beside it. Do not edit.
# mypy: ignore-errors
from typing import Any as _Any
from collections.abc import Iterable
from typing import Any
import tracejit
from tracejit.core.eager.modes import no_grad as no_grad
from tracejit.nn.module import Module as _Module
from tracejit.nn.parameter import Parameter as _Parameter
from tracejit.core.eager.tensor import Tensor



def parameters_to_vector(parameters: Iterable[_Any]) -> Tensor: ...
def vector_to_parameters(vec: Tensor, parameters: Iterable[_Any]) -> None: ...
