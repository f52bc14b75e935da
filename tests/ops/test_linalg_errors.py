"""What linear algebra refuses, and the words: each line as PyTorch says it, but for the library's
own names of its errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tracejit
from tracejit.linalg import LinAlgError

NOT_CALLED = "inv inv_ex det slogdet cholesky qr svd svdvals eigh eigvalsh pinv matrix_rank cond lu"
KINDS = [
    f"t.linalg.{name}({argument})"
    for name in (*NOT_CALLED.split(), "matrix_exp", "lu_factor")
    for argument in ("long", "half", "wide", "vector")
    if not (argument == "half" and name == "matrix_exp")
]
CALLS = """
t.linalg.inv(ones)
t.linalg.inv(t.stack([eye, ones]))
t.linalg.inv_ex(ones, check_errors=True)
t.inverse(wide)
t.linalg.cholesky(-ones)
t.linalg.cholesky(t.stack([eye, -eye]))
t.linalg.cholesky_ex(-ones, check_errors=True)
t.cholesky(-ones)
t.linalg.solve(ones, vector)
t.linalg.solve(t.stack([eye, ones]), ones)
t.linalg.solve(wide, vector)
t.linalg.solve(eye, t.ones(3))
t.linalg.solve(eye, t.ones(3, 1))
t.linalg.solve(eye, vector, left=False)
t.linalg.solve(eye, eye.double())
t.linalg.solve(vector, vector)
t.linalg.solve(eye, t.zeros(()))
t.linalg.solve(half, half)
t.linalg.solve(t.ones(3, 2, 2), t.ones(2, 2, 1))
t.linalg.solve_triangular(eye, vector, upper=True)
t.linalg.solve_triangular(wide, wide, upper=True)
t.linalg.solve_triangular(eye, t.ones(3, 3), upper=True, left=False)
t.linalg.solve_triangular(long, long, upper=True)
t.linalg.lu_solve(*t.linalg.lu_factor(eye), eye.double())
t.linalg.qr(eye, mode="x")
t.linalg.qr(t.ones(3, 2).requires_grad_(), mode="complete")[0].sum().backward()
t.linalg.qr(t.ones(3, 2).requires_grad_(), mode="r")[1].sum().backward()
t.linalg.eigh(eye, UPLO="x")
t.linalg.eig(vector)
t.linalg.eig(wide)
t.linalg.eig(long)
t.linalg.eig(half)
t.linalg.eig(t.full((2, 2), nan))
t.linalg.eigvals(vector)
t.linalg.eigvals(wide)
t.linalg.eigvals(long)
t.linalg.svd(eye, driver="x")
t.linalg.svd(t.full((2, 2), nan))
t.linalg.svd(t.full((3, 2, 2), nan))
t.linalg.lstsq(eye, eye, driver="x")
t.linalg.lstsq(wide, t.ones(3, 1))
t.linalg.lstsq(long, long)
t.linalg.lstsq(vector, vector)
t.linalg.lstsq(eye, eye.double())
t.linalg.lstsq(wide, t.ones(2, 1), driver="gels")
t.linalg.lstsq(t.ones(2, 3, 2), t.ones(4, 3, 1))
t.linalg.lstsq(t.ones(3, 2), t.ones(2, 3, 1))
t.linalg.matrix_power(wide, 2)
t.linalg.matrix_power(ones, -1)
t.linalg.matrix_power(long, -1)
t.linalg.multi_dot([eye])
t.linalg.multi_dot([eye, wide, t.ones(4, 4)])
t.linalg.multi_dot([eye, t.ones(2, 2, 2)])
t.linalg.multi_dot([eye, eye.double()])
t.linalg.multi_dot([eye, vector, eye])
t.chain_matmul()
t.chain_matmul(eye, t.ones(2, 2, 2))
t.linalg.cross(vector, vector)
t.linalg.cross(t.ones(3), t.ones(2, 3))
t.linalg.cross(t.ones(3), t.ones(3).double())
t.linalg.cross(t.ones(3, 4), t.ones(3, 4), dim=5)
t.cross(ones, ones)
t.cross(t.ones(3, 3), t.ones(1, 3))
t.linalg.diagonal(vector)
t.linalg.vecdot(vector, t.ones(3))
t.linalg.vecdot(vector, vector.double())
t.linalg.vecdot(long, long)
t.linalg.vander(vector, N=1)
t.linalg.tensorinv(wide, ind=1)
t.linalg.tensorinv(wide, ind=0)
t.linalg.tensorsolve(wide, vector)
t.linalg.cond(wide, "fro")
t.linalg.cond(wide, 1)
t.linalg.cond(eye, "x")
t.linalg.cond(eye, 3)
t.linalg.norm(vector, "fro")
t.linalg.norm(t.ones(2, 2, 2), 2)
t.linalg.norm(wide, "x")
t.linalg.norm(wide, 3)
t.linalg.norm(long)
t.linalg.norm(wide.double(), dtype=t.float32)
t.linalg.norm(t.ones(2, 2, 2), 2, (0, 1, 2))
t.linalg.vector_norm(t.ones(0), inf)
t.linalg.vector_norm(t.ones(0), -1)
t.linalg.vector_norm(t.ones(0, 2), inf, dim=0)
t.linalg.vector_norm(wide, 3, dim=(0, 0))
t.linalg.vector_norm(wide, dtype=t.int64)
t.linalg.vector_norm(wide, dtype=t.complex64)
t.linalg.vector_norm(t.ones(2, dtype=t.complex64), dtype=t.float32)
t.linalg.matrix_norm(vector)
t.linalg.matrix_norm(long)
t.linalg.matrix_norm(wide, dim=(0, 0))
t.linalg.matrix_norm(wide, dim=(0,))
t.linalg.matrix_norm(half, 2)
t.norm(t.ones(2, 2, 2), "nuc")
t.norm(vector, "nuc")
t.dist(wide, vector)
t.dist(long, long)
t.cdist(wide, t.ones(2, 4))
t.cdist(vector, wide)
t.cdist(long, long)
t.cdist(wide, wide.double())
t.cdist(half, half)
t.cdist(wide, wide, p=-1)
t.cdist(wide, wide, compute_mode="x")
t.tensordot(wide, wide, 1)
t.tensordot(wide, wide, 3)
t.tensordot(wide, wide, -1)
t.tensordot(wide, wide, ([0], [0, 1]))
t.tensordot(wide, wide, ([0], [1]))
t.tensordot(wide, wide.double(), ([0], [0]))
t.tensordot(wide, wide, ([0, 0], [0, 0]))
t.addbmm(eye, t.ones(3, 2, 2), t.ones(2, 2, 2))
t.addbmm(eye, t.ones(3, 2, 2), t.ones(3, 3, 2))
t.addbmm(eye, t.ones(3, 2, 2), t.ones(3, 2, 2).double())
t.addbmm(t.ones(3, 3), t.ones(3, 2, 2), t.ones(3, 2, 2))
t.addmv(vector, wide, vector)
t.addmv(t.ones(3), eye, vector)
t.addmv(vector, vector, vector)
t.addmv(vector, long, vector)
t.addr(eye, wide, vector)
t.addr(eye, vector, t.ones(3))
t.addr(long, long[0], long[0], beta=0.5)
t.vdot(vector, t.ones(3))
t.vdot(vector, vector.double())
t.vdot(wide, vector)
t.ger(wide, vector)
t.cholesky_solve(vector, eye)
t.cholesky_solve(eye, t.ones(3, 3))
t.cholesky_inverse(wide)
t.cholesky_inverse(long)
t.triangular_solve(vector, eye)
vector.trace()
(ones > 0).trace()
""".strip().split("\n")


def outcome(library: Any, call: str) -> tuple[str, str]:
    """The error's name and text."""
    given = {
        "t": library, "inf": math.inf, "nan": math.nan,
        "long": library.ones(2, 2, dtype=library.int64),
        "half": library.ones(2, 2, dtype=library.float16),
        "wide": library.ones(2, 3), "vector": library.ones(2),
        "ones": library.ones(2, 2), "eye": library.eye(2),
    }  # fmt: skip
    try:
        found = eval(call, given)
    except Exception as error:
        return type(error).__name__.strip("_"), str(error).partition("\n")[0]
    return "no error", "" if isinstance(found, tuple) else type(found).__name__


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [*KINDS, *CALLS])
def test_errors_are_those_of_pytorch(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(tracejit, call) == outcome(torch, call)


NAN = """
pinv(x)
pinv(x, hermitian=True)
matrix_rank(x)
matrix_rank(x, hermitian=True)
cond(x)
cond(x, 1)
inv(x)
solve(x, x)
det(x)
slogdet(x)
cholesky(x)
cholesky_ex(x).info
qr(x)
lu(x)
eigh(x)
svd(x)
matrix_exp(x)
matrix_norm(x, 2)
solve_triangular(x, x, upper=True)
""".strip().split("\n")


def of_nan(library: Any, call: str) -> Any:
    """What the call makes of a stack of a regular matrix and one with a nan; or the error."""
    x = library.tensor([[[2.0, 1.0], [1.0, 2.0]], [[math.nan, math.nan], [math.nan, 1.0]]])
    try:
        found = eval(f"t.linalg.{call}", {"t": library, "x": x})
    except Exception as error:
        return type(error).__name__.strip("_"), str(error)
    results = found if isinstance(found, tuple) else (found,)
    return [np.round(abs(np.nan_to_num(y.numpy(), nan=-7.0)), 4).tolist() for y in results]


@pytest.mark.oracle
@pytest.mark.parametrize("call", NAN)
def test_matrices_with_nan_are_pytorchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert of_nan(tracejit, call) == of_nan(torch, call)


def test_gradients_of_matrices_with_nan_are_nan() -> None:
    x = tracejit.full((2, 2), math.nan, requires_grad=True)
    (slope,) = tracejit.autograd.grad(tracejit.linalg.det(x), x, create_graph=True)
    assert slope.isnan().all()
    assert tracejit.autograd.grad(slope.sum(), x)[0].isnan().all()


def test_a_singular_matrix_is_an_error_of_its_own() -> None:
    assert issubclass(LinAlgError, RuntimeError)
    with pytest.raises(LinAlgError, match="diagonal element 2 is zero"):
        tracejit.linalg.inv(tracejit.ones(2, 2))


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_captured_calls_raise_what_plain_ones_do(mode: str) -> None:
    @tracejit.script(mode=mode)
    def halved(x: Any, y: Any) -> Any:
        y += 1
        return tracejit.linalg.solve(x, y) / 2

    seen = []
    for x in (tracejit.eye(2), tracejit.ones(2, 2), 2 * tracejit.eye(2)):
        y = tracejit.ones(2)
        try:
            seen.append(halved(x, y).tolist())
        except LinAlgError as error:
            seen.append(str(error))
        assert y.tolist() == [2.0, 2.0]
    singular = "torch.linalg.solve: The solver failed because the input matrix is singular."
    assert seen == [[1.0, 1.0], singular, [0.5, 0.5]]
    assert halved.report().compiles == 1 and not halved.report().breaks


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_one_program_serves_all_sizes(mode: str) -> None:
    @tracejit.script(mode=mode)
    def solved(x: Any, y: Any) -> Any:
        q, r = tracejit.linalg.qr(x)
        return tracejit.linalg.solve_triangular(r, q.mT @ y, upper=True)

    for batch, n in ((2, 3), (5, 4), (1, 2), (3, 1)):
        x = tracejit.randn(batch, n, n) + 3 * tracejit.eye(n)
        y = tracejit.randn(batch, n, 2)
        assert tracejit.allclose(x @ solved(x, y), y, atol=1e-4)
    assert solved.report().compiles == 1 and not solved.report().breaks
