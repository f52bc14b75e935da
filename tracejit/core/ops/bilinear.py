"""Bilinear forms: products of two vectors with a matrix between, for each of several matrices.

In: two batches of vectors, matrices. Out: a number for each matrix. Called by users as
`nn.functional.bilinear`, by `nn`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.shapes import equal, hint


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """Multiply input1 (..., m) and input2 (..., n) with `weight` (k, m, n) between; add `bias`
    (k,).

    >>> import tracejit
    >>> x, y, w = tracejit.ones(1, 2), tracejit.ones(1, 3), tracejit.ones(1, 2, 3)
    >>> tracejit.nn.functional.bilinear(x, y, w)
    tensor([[6.]])

    Out (..., k). RuntimeError for sizes that do not fit.
    """
    ranks = len(input1.shape), len(input2.shape)
    if ranks[0] != ranks[1]:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {ranks[0]} and {ranks[1]}"
        )
    for d, (one, other) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if not equal(one, other):
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {hint(one)} and "
                f"{hint(other)}"
            )
    count, *sizes = weight.shape
    for name, x, size in (("input1", input1, sizes[0]), ("input2", input2, sizes[1])):
        if not equal(x.shape[-1], size):
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {hint(x.shape[-1])} but "
                f"expected {hint(size)}"
            )
    if bias is not None and not equal(bias.shape[0], count):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {hint(bias.shape[0])} but "
            f"expected {hint(count)}"
        )
    rows = input1.unsqueeze(-2) @ weight.permute(1, 0, 2).reshape((sizes[0], -1))
    rows = rows.reshape((*input1.shape[:-1], count, sizes[1]))
    out = (rows @ input2.unsqueeze(-1)).squeeze(-1)
    return out if bias is None else out + bias
