"""Programs as graphs of calls; PyTorch's `torch.fx`: only its mark `wrap` is there.

In: functions that modules mark on import. Out: the same functions. Functions that would make a
graph raise, and name other means to look at captured functions.
"""

from __future__ import annotations

from typing import Any, NoReturn


def wrap(fn_or_name: Any) -> Any:
    """Return the argument, and mark nothing: capture looks into functions by itself. Works as
    `wrap("name")` or `@wrap`.

    >>> wrap(len) is len, wrap("len")
    (True, 'len')
    """
    return fn_or_name


class GraphModule:
    """Class of PyTorch's graphs of calls; nothing here is an instance."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Raises: no instance exists, but `isinstance` may name the class.
        symbolic_trace()


def symbolic_trace(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: no graph of calls is made that could be edited."""
    raise NotImplementedError("fx.symbolic_trace: modules are not turned into graphs of calls; "
                              "tracejit.script compiles them, and forward hooks give what is "
                              "between the layers")
