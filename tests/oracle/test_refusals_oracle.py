"""What PyTorch refuses, in its words; and keys that are lists, and `trace` of a matrix."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
lib.allclose(f, d)
lib.isclose(f, i)
lib.isclose(f, d, rtol=-1)
f.isclose(f)
f - b
b - f
b - i
1 - b
1.0 - b
b - 1
f - True
b - b
lib.sub(f, b)
lib.sub(f, b, alpha=2)
lib.rsub(b, 1)
f.sub_(b)
f.subtract(b)
lib.lerp(f, d, 0.5)
lib.lerp(f, i, 0.5)
lib.lerp(f, f, d)
lib.lerp(f, f, d[0])
lib.lerp(i, i, 0.5)
lib.lerp(i, i, i)
lib.lerp(f, f, 0.5)
x.index_select(0, b)
x.index_select(0, u8)
x.index_select(0, i8)
x.index_select(0, i16)
x.index_select(0, i32)
x[i8]
x[i16]
x[i, i8]
x[i16[0]]
x[i32]
x.__setitem__(i16, 1.0)
x[np.array([0, 1], np.int8)]
lib.pow(b, b)
b.pow_(b)
lib.pow(True, b)
b ** 2
b ** i
lib.addcmul(b, b, b)
lib.addcmul(f, b, b)
lib.nn.functional.linear(b, x > 0)
lib.bucketize(b, b)
lib.searchsorted(b, b)
lib.bucketize(b, f)
b << b
b >> True
b << 1
lib.frac(i)
i.frac_()
lib.frac(b)
lib.frac(f)
lib.flip(x)
x.flip()
x.flip(())
x.__setitem__(0, [1.0, 2.0, 3.0])
x.__setitem__(0, np.ones(3))
x.__setitem__(0, (1.0, 2.0, 3.0))
x.__setitem__(0, np.float32(3))
x.__setitem__(0, np.float64(3))
x.__setitem__(0, np.int64(3))
x.__setitem__(0, np.bool_(1))
x.__setitem__(0, None)
x.__setitem__(0, {})
x.__setitem__(0, True)
i.__setitem__(0, [1])
lib.trace(x)
lib.trace(f)
lib.trace(input=x)
x[[[0, 1], [1, 2]]]
x[[[0, 1]]]
x[[slice(1), 0]]
x[[None, 0]]
x[[..., 0]]
x[[i, i]]
x[[i32, 1]]
x[[np.array([0, 1]), 1]]
x[[(0, 1), 1]]
x[[0, 1]]
x[[]]
x[[True, False, True]]
x[range(2)]
lib.abs(b)
b.abs()
b.abs_()
abs(b)
+b
+i
lib.positive(b)
lib.argmax(b)
b.argmax(0)
b.argmin()
b[:0].argmax()
lib.argmin(b, 0, keepdim=True)
b.topk(1)
b[0].topk(1)
b[:0].topk(0)
b.topk(1, largest=False)
b.kthvalue(1)
b.kthvalue(9)
b[0].kthvalue(1).values
lib.isin(b, b)
lib.isin(b, True)
lib.isin(f, True)
lib.isin(True, f)
lib.isin(1, b)
lib.isin(f[:0], b)
lib.isin(f, 1)
lib.ldexp(f, b)
lib.ldexp(f.half(), b)
f.ldexp_(b)
lib.ldexp(i, b)
lib.ldexp(b, b)
lib.ldexp(b, u8)
lib.trapezoid(b)
lib.trapezoid(f, b)
lib.trapezoid(b, f)
lib.cumulative_trapezoid(b, dx=2)
lib.linalg.cross(b, b)
lib.cross(b, f, dim=0)
lib.linalg.cross(i, i)
x.__setitem__([[0, 1], [1, 2]], 5.0)
x.__setitem__([[0, 1]], 5.0)
x.__setitem__([slice(None), 0], 5.0)
""".strip().splitlines()


def _outcome(lib, call, run=lambda f: f):
    x, f = lib.arange(9.0).reshape(3, 3), lib.arange(3.0)
    i = lib.tensor([0, 1, 2])
    kinds = {"d": f.double(), "b": f > 0, "i": i, "i8": i.to(lib.int8), "i16": i.to(lib.int16),
             "i32": i.to(lib.int32), "u8": i.to(lib.uint8)}
    function = eval(f"lambda x, f, {', '.join(kinds)}: {call}", {"lib": lib, "np": np})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = run(function)(x, f, **kinds)
        except (RuntimeError, TypeError, IndexError) as error:
            return type(error), str(error).replace("torch.", "tracejit.")
    result = result.tolist() if hasattr(result, "tolist") else result
    return result, x.tolist(), [w.category for w in told if "non-tuple" in str(w.message)]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_ends_as_in_pytorch(call):
    expected = _outcome(torch, call)
    assert _outcome(tracejit, call) == expected
    assert _outcome(tracejit, call, tracejit.script) == expected


def test_trace_compiles_functions():
    assert tracejit.trace(lambda x: x * x)(tracejit.ones(2)).tolist() == [1.0, 1.0]

    @tracejit.trace(fullgraph=True)
    def double(x):
        return tracejit.trace(x) * 2

    assert double(tracejit.eye(2)).item() == 4.0


TENSORS = """bmm cholesky_solve cross diagonal_scatter dot equal expand_as ger inner kron
masked_select matmul mm mv outer prelu reshape_as resize_as_ slice_scatter take take_along_dim
triangular_solve vdot view_as""".split()
NUMBERS = """all amax amin any argmax argmin argsort chunk cummax cumprod cumsum diag diagonal diff
expand flatten flip kthvalue log_softmax logsumexp mean median mode permute prod repeat reshape roll
size softmax sort split squeeze std stride sum tile topk tril triu unsqueeze view""".split()
DIMS = """all amax amin any argmax argmin argsort cummax cumprod cumsum log_softmax logsumexp mean
median mode prod softmax squeeze sum unsqueeze""".split()
NOTHING = "float double half long int bool clone cpu is_contiguous fill_".split()


@pytest.mark.parametrize(
    ("names", "given"),
    [(names, given) for names in (TENSORS, NOTHING) for given in (None, "a", 1.5, [])]
    + [(NUMBERS, given) for given in ("a", 1.5)]
    + [(DIMS, given) for given in (True, (0, 1))],
)
def test_a_first_argument_of_another_type_is_a_type_error(names, given) -> None:
    def kinds(lib) -> dict:
        found = {}
        for name in names:
            try:
                getattr(lib.ones(2, 3), name)(given)
                found[name] = "a result"
            except Exception as error:
                found[name] = type(error).__name__
        return found

    expected = {k: v for k, v in kinds(torch).items() if v == "TypeError"}
    assert {k: v for k, v in kinds(tracejit).items() if k in expected} == expected
