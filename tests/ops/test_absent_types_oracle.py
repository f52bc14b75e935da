"""Element types that no tensor has: as PyTorch describes them, refused where elements matter."""

import copy
import pickle

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
INTEGERS = ("uint16", "uint32", "uint64")
FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, "complex32", "chalf"])
def test_described_as_pytorch_does(name):
    ours, theirs = getattr(tracejit, name), getattr(torch, name)
    for what in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(ours, what) == getattr(theirs, what), what
    assert repr(ours) == repr(theirs).replace("torch", "tracejit")
    assert isinstance(ours, tracejit.dtype) and tracejit.ones(1).dtype != ours
    assert copy.deepcopy(ours) is ours and pickle.loads(pickle.dumps(ours)) is ours


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS, "complex32"])
def test_limits(name):
    kind = "iinfo" if name in INTEGERS else "finfo"
    ours, theirs = (getattr(m, kind)(getattr(m, name)) for m in (tracejit, torch))
    # PyTorch's distance of 1 to the next number is half of what e5m2fnuz has.
    for what in ("bits", "min", "max", "dtype", *(() if kind == "iinfo" else (
            "tiny", "resolution", *(("eps",) if name != "float8_e5m2fnuz" else ())))):
        assert getattr(ours, what) == getattr(theirs, what), what


@pytest.mark.parametrize("make", [
    lambda d: tracejit.zeros(2, dtype=d), lambda d: tracejit.ones(2).to(d),
    lambda d: tracejit.tensor([1], dtype=d),
    lambda d: tracejit.ones(2).sum(dtype=d),
    lambda d: tracejit.promote_types(d, tracejit.float32),
    lambda d: tracejit.nn.Linear(2, 2).to(d),
    lambda d: tracejit.script(lambda x: x.to(d))(tracejit.ones(2)),
    lambda d: tracejit.set_default_dtype(d),
], ids=["zeros", "to", "tensor", "sum", "promote", "module", "script", "default"])  # fmt: skip
def test_no_tensor_has_it(make):
    with pytest.raises(NotImplementedError, match="tracejit.float8_e5m2 are not supported"):
        make(tracejit.float8_e5m2)
