"""Ops that a package registers by name, in PyTorch's older spelling: `torch._custom_ops`.

In: names and functions. Out: NotImplementedError: there is no table of ops to add to. An
`autograd.Function` does what such an op does.
"""

from __future__ import annotations

from typing import Any, NoReturn

_HINT = ("ops are not registered by name here; write an autograd.Function, or call the function "
         "itself")


def custom_op(qualname: str, func_or_schema: Any = None) -> NoReturn:
    """Raise NotImplementedError: see `tracejit.autograd.Function`."""
    raise NotImplementedError(f"custom_op({qualname!r}): {_HINT}")


def impl(qualname: str, *, device_types: Any = ("cpu", "cuda"), func: Any = None) -> NoReturn:
    """Raise NotImplementedError: see `tracejit.autograd.Function`."""
    raise NotImplementedError(f"impl({qualname!r}): {_HINT}")


def impl_abstract(qualname: str, *, func: Any = None) -> NoReturn:
    """Raise NotImplementedError: see `tracejit.autograd.Function`."""
    raise NotImplementedError(f"impl_abstract({qualname!r}): {_HINT}")


def impl_save_for_backward(qualname: str, *, func: Any = None) -> NoReturn:
    """Raise NotImplementedError: see `tracejit.autograd.Function`."""
    raise NotImplementedError(f"impl_save_for_backward({qualname!r}): {_HINT}")


def impl_backward(qualname: str, output_differentiability: Any = None, *,
                  func: Any = None) -> NoReturn:
    """Raise NotImplementedError: see `tracejit.autograd.Function`."""
    raise NotImplementedError(f"impl_backward({qualname!r}): {_HINT}")
