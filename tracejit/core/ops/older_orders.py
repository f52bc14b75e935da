"""Numbers before tensors: the order of arguments that programs older than PyTorch 1.5 write.

In: front functions whose numbers are keywords by now. Out: functions that also take
`x.add_(0.1, y)`, `x.addcmul_(0.9, y, z)` and `torch.addmm(0.5, x, 2, a, b)`, as PyTorch still does.
Called where those functions are defined.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tracejit.core.ops.pointwise_record import is_number

_told: set[str] = set()


def older_order(*numbers: str) -> Callable[[Any], Any]:
    """Decorate a front function: the numbers of these names may come before its operands.

    Of two numbers, the first may also come before the input: `addmm(beta, input, ...)`.
    """

    def decorate(function: Any) -> Any:
        count = function.__code__.co_argcount
        name = function.__name__

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            extra = len(arguments) - count
            if not 0 < extra <= len(numbers):
                return function(*arguments, **named)
            first, *rest = arguments
            if len(numbers) == 2 and is_number(first):
                first, rest[0] = rest[0], first
            given, operands = rest[:extra], rest[extra:]
            if not all(map(is_number, given)):
                return function(*arguments, **named)
            if not _told:
                _tell(name, numbers[:extra])
            return function(first, *operands, **dict(zip(numbers, given)), **named)

        return call

    return decorate


def _tell(name: str, numbers: tuple[str, ...]) -> None:
    """Warn once in a process, as PyTorch does."""
    _told.add(name)
    before = ", ".join(f"Number {number}" for number in numbers)
    keywords = ", ".join(f"Number {number} = 1" for number in numbers)
    warnings.warn(
        f"This overload of {name} is deprecated:\n\t{name}({before}, Tensor ...)\nConsider using "
        f"one of the following signatures instead:\n\t{name}(Tensor ..., *, {keywords})",
        UserWarning, stacklevel=4)
