"""Points that fill a cube evenly; PyTorch's `torch.quasirandom`: refused when they are asked for.

In: nothing. Out: an error that names what has them.
"""

from __future__ import annotations

from typing import Any


class SobolEngine:
    """Sobol's sequence: NotImplementedError when it is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("quasirandom.SobolEngine: Sobol's sequence is not supported; "
                                  "scipy.stats.qmc.Sobol has it")
