"""How a native program says that a check failed."""

from __future__ import annotations


class ProgramError(RuntimeError):
    """A check in a kernel failed before anything visible was written; `value` is the operand it saw."""

    def __init__(self, message: str, value: int = 0):
        super().__init__(message)
        self.value = value
