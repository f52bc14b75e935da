"""Storage of an op's result in an array that NumPy allocated.

In: a fresh contiguous array. Out: a Storage. Its flat block is made on demand: most results of
small ops die before anybody reads it.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.memory import Storage


class ArrayStorage(Storage):
    """Storage over one contiguous array."""

    __slots__ = ("_array", "_flat")

    def __init__(self, array: Any, device: Any):
        self._array, self._flat = array, None
        self.nbytes = array.nbytes
        self.version = 0
        self.device = device
        self.home = None
        self._ptr = None

    @property
    def block(self) -> Any:
        """Bytes as a one-dimensional array."""
        if self._flat is None:
            self._flat = self._array.reshape(-1).view("uint8")
        return self._flat

    @block.setter
    def block(self, block: Any) -> None:
        self._array = self._flat = block
