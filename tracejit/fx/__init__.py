"""Programs as graphs of calls; PyTorch's `torch.fx`, of which only the mark is there.

In: functions that modules mark on import. Out: the same functions; what would make a graph says
that captured functions are looked at by other means.
"""

from __future__ import annotations

from typing import Any, NoReturn


def wrap(fn_or_name: Any) -> Any:
    """Marks nothing: capture looks into functions by itself; as `wrap("name")` or `@wrap`.

    >>> wrap(len) is len, wrap("len")
    (True, 'len')
    """
    return fn_or_name


class GraphModule:
    """What PyTorch makes of graphs of calls; nothing here is an instance."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        symbolic_trace()


def symbolic_trace(*args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: no graph of calls is made that could be edited."""
    raise NotImplementedError("fx.symbolic_trace: modules are not turned into graphs of calls; "
                              "tracejit.script compiles them, and forward hooks give what is "
                              "between the layers")
