"""Rows of linear algebra: norms, least squares, powers, distances, products of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.opinfo import OpInfo, array
from tests.ops.rows_linalg import shaped
from tests.ops.rows_linalg_factors import RECTANGLES, SQUARE, named, regular, row, samples_of

THREE = (((2, 3),), ((3, 2),), ((2, 3, 2),))


def of_shapes(name: str, *calls: tuple, see: Callable = lambda found: found,
              function: Callable | None = None, row_keywords: dict | None = None,
              **keywords: Any) -> OpInfo:  # fmt: skip
    """A row of what is written in other ops: PyTorch's samples compile it."""
    given = {"compiled": False, **(row_keywords or {})}
    return row(name, shaped(*calls, **keywords), see, function, **given)


def matrix_norm(ord: Any, **keywords: Any) -> OpInfo:
    return row(f"linalg.matrix_norm:{ord}", samples_of(regular, ((2, 3),), ord=ord, **keywords))


def solution(name: str, shape: tuple, other: tuple, **keywords: Any) -> OpInfo:
    return row(name, samples_of(regular, (shape, other), **keywords), see=lambda found: found[0],
               function=named("linalg.lstsq"))  # fmt: skip


def whole(*names: str) -> dict:
    return {"strides": True, "second_order": "first" not in names}


def condition_by_norms(x: Any, p: int) -> Any:
    """PyTorch's own has no gradient: it writes into what its backward reads."""
    import torch

    return torch.linalg.matrix_norm(x, p) * torch.linalg.matrix_norm(torch.linalg.inv(x), p)


ROWS = [
    *(matrix_norm(ord) for ord in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf)),
    row("linalg.matrix_norm:dims",
        samples_of(regular, ((2, 3, 4),), ord="nuc", dim=(2, 0), keepdim=True)),
    of_shapes("linalg.vector_norm", *THREE, ((),)),
    of_shapes("linalg.vector_norm:three", *THREE, ord=3, dim=(0, 1), keepdim=True),
    row("linalg.norm", samples_of(regular, *RECTANGLES)),
    row("linalg.norm:two", samples_of(regular, *RECTANGLES[:2]), function=lambda x:
        named("linalg.norm")(x, 2)),
    row("linalg.cond", samples_of(regular, *RECTANGLES[:3])),
    row("linalg.cond:one", samples_of(regular, ((3, 3),), p=1), torch=condition_by_norms),
    row("linalg.pinv", samples_of(regular, *RECTANGLES), strides=True),
    row("linalg.pinv:bounds", samples_of(regular, ((3, 2),)), function=lambda x: named(
        "linalg.pinv")(x @ x.mT, atol=0.1, rtol=0.01)),
    row("linalg.matrix_rank", samples_of(regular, *RECTANGLES, tol=1.2), differentiable=False),
    solution("linalg.lstsq", (4, 3), (4, 2)),
    solution("linalg.lstsq:vector", (2, 3, 2), (2, 3), driver="gelss"),
    solution("linalg.lstsq:wide", (2, 4), (2, 3)),
    row("linalg.lstsq:residuals", samples_of(regular, ((4, 3), (4, 2)), driver="gels"),
        see=lambda found: found[1], function=named("linalg.lstsq")),
    row("linalg.matrix_exp", samples_of(regular, *SQUARE), strides=True),
    *(row(f"linalg.matrix_power:{n}", samples_of(regular, ((3, 3),), n=n)) for n in (0, 1, 5, -2)),
    of_shapes("linalg.multi_dot", ((2, 3), (3, 4), (4, 1), (1, 2)), ((2,), (2, 2), (2,)),
              function=lambda *x: named("linalg.multi_dot")(list(x))),
    of_shapes("chain_matmul", ((2, 3), (3, 4), (4, 2))),
    of_shapes("linalg.cross", ((3,), (3,)), ((2, 3), (1, 3)), row_keywords=whole()),
    of_shapes("cross", ((3, 2), (3, 2)), row_keywords=whole()),
    of_shapes("linalg.vecdot", ((3,), (3,)), ((2, 3), (3,)), row_keywords=whole()),
    of_shapes("linalg.diagonal", ((2, 3, 4),), offset=1),
    of_shapes("linalg.vander", ((3,),), ((2, 2),), N=3),
    row("linalg.tensorinv", samples_of(regular, ((4, 4),)), function=lambda x:
        named("linalg.tensorinv")(x.reshape(2, 2, 4))),
    row("linalg.tensorsolve", samples_of(regular, ((4, 4), (2, 2))), function=lambda a, b:
        named("linalg.tensorsolve")(a.reshape(2, 2, 4), b)),
    of_shapes("dist", ((2, 3), (3,)), p=3),
    *(of_shapes(f"cdist:{p}", ((3, 2), (2, 2)), ((2, 1, 2, 1), (3, 2, 1)), ((0, 2), (3, 2)), p=p,
                function=named("cdist"), row_keywords=whole("first"))
      for p in (0.0, 1.0, 2.0, 3.5, math.inf)),
    of_shapes("kron", ((2, 3), (2, 2)), ((3,), (2, 2)), ((), (2,)), row_keywords=whole()),
    of_shapes("tensordot", ((2, 3, 4), (3, 4, 2)), row_keywords=whole()),
    of_shapes("tensordot:lists", ((2, 3, 4), (4, 2)), dims=([0, -1], [1, 0]),
              function=named("tensordot")),
    of_shapes("addmv", ((2,), (2, 3), (3,)), ((), (2, 3), (3,)), beta=2, alpha=0.5),
    of_shapes("addbmm", ((2, 4), (5, 2, 3), (5, 3, 4)), ((), (5, 2, 3), (5, 3, 4)), alpha=2),
    of_shapes("addr", ((2, 3), (2,), (3,)), ((3,), (2,), (3,)), beta=0.5, alpha=2),
    of_shapes("addr:without", ((2, 3), (2,), (3,)), beta=0, function=named("addr"),
              row_keywords={"differentiable": False}),
    of_shapes("vdot", ((3,), (3,))),
    of_shapes("ger", ((3,), (2,))),
    row("trace", samples_of(array, ((2, 3),)), function=lambda x: x.trace()),
]  # fmt: skip
