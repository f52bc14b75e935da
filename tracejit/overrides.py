"""What counts as a tensor; PyTorch's `torch.overrides`, of which functions ask only that here."""

from __future__ import annotations

from typing import Any, NoReturn

from tracejit.eager.tensor import Tensor

__all__ = ["TorchFunctionMode", "is_tensor_like"]


def is_tensor_like(inp: Any) -> bool:
    """Whether an object is a tensor, or says what functions of tensors do with it.

    >>> import tracejit
    >>> is_tensor_like(tracejit.ones(1)), is_tensor_like([1.0])
    (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


class TorchFunctionMode:
    """A context in which all functions of tensors ask its `__torch_function__`: NotImplementedError
    when it is entered, for none does. Packages derive such classes for what few programs use.
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple = (),
                           kwargs: dict | None = None) -> NoReturn:
        raise NotImplementedError

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__}: functions of tensors ask no mode what "
                                  "they shall do")

    def __exit__(self, *exc: Any) -> None:
        pass
