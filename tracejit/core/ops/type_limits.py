"""Limits of dtypes: `finfo` and `iinfo`.

In: a dtype. Out: its limits as Python numbers.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tracejit.core.ops.absent_types import AbsentType
from tracejit.core.ops.types import FLOATING, INTEGER, asked_dtype, dtype, get_default_dtype

# Made now: a captured call would see what NumPy 2.0 reads to make them, which no guard checks.
_FLOATING = {
    np.dtype(kind): ml_dtypes.finfo(kind)
    for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
}  # fmt: skip


class finfo:
    """Limits of a floating point dtype; None: of the default dtype.

    bits, eps (the distance of 1 to the next number), max, min, tiny and smallest_normal, resolution
    (10 to minus the digits that are exact), dtype (its name). Of a complex dtype: of its parts.

    >>> import tracejit
    >>> tracejit.finfo(tracejit.float32).eps
    1.1920928955078125e-07

    TypeError for other dtypes.
    """

    def __init__(self, type: dtype | None = None) -> None:
        absent = isinstance(type, AbsentType)
        kind: Any = type if absent else asked_dtype(type) or get_default_dtype()
        if kind.category < FLOATING:
            raise TypeError(
                "tracejit.finfo() requires a floating point input type. Use tracejit.iinfo to "
                "handle 'tracejit.finfo'"
            )
        numbers = kind.numbers if absent else kind.numpy
        array = np.empty(0, numbers).real.dtype if kind.category > FLOATING else numbers
        limits: Any = _FLOATING.get(np.dtype(array)) or ml_dtypes.finfo(array)
        self.bits = int(limits.bits)
        self.eps, self.max, self.min = float(limits.eps), float(limits.max), float(limits.min)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        # Eight bits hold no decimal digit for sure.
        self.resolution = 1.0 if self.bits == 8 else float(f"{limits.resolution:.1}")
        self.dtype = str(np.dtype(array))

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):.6g}" for name in names)
        return f"finfo({shown}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer dtype: bits, max, min, dtype (its name).

    >>> import tracejit
    >>> tracejit.iinfo(tracejit.int8)
    iinfo(min=-128, max=127, dtype=int8)

    TypeError for other dtypes.
    """

    def __init__(self, type: dtype) -> None:
        type = type if isinstance(type, AbsentType) else asked_dtype(type)
        if type.category != INTEGER:
            raise TypeError(
                "tracejit.iinfo() requires an integer input type. Use tracejit.finfo to handle "
                "'tracejit.iinfo'"
            )
        limits = np.iinfo(type.numbers if isinstance(type, AbsentType) else type.numpy)
        self.bits, self.max, self.min = limits.bits, int(limits.max), int(limits.min)
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
