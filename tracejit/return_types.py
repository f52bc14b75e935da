"""Types of results whose parts have names, as PyTorch calls them: `return_types.max` and more.

In: the named tuples of the op families. Out: the same classes under one roof, shown as PyTorch
shows them.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import (
    floating_parts,
    histograms,
    linalg_determinants,
    linalg_eigenvalues,
    linalg_factors,
    linalg_least_squares,
    linalg_solvers,
    linalg_spectra,
    order_statistics,
    reduction,
    scan,
    sorting,
)

_FAMILIES = (
    floating_parts, histograms, linalg_determinants, linalg_eigenvalues, linalg_factors,
    linalg_least_squares, linalg_solvers, linalg_spectra, order_statistics, reduction, scan,
    sorting,
)  # fmt: skip


def _shown(self: Any) -> str:
    parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._fields, self))
    return f"{__name__}.{type(self).__name__}(\n{parts})"


for _family in _FAMILIES:
    for _kept, _type in list(vars(_family).items()):
        if _kept.endswith("Result") and hasattr(_type, "_fields"):
            _type.__repr__, _type.__module__ = _shown, __name__
            globals()[_type.__name__] = _type
