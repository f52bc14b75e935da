"""einsum: sums of products written with one letter for each dimension.

In: an equation such as "bij,bjk->bik" and tensors of one dtype. Out: a tensor. Operands are joined
from left to right; each pair is one (stacked) product of matrices, or an elementwise product where
nothing is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.linalg import matmul
from tracejit.core.ops.pointwise_record import is_tensor

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = [chr(code) for code in range(0x2460, 0x2480)]  # labels no equation can name


def einsum(equation: Any, *operands: Any) -> Any:
    """Multiply the operands and sum over all letters that are not in the output.

    Without "->", the output has the letters that occur once, in alphabetical order; "..." stands
    for any dimensions, which broadcast. A letter twice in one operand takes its diagonal.

    >>> import tracejit
    >>> x, y = tracejit.ones(2, 3), tracejit.ones(3, 4)
    >>> tracejit.einsum("ij,jk->ik", x, y)[0].tolist()
    [3.0, 3.0, 3.0, 3.0]

    Or without an equation: each operand is followed by a list of the numbers (0 to 51) of its
    dimensions and `...`; a last list is that of the output.

    RuntimeError where the equation does not fit the operands.
    """
    if is_tensor(equation):
        equation, operands = _from_lists((equation, *operands))
    if not isinstance(equation, str):
        raise TypeError("einsum(): argument 'equation' (position 1) must be str, not "
                        f"{type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or "
                         "at least one operand and its subscripts list")
    inputs, output = _parsed(equation, operands)
    terms = [_diagonals(x, labels) for x, labels in zip(operands, inputs)]
    found, labels = terms[0]
    for k, (x, own) in enumerate(terms[1:], 1):
        later = {label for _, names in terms[k + 1:] for label in names}
        found, labels = _joined(found, labels, x, own, later | set(output))
    found, labels = _summed(found, labels, set(output))
    return found.permute([labels.index(label) for label in output])


def _from_lists(given: tuple) -> tuple[str, tuple]:
    """Return (equation, operands) of arguments in which a list follows each operand."""
    count = len(given) // 2
    terms = [_written(numbers) for numbers in given[1 : 2 * count : 2]]
    output = f"->{_written(given[-1])}" if len(given) % 2 else ""
    return ",".join(terms) + output, given[: 2 * count : 2]


def _written(numbers: Sequence[Any]) -> str:
    for n in numbers:
        if n is not ... and not 0 <= n < len(_LETTERS):
            raise ValueError(f"einsum(): subscript {n} is not within the valid range [0, "
                             f"{len(_LETTERS)})")
    return "".join("..." if n is ... else _LETTERS[n] for n in numbers)


def _parsed(equation: str, operands: Sequence[Any]) -> tuple[list[list[str]], list[str]]:
    """Return the labels of each operand, and of the output."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        which = "fewer" if len(operands) < len(texts) else "more"
        raise RuntimeError(f"einsum(): {which} operands were provided than specified in the "
                           "equation")
    inputs = [_labels(text, len(x.shape), k) for k, (text, x) in enumerate(zip(texts, operands))]
    wide = max((labels for labels in (_between(row) for row in inputs)), key=len)
    if arrow:
        return inputs, _output(right, wide, inputs)
    every = [label for row in inputs for label in row if label not in wide]
    return inputs, [*wide, *sorted(label for label in every if every.count(label) == 1)]


def _output(text: str, wide: Sequence[str], inputs: list[list[str]]) -> list[str]:
    """Return the labels of the output. RuntimeError unless each occurs once here and in some
    operand."""
    found = _spelled(text, wide)
    for k, label in enumerate(found):
        if label not in _ELLIPSIS and all(label not in row for row in inputs):
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the "
                               "equation for any input operand")
        if label in found[:k]:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the "
                               "output")
    return found


def _labels(text: str, ndim: int, k: int) -> list[str]:
    named, dots = len(text.replace("...", "")), "..." in text
    if named > ndim or named < ndim and not dots:
        fits = "is more than" if dots else "does not match"
        ending = "" if dots else " and no ellipsis was given"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) {fits} the number of "
            f"dimensions ({ndim}) for operand {k}{ending}"
        )
    return _spelled(text, _ELLIPSIS[len(_ELLIPSIS) - (ndim - named):] if ndim > named else [])


def _spelled(text: str, wide: Sequence[str]) -> list[str]:
    before, dots, after = text.partition("...")
    letters = [*before, *(wide if dots else ()), *after]
    bad = [x for x in letters if not x.isalpha() and x not in _ELLIPSIS]
    if bad:
        raise RuntimeError(f"einsum(): invalid subscript given: {bad[0]!r}")
    return letters


def _between(labels: Sequence[str]) -> list[str]:
    return [label for label in labels if label in _ELLIPSIS]


def _diagonals(x: Any, labels: list[str]) -> tuple[Any, list[str]]:
    """Take diagonals until each of an operand's labels occurs once."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = x.diagonal(0, first, second)
            labels = [*(n for k, n in enumerate(labels) if k not in (first, second)), label]
    return x, labels


def _summed(x: Any, labels: list[str], kept: set[str]) -> tuple[Any, list[str]]:
    """Sum over the labels that are not in `kept`."""
    gone = [k for k, label in enumerate(labels) if label not in kept]
    return (x.sum(gone) if gone else x), [label for label in labels if label in kept]


def _joined(x: Any, left: list[str], y: Any, right: list[str],
            kept: set[str]) -> tuple[Any, list[str]]:
    """Multiply two operands and sum over the labels that are not in `kept`."""
    x, left = _summed(x, left, kept | set(right))
    y, right = _summed(y, right, kept | set(left))
    same = [n for n in left if n in right and n in kept]
    inner = [n for n in left if n in right and n not in kept]
    rows = [n for n in left if n not in right]
    columns = [n for n in right if n not in left]
    x = x.permute([left.index(n) for n in (*same, *rows, *inner)])
    y = y.permute([right.index(n) for n in (*same, *inner, *columns)])
    labels = [*same, *rows, *columns]
    if not inner:
        wide = x.reshape((*x.shape, *(1,) * len(columns)))
        return wide * _spread(y, len(same), len(rows)), labels
    x, y = _common(x, y, len(same), len(rows), len(inner))
    batch, n = x.shape[:len(same)], x.shape[len(same):len(same) + len(rows)]
    k, m = x.shape[-len(inner):], y.shape[len(same) + len(inner):]
    size = shapes.numel
    product = matmul(x.reshape((size(batch), size(n), size(k))),
                     y.reshape((size(batch), size(k), size(m))))
    return product.reshape((*batch, *n, *m)), labels


def _spread(y: Any, same: int, rows: int) -> Any:
    """Give `y` dimensions of size 1 for the other operand's rows."""
    return y.reshape((*y.shape[:same], *(1,) * rows, *y.shape[same:]))


def _common(x: Any, y: Any, same: int, rows: int, inner: int) -> tuple[Any, Any]:
    """Expand the dimensions that both operands have to equal sizes: those of size 1 are
    repeated."""
    batch = shapes.broadcast(tuple(x.shape[:same]), tuple(y.shape[:same]))
    summed = shapes.broadcast(tuple(x.shape[same + rows:]), tuple(y.shape[same:same + inner]))
    return (x.expand((*batch, *x.shape[same:same + rows], *summed)),
            y.expand((*batch, *summed, *y.shape[same + inner:])))
