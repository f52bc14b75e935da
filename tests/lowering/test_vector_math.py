"""The scalar functions of kernels: error bounds, edges, vectorisation, and their three uses."""

import math
import re
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import types

from tracejit.jit.lowering import vector_math_intrinsics
from tracejit.jit.lowering.vector_math import FUNCTIONS, kernel_function, python_function
from tracejit.jit.lowering.vector_math_intrinsics import UnsupportedSyntax, emit, result_dtypes

LONG = np.longdouble
NUMERICS = Path(__file__).parents[2] / "docs" / "numerics.md"
ALL = sorted(FUNCTIONS)


def erf_reference(x):
    """erf by x e^(-x*x) sum (2 x x)^n / (2n+1)!!, whose terms are all positive."""
    a = np.minimum(np.abs(x), LONG(7))
    term = total = np.ones_like(a)
    for n in range(1, 260):
        term = term * (2 * a * a) / (2 * n + 1)
        total = total + term
    pi = LONG("3.14159265358979323846264338327950288")
    return np.copysign(np.where(a >= 7, 1, 2 / np.sqrt(pi) * a * np.exp(-a * a) * total), x)


def erfc_reference(x):
    """1 - erf below 1.5, the continued fraction above."""
    a = np.maximum(x, LONG(1.5))
    tail = a
    for n in range(400, 0, -1):
        tail = a + n / LONG(2) / tail
    pi = LONG("3.14159265358979323846264338327950288")
    return np.where(x < 1.5, 1 - erf_reference(x), np.exp(-a * a) / tail / np.sqrt(pi))


REFERENCE = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
    "erf": erf_reference, "erfc": erfc_reference, "pow": np.power,
}  # fmt: skip


def documented_bounds():
    rows = re.findall(r"^\| (\w+) \| .+ \| ([\d.]+) \| ([\d.]+) \|$", NUMERICS.read_text(), re.M)
    return {
        (name, dtype): float(bound)
        for name, *bounds in rows
        for dtype, bound in zip(("float32", "float64"), bounds, strict=True)
    }


@cache
def compiled(name, dtype, contract):
    function = kernel_function(name, dtype, "cpu", contract)
    count = FUNCTIONS[name, dtype].__code__.co_argcount
    inputs = ", ".join(f"p{i}" for i in range(count))
    arrays = "".join(f"    x{i} = numba.carray(p{i}, (n,))\n" for i in range(count))
    elements = ", ".join(f"x{i}[i]" for i in range(count))
    text = (
        f"def kernel({inputs}, out, n):\n{arrays}    result = numba.carray(out, (n,))\n"
        f"    for i in range(n):\n        result[i] = function({elements})\n"
    )
    space = {"function": function, "numba": numba}
    exec(text, space)
    pointer = types.CPointer(getattr(types, dtype))
    signature = types.void(*[pointer] * (count + 1), types.int64)
    flags = {"contract"} if contract else False
    return numba.cfunc(signature, error_model="numpy", fastmath=flags)(space["kernel"])


def run(name, dtype, contract, *arrays):
    arrays = [np.ascontiguousarray(a) for a in arrays]
    out = np.empty_like(arrays[0])
    call = compiled(name, dtype, contract).ctypes
    pointers = [
        a.ctypes.data_as(t) for a, t in zip([*arrays, out], call.argtypes[:-1], strict=True)
    ]
    call(*pointers, out.size)
    return out


def ulp_error(got, reference, dtype):
    """Error in ulp of the rounded reference; infinite where one is special and they differ."""
    rounded = reference.astype(dtype)
    error = np.abs(got.astype(LONG) - reference) / np.spacing(np.abs(rounded)).astype(LONG)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    special = ~(np.isfinite(got) & np.isfinite(rounded))
    return np.where(special, np.where(same, 0.0, np.inf), error.astype(np.float64))


def every_kind_of_number(dtype):
    """Bit patterns spread over all floats, both signs, and dense numbers of everyday size."""
    rng = np.random.default_rng(0)
    if dtype == "float32":
        spread = np.arange(0, 2**32, 30011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    else:
        spread = rng.integers(0, 2**64, 100_000, dtype=np.uint64).view(np.float64)
    everyday = [rng.uniform(-r, r, 60_000) for r in (1, 3, 30, 120, 750, 1e4)]
    near_zero = np.exp(rng.uniform(-40, 1, 40_000)) * rng.choice([-1, 1], 40_000)
    return np.concatenate([spread, *[e.astype(dtype) for e in everyday], near_zero.astype(dtype)])


def arguments(name, dtype):
    if name == "pow":
        rng = np.random.default_rng(1)
        n = 100_000
        near_one = 1 + rng.uniform(-1e-3, 1e-3, n)
        x = np.concatenate([np.exp(rng.uniform(-80, 80, n)), rng.uniform(-3, 3, n), near_one])
        y = [rng.uniform(-9, 9, n), rng.integers(-80, 80, n), rng.uniform(-7e5, 7e5, n)]
        return x.astype(dtype), np.concatenate(y).astype(dtype)
    x = every_kind_of_number(dtype)
    if dtype == "float64" and name in ("sin", "cos", "tan"):
        wide = np.random.default_rng(2).uniform(-1e8, 1e8, 100_000)
        x = np.concatenate([x, wide])
    if name in ("erf", "erfc"):  # slow references; all that is beyond 40 is tested as special
        x = x[np.abs(x) < 40][::3]
    return (x,)


def test_the_table_in_the_documentation_names_every_function():
    assert sorted(documented_bounds()) == ALL


@pytest.mark.parametrize(("name", "dtype"), ALL)
@pytest.mark.parametrize("contract", [True, False], ids=["fused", "plain"])
def test_error_stays_within_the_documented_bound(name, dtype, contract):
    xs = arguments(name, dtype)
    with np.errstate(all="ignore"):
        reference = REFERENCE[name](*[x.astype(LONG) for x in xs])
        error = ulp_error(run(name, dtype, contract, *xs), reference, dtype)
    worst = int(np.argmax(error))
    assert error[worst] <= documented_bounds()[name, dtype], [x[worst] for x in xs]


def specials(dtype):
    info = np.finfo(dtype)
    edges = [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 1e-3, 1e30, np.inf, info.max, info.tiny]
    edges += [info.smallest_subnormal, 3 * info.smallest_subnormal, info.eps, 1 + info.eps]
    values = np.array(edges, dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_special_values_are_numpys(name, dtype):
    x = specials(dtype)
    count = FUNCTIONS[name, dtype].__code__.co_argcount
    xs = [g.ravel() for g in np.meshgrid(*[x] * count)]
    with np.errstate(all="ignore"):
        expected = REFERENCE[name](*[x.astype(LONG) for x in xs]).astype(dtype)
        got = run(name, dtype, True, *xs)
        error = ulp_error(got, expected.astype(LONG), dtype)
    assert np.all(error <= 5), [(x[error > 5], got[error > 5]) for x in xs]
    zero = (expected == 0) | np.isinf(expected)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("step", [1, 3, 40])
def test_float64_arguments_beyond_1e8_among_others(name, step):
    x = np.linspace(-3, 3, 101)
    far = slice(7, None, step)
    x[far] = np.random.default_rng(0).uniform(1e8, 1e18, x[far].size) * 10.0**200 ** (x[far] > 1)
    got, near = run(name, "float64", True, x), run(name, "float64", True, np.clip(x, -3, 3))
    np.testing.assert_array_max_ulp(got[far], [getattr(math, name)(v) for v in x[far]], 4)
    kept = np.abs(x) < 4
    np.testing.assert_array_equal(got[kept], near[kept])


@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_plain_python_gives_the_uncontracted_kernels_bits(name, dtype):
    x = np.concatenate([specials(dtype), arguments(name, dtype)[0][::3001]])
    xs = [x, x[::-1].copy()] if name == "pow" else [x]
    function = python_function(name, dtype)
    with np.errstate(all="ignore"):
        expected = np.array([function(*values) for values in zip(*xs, strict=True)])
    assert expected.dtype == dtype
    np.testing.assert_array_equal(run(name, dtype, False, *xs), expected)


@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_loops_are_vectorised(name, dtype):
    text = compiled(name, dtype, True).inspect_llvm()
    element = "float" if dtype == "float32" else "double"
    assert re.search(rf"= (fmul|tail call|call|fdiv)[^\n]*<(4|8|16) x {element}>", text)
    if dtype == "float64" and name in ("sin", "cos", "tan"):
        far = rf"call (contract )?<(4|8) x double> @tracejit_{name}_far_float64_(4|8)\("
        assert re.search(far, text)
    else:
        assert not re.search(r"call (float|double) @(?!llvm\.)", text), "a library call"


def test_contraction_follows_the_flag():
    fused = compiled("exp", "float32", True).inspect_llvm()
    plain = compiled("exp", "float32", False).inspect_llvm()
    assert "fmul contract" in fused
    assert "contract" not in plain.replace("fdiv contract", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(x):\n    return x + 1.0\n", "not in the subset"),
        ("def f(x):\n    return x + np.float64(1.0)\n", "mixes float32 and float64"),
        ("def f(x):\n    for i in x:\n        pass\n    return x\n", "only assignments"),
        ("def f(x):\n    return np.cbrt(x)\n", "np.cbrt is not in the subset"),
        ("def f(x):\n    return missing\n", "neither a local nor a typed constant"),
        ("def f(x):\n    y = x\n", "has no return"),
    ],
)
def test_text_outside_the_subset_is_named(tmp_path, monkeypatch, text, reason):
    (tmp_path / "subset_case.py").write_text("import numpy as np\n" + text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "subset_case", raising=False)
    function = __import__("subset_case").f
    with pytest.raises(UnsupportedSyntax, match=reason) as caught:
        result_dtypes(function, ["float32"])
    assert "subset_case.py:" in str(caught.value)


def test_wrong_arguments_are_named():
    with pytest.raises(KeyError, match="no scalar function 'cbrt'"):
        python_function("cbrt", "float32")
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        emit(None, vector_math_intrinsics._example, [None, None])
