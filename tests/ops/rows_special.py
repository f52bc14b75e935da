"""Rows of the special functions: what PyTorch's samples of them leave out, special values and
second gradients among them.
"""

from __future__ import annotations

from collections.abc import Callable

import tracejit
from tests.opinfo import OpInfo
from tests.ops.rows_pointwise import binary, unary


def row(name: str, samples: Callable, ulp: float = 64, **keywords: object) -> OpInfo:
    first = name.partition(".")[0]

    def theirs(*arguments: object) -> object:
        import torch

        return getattr(torch.special, first, getattr(torch, first, None))(*arguments)

    ours = getattr(tracejit.special, first, getattr(tracejit, first, None))
    return OpInfo(name, samples, function=ours, torch=theirs, ulp=ulp, cancel=4, **keywords)


POSITIVE, PART = unary(0.2, 4), unary(0.1, 0.9)
SCIPY = {"compiled": False}  # a program calls what eager mode calls; PyTorch's samples run so

ROWS = [
    *(row(name, POSITIVE, **SCIPY) for name in ("gammaln", "i0e", "i1e")),
    *(row(name, unary(), **SCIPY) for name in ("erfcx", "log_ndtr")),
    row("psi", unary(-3.9, 4), differentiable=False, ulp=512, **SCIPY),
    row("erfinv", PART, **SCIPY),
    row("ndtri", PART, **SCIPY),
    row("gammainc", binary(0.2, 4, numbers=()), constant=(0,), ulp=512, **SCIPY),
    row("zeta", binary(1.5, 4, numbers=()), constant=(0,), specials=False, **SCIPY),
    row("entr", POSITIVE),
    row("sinc", unary()),
    row("logit", PART),
    row("logaddexp", binary(-3, 3, numbers=())),
    row("logaddexp2", binary(-3, 3, numbers=()), **SCIPY),
    row("xlogy", binary(0.2, 3)),
    row("xlog1py", binary(0.2, 3), **SCIPY),
]  # fmt: skip
