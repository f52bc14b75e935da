"""Rows of linear algebra: solvers, determinants, factors, singular values and eigenvalues."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

import tracejit
from tests.opinfo import OpInfo, Sample, array
from tracejit.core.ops.types import dtype


def named(name: str) -> Callable[..., Any]:
    """The function of that name of the library that the first tensor is of."""

    def call(*args: Any, **keywords: Any) -> Any:
        first = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
        room: Any = tracejit if isinstance(first, tracejit.Tensor) else import_module("torch")
        for part in name.split("."):
            room = getattr(room, part)
        return room(*args, **keywords)

    return call


def regular(rng: np.random.Generator, d: dtype, *shape: int) -> np.ndarray:
    """Matrices whose singular values lie between 1 and 2 and differ."""
    *_, m, n = shape
    u, _, vh = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    return np.asarray(((u * np.linspace(2, 1, min(m, n))) @ vh), d.numpy)


def positive(rng: np.random.Generator, d: dtype, *shape: int) -> np.ndarray:
    a = regular(rng, d, *shape)
    return np.asarray(a @ a.swapaxes(-2, -1), d.numpy)


def symmetric(rng: np.random.Generator, d: dtype, *shape: int) -> np.ndarray:
    a = positive(rng, d, *shape)
    return a - np.eye(shape[-1], dtype=d.numpy) * d.numpy.type(1.7)


def samples_of(make: Callable, *calls: tuple, **keywords: object) -> Callable:
    """One sample for each tuple of shapes; the first operand is made by `make`."""

    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for first, *others in calls:
            yield Sample((make(rng, d, *first), *(array(rng, d, *s) for s in others)), keywords)

    return samples


# Programs call the rest in the same way, and PyTorch's samples run there too.
COMPILED = {"linalg.solve", "linalg.det", "linalg.cholesky", "linalg.qr", "linalg.lu", "linalg.svd",
            "linalg.eigh", "linalg.pinv", "linalg.lstsq", "linalg.matrix_exp"}  # fmt: skip


def row(name: str, samples: Callable, see: Callable = lambda found: found,
        function: Callable | None = None, **keywords: Any) -> OpInfo:  # fmt: skip
    called = function or named(name.partition(":")[0])
    given = {"strides": False, "compiled": name in COMPILED, **keywords}
    return OpInfo(name, samples, function=lambda *a, **k: see(called(*a, **k)), cancel=32,
                  specials=False, **given)  # fmt: skip


def vectors(found: Any) -> tuple:
    """(values, vectors) but for the signs of the vectors."""
    return found[0], abs(found[1])


def singular(rng: np.random.Generator, d: dtype, *shape: int) -> np.ndarray:
    """Matrices of which one column is the last again."""
    a = array(rng, d, *shape)
    a[..., 0] = a[..., -1]
    return a


def triple_product(a: Any) -> Any:
    """1 + determinants. PyTorch's own have no gradient where one is exactly 0."""
    return (a[..., 0, :] * a[..., 1, :].cross(a[..., 2, :], -1)).sum(-1) + 1


def without_signs(found: Any) -> tuple:
    left, values, right = found
    k = values.shape[-1]
    return abs(left[..., :k]), values, (left[..., :k] * values.unsqueeze(-2)) @ right[..., :k, :]


def lower(x: Any, **keywords: Any) -> Any:
    """Cholesky of the symmetric part: differences must not leave it."""
    return named("linalg.cholesky")((x + x.mT) / 2, **keywords)


def both(name: str) -> Callable[..., Any]:
    """A function of a symmetric matrix's symmetric part."""
    return lambda x, **keywords: named(name)((x + x.mT) / 2, **keywords)


def solved_from_factors(a: Any, b: Any, **keywords: Any) -> Any:
    return named("linalg.lu_solve")(*named("linalg.lu_factor")(a), b, **keywords)


SQUARE = (((2, 3, 3),), ((0, 0),))
RECTANGLES = (((3, 2),), ((2, 3),), ((2, 2, 2),), ((0, 3),))

ROWS = [
    row("linalg.inv", samples_of(regular, *SQUARE)),
    row("linalg.inv_ex", samples_of(regular, ((3, 3),))),
    row("linalg.solve", samples_of(regular, ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)),
        ((2, 3, 3), (4, 1, 3, 2)), ((0, 0), (0, 2)))),
    row("linalg.solve:right", samples_of(regular, ((3, 3), (2, 3))),
        function=lambda a, b: named("linalg.solve")(a, b, left=False)),
    row("linalg.solve_triangular:upper", samples_of(regular, ((3, 3), (3, 2)),
        ((2, 3, 3), (3, 2)), upper=True), strides=True),
    row("linalg.solve_triangular:lower",
        samples_of(regular, ((3, 3), (2, 3)), upper=False, left=False, unitriangular=True)),
    row("triangular_solve", samples_of(array, ((3, 2),)),
        function=lambda b: named("triangular_solve")(b, b @ b.mT + 2, transpose=True)[0]),
    row("cholesky_solve", samples_of(regular, ((2, 2), (2, 2)), ((2, 1), (2, 2, 2))),
        function=lambda b, a: named("cholesky_solve")(b, named("linalg.qr")(a)[1], True)),
    row("cholesky_inverse", samples_of(regular, ((3, 3),)),
        function=lambda a: named("cholesky_inverse")(a.tril() + 0)),
    row("linalg.det", samples_of(regular, *SQUARE), strides=True),
    row("linalg.det:singular", samples_of(singular, ((3, 3),), ((2, 3, 3),)), second_order=False,
        function=lambda x: named("linalg.det")(x) + 1, torch=triple_product),
    row("linalg.slogdet", samples_of(regular, *SQUARE)),
    row("logdet", samples_of(positive, *SQUARE)),
    row("linalg.cholesky", samples_of(positive, *SQUARE), function=lower),
    row("linalg.cholesky:upper", samples_of(positive, ((3, 3),), upper=True), function=lower),
    row("linalg.qr", samples_of(regular, *RECTANGLES), strides=True),
    row("linalg.qr:complete", samples_of(regular, ((3, 4),), mode="complete")),
    row("linalg.qr:r", samples_of(regular, ((4, 3),), mode="r"), differentiable=False),
    row("linalg.lu", samples_of(regular, *RECTANGLES), see=lambda found: found[1:]),
    row("linalg.lu:permuted", samples_of(regular, *RECTANGLES), see=lambda found: found[0],
        differentiable=False),
    row("linalg.lu_factor", samples_of(regular, ((3, 3),), ((2, 3, 3),))),
    row("linalg.lu_solve", samples_of(regular, ((3, 3), (3, 2))), function=solved_from_factors),
    row("linalg.lu_solve:adjoint", samples_of(regular, ((3, 3), (2, 3)), adjoint=True, left=False),
        function=solved_from_factors),
    row("linalg.svd", samples_of(regular, *RECTANGLES), see=without_signs, strides=True),
    row("linalg.svd:thin", samples_of(regular, *RECTANGLES, full_matrices=False),
        see=without_signs),
    row("linalg.svdvals", samples_of(regular, *RECTANGLES)),
    row("linalg.eigh", samples_of(symmetric, *SQUARE), see=vectors, function=both("linalg.eigh")),
    row("linalg.eigh:upper", samples_of(symmetric, ((3, 3),), UPLO="U"), see=vectors,
        function=both("linalg.eigh")),
    row("linalg.eigvalsh", samples_of(symmetric, *SQUARE), function=both("linalg.eigvalsh")),
]  # fmt: skip
