"""Rows of the special functions: what PyTorch's samples of them leave out, special values and
second gradients among them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tracejit
from tests.opinfo import OpInfo, Sample, array
from tests.ops.rows_pointwise import binary, unary


def row(name: str, samples: Callable, ulp: float = 64, **keywords: object) -> OpInfo:
    first = name.partition(".")[0]

    def theirs(*arguments: object) -> object:
        import torch

        return getattr(torch.special, first, getattr(torch, first, None))(*arguments)

    ours = getattr(tracejit.special, first, getattr(tracejit, first, None))
    return OpInfo(name, samples, function=ours, torch=theirs, ulp=ulp, cancel=4, **keywords)


POSITIVE, PART = unary(0.2, 4), unary(0.1, 0.9)
SHAPE = binary(0.2, 4, numbers=())

ROWS = [
    *(row(name, POSITIVE) for name in ("gammaln", "entr", "i0", "i1", "i0e", "i1e")),
    *(row(name, unary()) for name in ("erfcx", "log_ndtr", "ndtr", "sinc")),
    row("gammaln.negative", unary(-3.9, -3.1)),
    row("psi", unary(-3.9, 4), differentiable=False, ulp=512),
    row("multigammaln", lambda rng, d: [Sample((array(rng, d, 5, low=2, high=5), 3))]),
    row("erfinv", PART),
    row("ndtri", PART),
    row("logit", PART),
    row("logit.eps", lambda rng, d: [Sample((array(rng, d, 9), 0.2))]),
    row("logaddexp", binary(-3, 3, numbers=())),
    row("logaddexp2", binary(-3, 3, numbers=())),
    row("xlogy", binary(0.2, 3)),
    row("xlog1py", binary(0.2, 3)),
    row("gammainc", SHAPE, constant=(0,), ulp=512),
    row("gammaincc", SHAPE, constant=(0,), ulp=512),
    row("zeta", binary(1.5, 4, numbers=()), constant=(0,), specials=False),
    row("modified_bessel_k1", POSITIVE, differentiable=False),
    row("airy_ai", unary(), differentiable=False),
    row("spherical_bessel_j0", unary(), differentiable=False),
    row("legendre_polynomial_p", lambda rng, d: [
        Sample((array(rng, d, 4, 1), np.arange(-1, 8).astype(d.numpy)))], differentiable=False,
        specials=False),
]  # fmt: skip
