"""Element types that PyTorch has and tensors here do not: programs name them to compare with them.

In: nothing. Out: dtypes that equal no tensor's, and refuse what needs their elements.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tracejit.core.ops.types import COMPLEX, FLOATING, INTEGER, dtype


class AbsentType(dtype):
    """Element type that no tensor has: its name, its size and the kind of numbers it could hold.

    Code that needs its elements gets NotImplementedError.

    >>> import tracejit
    >>> tracejit.zeros(2).dtype == tracejit.float8_e4m3fn, tracejit.float8_e4m3fn.itemsize
    (False, 1)
    """

    __slots__ = ("numbers",)

    def __init__(self, name: str, numbers: Any, category: int):
        self.name, self.numbers, self.category = name, np.dtype(numbers), category
        self.itemsize = self.numbers.itemsize * (2 if category == COMPLEX else 1)

    @property
    def is_signed(self) -> bool:
        return not self.name.startswith("uint") and not self.name.endswith("fnu")

    def __getattr__(self, attribute: str) -> Any:
        # `numpy` and `rank` were never set: whatever makes or converts elements comes by here.
        if attribute in ("numpy", "rank"):
            raise NotImplementedError(f"tensors of {self!r} are not supported")
        raise AttributeError(f"'dtype' object has no attribute {attribute!r}")

    def to_real(self) -> dtype:
        raise NotImplementedError(f"tensors of {self!r} are not supported")

    to_complex = to_real

    def __reduce__(self) -> str:
        return self.name


uint16, uint32, uint64 = (
    AbsentType(kind.__name__, kind, INTEGER) for kind in (np.uint16, np.uint32, np.uint64)
)
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = (
    AbsentType(kind.__name__, kind, FLOATING)
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
                 ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu)
)
complex32 = chalf = AbsentType("complex32", np.float16, COMPLEX)
