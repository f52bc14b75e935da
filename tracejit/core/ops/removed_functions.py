"""Functions that PyTorch has removed, and casts by their inner names.

In: calls of `solve`, `lstsq`, `symeig`, `eig`, as functions and methods. Out: a RuntimeError that
tells the user what to write instead. Called by programs of years ago.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.types import (
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)

_REMOVED = "This function was deprecated since version 1.9 and is now removed. "
_INSTEAD = {
    "solve": "Write `torch.linalg.solve(A, B)` for `torch.solve(B, A).solution`; the LU "
             "factorization is `torch.linalg.lu_factor`.",
    "lstsq": "Write `torch.linalg.lstsq(A, B).solution` for `torch.lstsq(B, A).solution"
             "[:A.size(1)]`; the QR decomposition is `torch.linalg.qr`.",
    "symeig": "Write `torch.linalg.eigvalsh(A)` for `torch.symeig(A)`, and `torch.linalg.eigh(A)` "
              "for `torch.symeig(A, eigenvectors=True)`; they read the lower triangle by default.",
    "eig": "Write `torch.linalg.eigvals(A)` for `torch.eig(A)`, and `torch.linalg.eig(A)` for "
           "`torch.eig(A, eigenvectors=True)`; they give complex tensors.",
}


def _refusing(name: str) -> Callable[..., NoReturn]:
    def call(*arguments: Any, **named: Any) -> NoReturn:
        raise RuntimeError(_REMOVED + _INSTEAD[name])

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"RuntimeError: PyTorch has no `{name}` any more. {_INSTEAD[name]}"
    return call


def _cast(name: str, target: dtype) -> Callable[..., Any]:
    def call(input: Any, non_blocking: bool = False) -> Any:
        return convert(input, target)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`input` in {target.name}."
    return call


FUNCTIONS = {name: _refusing(name) for name in _INSTEAD}
CASTS = {f"_cast_{name}": _cast(f"_cast_{name}", kind) for name, kind in {
    "Byte": uint8, "Char": int8, "Double": float64, "Float": float32, "Half": float16,
    "Int": int32, "Long": int64, "Short": int16}.items()}
for _name, _function in FUNCTIONS.items():
    method(_name)(_function)
