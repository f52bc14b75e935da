"""The class of tensors spread over processes, and what makes them: refused by name."""

from __future__ import annotations

from typing import Any, NoReturn

from tracejit.distributed.errors import refuse


class DTensor:
    """Tensor spread over processes: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("DTensor")


def distribute_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: no tensor is spread."""
    refuse("distribute_tensor")


def distribute_module(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: no parameter is spread."""
    refuse("distribute_module")
