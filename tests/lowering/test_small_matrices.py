"""Linear algebra of small matrices within a loop's kernel: results, gradients, refusals."""

import numpy as np
import pytest

import tracejit as tj
from tests.lowering.test_loop_kernel import MODES, loops, run, segment
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.runtime.compiled_graph import CompiledGraph

# op -> (results of an iteration, the op, must the matrix be positive definite?)
CALLS = {
    "solve": ("WIDE NONE", 'linalg_solve_ex(%in1, %in2, check="solve")', False),
    "inv": ("SQUARE NONE", 'linalg_inv_ex(%in1, check="inv")', False),
    "inv_ex": ("SQUARE NONE", 'linalg_inv_ex(%in1, check="")', False),
    "slogdet": ("ONE ONE", "linalg_slogdet(%in1)", False),
    "det": ("ONE", "linalg_det(%in1)", False),
    "cholesky": ("SQUARE NONE", 'linalg_cholesky_ex(%in1, upper=False, check="chol")', True),
    "upper": ("SQUARE NONE", 'linalg_cholesky_ex(%in1, upper=True, check="chol")', True),
    "triangle": ("WIDE", "linalg_solve_triangular(%in1, %in2, upper=False, "
                         "unitriangular=False)", True),
    "unit": ("WIDE", "linalg_solve_triangular(%in1, %in2, upper=True, unitriangular=True)", True),
    "factor": ("WIDE", "cholesky_solve(%in2, %in1, upper=False)", True),
    "upper factor": ("WIDE", "cholesky_solve(%in2, %in1, upper=True)", True),
}


def loop_of(call, kind, n, columns, batch):
    """Return the text of three iterations that apply an op to items of two inputs."""
    results, op, _ = CALLS[call]
    shapes = {"SQUARE": (*batch, n, n), "WIDE": (*batch, n, columns), "ONE": batch, "NONE": batch}
    kinds = [("int32" if r == "NONE" else kind, shapes[r]) for r in results.split()]

    def types(lead):
        return ", ".join(f"%{k}: {d}[{', '.join(map(str, (*lead, *shape)))}]"
                         for k, (d, shape) in enumerate(kinds))

    def given(lead):
        return [f"{kind}[{', '.join(map(str, (*lead, *shapes[s])))}]" for s in ("SQUARE", "WIDE")]

    (a, b), (item_a, item_b) = given((3,)), given(())
    names = ", ".join(f"%{k}" for k in range(len(kinds)))
    return f"""
    graph g(in0: {a}, in1: {b}):
      {types((3,))} =
          for_loop(%in0, %in1, trip_count=3, carried=0, scanned=2, reverse=False) {{
        graph body(in0: int64[], in1: {item_a}, in2: {item_b}):
          {types(())} = {op}
          return {names}
      }}
      return {names}
    """


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", CALLS)
def test_an_op_within_a_loop(call, mode):
    for kind, n, columns, batch in (("float64", 1, 1, ()), ("float64", 3, 2, (2,)),
                                    ("float32", 4, 1, ()), ("float64", 16, 5, ())):
        rng = np.random.default_rng(n)
        a, b = rng.normal(size=(3, *batch, n, n)), rng.normal(size=(3, *batch, n, columns))
        if CALLS[call][2]:
            a = a @ a.swapaxes(-1, -2) + np.eye(n)
        a, b = a.astype(kind), b.astype(kind)
        text = loop_of(call, kind, n, columns, batch)
        made = segment(text, mode)
        assert loops(made) == ["for_loop"] and len(made.program.instructions) == 1
        want = interpret(parse_graph(text), [a, b]).outputs
        bound = 2e-4 if kind == "float32" else 1e-10
        for found, expected in zip(run(made, a, b), want, strict=True):
            np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)
            assert found.dtype == expected.dtype and found.shape == expected.shape


def test_singular_matrices_that_are_not_refused():
    a = np.zeros((3, 2, 2))
    a[1:] = [[1, 2], [2, 4]], [[np.nan, 0], [0, 1]]
    for call in ("slogdet", "det"):
        text = loop_of(call, "float64", 2, 1, ())
        want = interpret(parse_graph(text), [a, a[..., :1]]).outputs
        for found, expected in zip(run(segment(text), a, a[..., :1]), want, strict=True):
            np.testing.assert_array_equal(found, expected)
    found, info = run(segment(loop_of("inv_ex", "float64", 2, 1, ())), a, a[..., :1])
    assert info.tolist() == [1, 2, 0] and not np.isfinite(found[:2]).all()


@pytest.mark.parametrize("call", ["solve", "cholesky"])
def test_eager_numerics_and_large_matrices_keep_lapack(call):
    assert loops(segment(loop_of(call, "float64", 17, 1, ()))) == []
    graph = parse_graph(loop_of(call, "float64", 3, 1, ()))
    assert loops(CompiledGraph(graph, "compiled", "eager")) == []


def _solutions(x, systems):
    for a in systems:
        x = tj.linalg.solve(a, x)
    return x


def _whitened(x, systems):
    total = x.sum()
    for a in systems:
        factor = tj.linalg.cholesky(a)
        y = tj.linalg.solve_triangular(factor, x[:, None], upper=False)[:, 0]
        total = total + (y * y).sum() + tj.linalg.slogdet(a)[1] + tj.linalg.inv(a)[0, 0]
    return total


@pytest.mark.parametrize("function", [_solutions, _whitened])
@pytest.mark.parametrize("n", [3, 20])
def test_gradients_are_those_of_plain_code(function, n):
    """One program serves matrices that are written into it and larger ones."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(5, n, n)) / n
    systems = tj.tensor(a @ a.swapaxes(-1, -2) + np.eye(n), requires_grad=True)
    x = tj.tensor(rng.normal(size=n), requires_grad=True)
    scripted, found = tj.script(function), []
    for each in (function, scripted):
        found.append(tj.autograd.grad(each(x, systems).sum(), (x, systems)))
    assert "for_loop" in scripted.graphs["captured"]
    for one, other in zip(*found):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", [_solutions, _whitened])
def test_a_singular_matrix_raises_the_error_of_plain_code(function):
    systems, x = tj.eye(3).repeat(20, 1, 1), tj.ones(3)
    scripted, singular = tj.script(function), systems.clone()
    singular[7] = 0
    for given in (systems, singular, systems, singular):
        results = []
        for each in (function, scripted):
            try:
                results.append(each(x, given).tolist())
            except tj.linalg.LinAlgError as error:
                results.append(str(error))
        assert results[0] == results[1]
        assert isinstance(results[0], str) == (given is singular)
    assert scripted.report().compiles == 1
