"""Direct calls: native functions that compute small plain ops of eager mode by themselves.

In: records that say so (`Op.fast`). Out: `Op.direct`, which calls try first. It returns a result,
or NotImplemented where the general way has to run. Called by `Op`; the runtime installs its maker.

Programs that run an op a few times only shall not wait for native code, so the first calls of an op
are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Direct:
    """Native function in front of a public function that prepares its arguments in Python.

    fast    its kind, as of a record
    direct  the function to try
    """

    __slots__ = ("name", "fast", "direct")

    def __init__(self, fast: str, name: str) -> None:
        self.fast, self.name = fast, name
        self.direct = counting(self)
        functions[name] = self


functions: dict[str, Direct] = {}
parameters: list[type] = []  # the class of parameters, which compute as plain tensors do
parameter_watches: list[Callable[[type], None]] = []
CALLS = 500  # of an op before its direct function is made: a compile takes as long as many calls
_maker: list[Callable[[Any], Callable[..., Any] | None]] = []


def counting(op: Any) -> Callable[..., Any]:
    """Return the first `direct` of a record: it declines calls, then has the native one made."""
    left = CALLS

    def direct(*operands: Any) -> Any:
        nonlocal left
        left -= 1
        if left <= 0:
            make(op)
        return NotImplemented

    return direct


def make(op: Any) -> None:
    """Make the native function of a record; a recording, in which none is made, has it wait."""
    before, found = op.direct, None
    op.direct = declines  # what makes it may run the op
    try:
        for maker in _maker:
            found = maker(op)
    finally:
        op.direct = before if found is None else found


def install_maker(maker: Callable[[Any], Callable[..., Any] | None]) -> None:
    """Set the function that makes native functions: `declines` where there is no native code, None
    where it is not the time."""
    _maker[:] = [maker]


def declines(*operands: Any) -> Any:
    """Do nothing: the general way has to run."""
    return NotImplemented


def install_parameter(kind: type) -> None:
    """Set the class of parameters, once it is imported."""
    parameters[:] = [kind]
    for watch in parameter_watches:
        watch(kind)
