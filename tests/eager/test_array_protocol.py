"""NumPy functions on tensors: what PyTorch returns, and recorded as ops where one exists."""

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager import interchange

UNARY = (
    "absolute arccos arcsin arctan ceil cos cosh exp exp2 expm1 floor isfinite isinf isnan log "
    "log10 log1p log2 logical_not negative positive reciprocal rint sign sin sinh sqrt square tan "
    "tanh trunc conjugate cbrt deg2rad spacing signbit"
).split()
BINARY = (
    "add subtract multiply divide floor_divide remainder fmod power maximum minimum arctan2 hypot "
    "float_power equal not_equal less less_equal greater greater_equal logical_and logical_or "
    "logical_xor logaddexp copysign heaviside bitwise_and left_shift gcd"
).split()
VALUES = {
    "float32": [-2.5, -0.0, 0.0, 0.3, 1.0, 2.0, float("nan"), float("inf"), -float("inf")],
    "float64": [-2.5, -0.0, 0.0, 0.3, 1.0, 2.0, float("nan"), float("inf"), -float("inf")],
    "float16": [-2.5, 0.0, 0.5, 1.0, 2.0],
    "int64": [-3, -1, 0, 1, 2, 5], "int32": [-3, -1, 0, 1, 2, 5], "uint8": [0, 1, 2, 5],
    "bool": [True, False, True],
}  # fmt: skip


def both(function, *makers):
    """(ours, PyTorch's) results, or the types of the exceptions."""
    torch = pytest.importorskip("torch")
    found = []
    for module in (tj, torch):
        with np.errstate(all="ignore"):
            try:
                found.append(function(*[make(module) for make in makers]))
            except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
                found.append(type(error))
    return found


def assert_same(got, want, note=""):
    if isinstance(want, tuple):
        for g, w in zip(got, want, strict=True):
            assert_same(g, w, note)
        return
    assert type(got).__name__ == type(want).__name__, (note, got, want)
    if isinstance(want, type):
        return
    g, w = np.asarray(got), np.asarray(want)
    # PyTorch makes uint8 of NumPy's bools
    assert g.dtype == w.dtype or (g.dtype, w.dtype) == (np.bool_, np.uint8), (note, g, w)
    np.testing.assert_allclose(g.astype(float), w.astype(float), rtol=2e-3 if g.dtype == "e" else
                               1e-6, err_msg=str(note))


def tensor(name, reverse=False):
    values = VALUES[name][:: -1 if reverse else 1]
    return lambda m: m.tensor(values, dtype=getattr(m, name))


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("ufunc", UNARY)
def test_functions_of_one_tensor(ufunc, name):
    assert_same(*both(getattr(np, ufunc), tensor(name)), ufunc)


@pytest.mark.oracle
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("ufunc", BINARY)
def test_functions_of_two(ufunc, name):
    for other in (tensor(name, True), lambda m: 2, lambda m: 1.5, lambda m: True,
                  lambda m: m.tensor(2, dtype=getattr(m, name))):
        assert_same(*both(getattr(np, ufunc), tensor(name), other), ufunc)
        assert_same(*both(getattr(np, ufunc), other, tensor(name)), ufunc)


def square(m):
    return m.tensor([[3.0, 1.0], [2.0, 4.0]])


FUNCTIONS = {
    "argmax": np.argmax, "argmax.axis": lambda t: np.argmax(t, axis=0), "argmin": np.argmin,
    "argsort": np.argsort, "cumsum": np.cumsum, "cumsum.axis": lambda t: np.cumsum(t, axis=0),
    "cumprod": lambda t: np.cumprod(t, 0), "reshape": lambda t: np.reshape(t, (4,)),
    "transpose": np.transpose, "transpose.axes": lambda t: np.transpose(t, (1, 0)),
    "squeeze": np.squeeze, "swapaxes": lambda t: np.swapaxes(t, 0, 1),
    "clip": lambda t: np.clip(t, 1, 2), "round": np.round, "round.one": lambda t: np.round(t, 1),
    "matmul": lambda t: np.matmul(t, t), "nonzero": np.nonzero, "repeat": lambda t: np.repeat(t, 2),
    "take": lambda t: np.take(t, [0]), "ptp": np.ptp, "shape": lambda t: tuple(np.shape(t)),
    "ndim": np.ndim, "iscomplexobj": np.iscomplexobj,
    "concatenate": lambda t: np.concatenate([t, t]),
    "stack": lambda t: np.stack([t, t]), "where": lambda t: np.where(t > 1, t, 0), "sort": np.sort,
    "median": np.median, "norm": np.linalg.norm, "inv": np.linalg.inv,
    "tile": lambda t: np.tile(t, 2),
    "asarray": np.asarray, "array": lambda t: np.array(t, np.float64), "unique": np.unique,
    "allclose": lambda t: np.allclose(t, t), "einsum": lambda t: np.einsum("ij,jk", t, t),
    "add.reduce": np.add.reduce, "add.accumulate": np.add.accumulate,
    "add.outer": lambda t: np.add.outer(t, t), "divmod": lambda t: np.divmod(t, 2),
    "modf": np.modf, "sin.dtype": lambda t: np.sin(t, dtype=np.float64),
    "add.where": lambda t: np.add(t, 1, out=np.zeros((2, 2)), where=np.eye(2, dtype=bool)),
    "out": lambda t: np.add(t, t, out=t), "split": lambda t: tuple(np.split(t, 2)),
    "dot": lambda t: np.dot(t, t), "diagonal": np.diagonal, "zeros_like": np.zeros_like,
    "times": lambda t: np.exp(t) * np.full((2, 2), 2.0), "number": lambda t: np.float64(2) * t,
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_return_what_pytorch_returns(name):
    assert_same(*both(FUNCTIONS[name], square), name)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["sin", "add", "mean", "concatenate", "asarray"])
def test_tensors_that_require_grad_are_refused(name):
    x = tj.ones(2, requires_grad=True)
    if name == "mean":  # PyTorch's own method answers, and is differentiable
        assert np.mean(x).requires_grad
        return
    args = {"add": (x, 1), "concatenate": ([x, x],)}.get(name, (x,))
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        getattr(np, name)(*args)


REDUCTIONS = {
    "mean": np.mean, "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "std": np.std,
    "var": np.var, "all": np.all, "any": np.any,
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_numpys(name):
    """PyTorch's methods have these under other keywords; the results are tensors all the same."""
    x = tj.tensor([[3.0, 1.0, 0.5], [2.0, 4.0, 0.0]])
    for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": -1}):
        got, want = REDUCTIONS[name](x, **options), REDUCTIONS[name](x.numpy(), **options)
        assert type(got) is tj.Tensor and got.numpy().dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def recorded(x, y):
    z = np.sin(x) + np.add(x, 1) * np.maximum(x, y) - np.sqrt(np.abs(2 - y))
    w = np.exp(x) * 2
    return z, w, np.mean(z), np.sum(w, axis=0), np.max(z, axis=1, keepdims=True), np.clip(z, 0, 1)


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_what_has_an_op_is_recorded(mode):
    compiled = tj.script(recorded, mode=mode, fullgraph=True)
    for n in (2, 3, 5):
        x, y = tj.linspace(-1, 2, 3 * n).view(n, 3), tj.linspace(3, 0, 3 * n).view(n, 3)
        for g, w in zip(compiled(x, y), recorded(x, y)):
            assert g.dtype is w.dtype
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-5, atol=1e-6)
    assert compiled.report().compiles == 1 and not compiled.report().breaks


def test_what_has_no_op_ends_a_segment_and_is_named():
    def f(x):
        y = x * 2
        z = np.concatenate([y, y])  # here
        return tj.from_numpy(z) + 1, np.logaddexp(y, y)

    compiled = tj.script(f)
    for n in (2, 3):
        x = tj.arange(float(n))
        for g, w in zip(compiled(x), f(x)):
            np.testing.assert_allclose(g.numpy(), w.numpy())
    found = [b for b in compiled.report().breaks if "np.concatenate" in b.reason]
    assert found and found[0].file == __file__ and "# here" in found[0].location.text
    assert any("np.logaddexp" in b.reason for b in compiled.report().breaks)


def test_memory_is_shared_with_arrays_of_tensors():
    x = tj.zeros(3)
    np.asarray(x)[0] = 5
    assert x.tolist() == [5, 0, 0]
    assert np.array(x, copy=True).base is None
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(x, dtype=np.float64, copy=False)


@pytest.mark.parametrize("versioned", [interchange._VERSIONED, False])
def test_memory_is_exchanged_with_every_numpy(versioned, monkeypatch):
    monkeypatch.setattr(interchange, "_VERSIONED", versioned)
    x = tj.arange(3.0)
    shown = np.from_dlpack(x)
    x.add_(1)
    assert shown.tolist() == [1, 2, 3]
    copied = tj.from_dlpack(x.__dlpack__(copy=True, dl_device=(1, 0), max_version=(1, 0)))
    x.add_(1)
    assert copied.tolist() == [1, 2, 3]
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
