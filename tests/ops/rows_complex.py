"""Rows of what is done with complex numbers, and of functions of one or two of them."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.opinfo import COMPLEX, FLOATS, OpInfo, Sample, array
from tests.ops.rows_linalg import shaped
from tests.ops.rows_linalg_factors import named
from tracejit.core.ops.types import dtype


def unary(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    yield Sample((array(rng, d, 2, 3),))
    yield Sample((array(rng, d, 0, 2),))
    yield Sample((array(rng, d),))


def row(name: str, samples: Callable = unary, **keywords: Any) -> OpInfo:
    return OpInfo(f"{name}.complex", samples, **{"dtypes": COMPLEX, "ulp": 16, **keywords})


def of_real(name: str, samples: Callable, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples, **{"dtypes": FLOATS, "specials": False, **keywords})


def numbers(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for number in (2, 0.5, -1 + 2j, 0):
        yield Sample((array(rng, d, 3), number))


def bases(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for number in (2, -1 + 2j):
        yield Sample((number, array(rng, d, 3)))


def magnitudes(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    """Not negative: there PyTorch's gradient has the other sign than differences."""
    yield Sample((array(rng, d, 2, 3, low=0.1), array(rng, d, 3)))


def attribute(name: str) -> Callable:
    return lambda x: getattr(x, name)


def written(part: str) -> Callable:
    def call(x: Any) -> Any:
        x = x.clone()
        getattr(x, part).mul_(3)
        return x

    return call


def far_from_singular(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    """Square matrices with eigenvalues apart, and what they may be multiplied with."""
    for shape in ((3, 3), (2, 2, 2)):
        spread = np.diag(np.arange(1.0, shape[-1] + 1)) * 2
        yield Sample(((array(rng, d, *shape, low=-1, high=1) + spread).astype(d.numpy),))


def tall_systems(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    yield Sample((array(rng, d, 4, 2), array(rng, d, 4, 3)))


def systems(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for (a,) in (s.args for s in far_from_singular(rng, d)):
        yield Sample((a, array(rng, d, *a.shape[:-1], 2)))


def spectrum(A: Any) -> tuple:
    """What does not depend on the order of eigenvalues, or on the angles of vectors."""
    values, vectors = named("linalg.eig")(A)
    return (values * values * values).sum(-1), (abs(vectors) ** 3).sum(-1)


def tall(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    yield from (Sample((array(rng, d, *shape),)) for shape in ((3, 2), (2, 3), (2, 2, 2)))


def definite(A: Any) -> Any:
    return A @ A.mH


def singular(A: Any) -> tuple:
    """What does not depend on the angles of vectors."""
    U, S, Vh = named("linalg.svd")(A, full_matrices=False)
    return S, abs(U) ** 3, U[..., :, :1] @ Vh[..., :1, :]


def hermitian(A: Any) -> tuple:
    values, vectors = named("linalg.eigh")(A + A.mH)
    return values, abs(vectors) ** 3


def with_factor(name: str, *more: Any) -> Any:
    return lambda A: named(name)(definite(A), *more)


def by_cholesky(A: Any) -> tuple:
    lower = named("linalg.cholesky")(definite(A))
    return named("cholesky_solve")(A, lower), named("cholesky_inverse")(lower)


def by_lu(A: Any, B: Any) -> tuple:
    factors, pivots = named("linalg.lu_factor")(A)
    return (named("linalg.lu_solve")(factors, pivots, B),
            named("linalg.lu_solve")(factors, pivots, B, adjoint=True))


def square(name: str, function: Any = None, samples: Any = far_from_singular) -> OpInfo:
    return row(f"linalg.{name}", samples, function=function or named(f"linalg.{name}"), cancel=64,
               strides=False, second_order=False)


PAIR = shaped(((2, 3), (3,)), ((), (2,)))
ROWS = [
    of_real("complex", PAIR),
    of_real("polar", magnitudes, ulp=4, cancel=4),
    of_real("view_as_complex", shaped(((3, 2),), ((2, 3, 2),)), strides=False),
    of_real("angle", unary),
    row("view_as_real", shaped(((2, 3),), ((),))),
    *(row(name) for name in (
        "conj", "real", "imag", "angle", "abs", "sgn", "isreal", "exp", "log",
        "sqrt", "sin", "cos", "tanh", "reciprocal", "square", "sigmoid", "sum", "mean", "var")),
    *(row(f"written_{part}", function=written(part)) for part in ("real", "imag")),
    *(row(name, shaped(((2, 3),),), function=attribute(name)) for name in ("H", "mH", "T")),
    *(row(name, PAIR) for name in ("mul", "div", "add", "eq")),
    row("pow", PAIR, second_order=False), row("pow.numbers", numbers),
    row("pow.base", bases),
    row("matmul", shaped(((2, 3), (3, 4)), ((2, 2, 3), (3,))), cancel=4),
    row("prod", shaped(((2, 3),))),
    row("cat", lambda rng, d: [Sample(([array(rng, d, 2), array(rng, d, 3)],))]),
    row("norm", shaped(((2, 3),))),
    *(row(f"linalg.{name}", far_from_singular, function=named(f"linalg.{name}"), cancel=16,
          strides=False)
      for name in ("inv", "det")),
    row("linalg.solve", systems, function=named("linalg.solve"), cancel=16,
        strides=False),
    row("linalg.eig", far_from_singular, function=spectrum, cancel=64),
    square("svd", singular, tall), square("svdvals", None, tall), square("eigh", hermitian),
    square("eigvalsh", lambda A: named("linalg.eigvalsh")(A + A.mH)),
    square("qr", None, tall), square("cholesky", with_factor("linalg.cholesky")),
    square("cholesky_solve", by_cholesky), square("lu", lambda A: named("linalg.lu")(A)[1:]),
    square("lu_solve", by_lu, systems), square("slogdet"), square("pinv", None, tall),
    square("matrix_exp"),
    square("lstsq", lambda A, B: named("linalg.lstsq")(A, B)[0], systems),
    square("lstsq_residuals", lambda A, B: named("linalg.lstsq")(A, B, driver="gelss")[1:],
           tall_systems),
    square("matrix_norm", lambda A: named("linalg.matrix_norm")(A, "nuc"), tall),
    of_real("linalg.eig", far_from_singular, function=spectrum, cancel=64),
]  # fmt: skip
