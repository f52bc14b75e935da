"""Complex numbers: what is refused, views that are written, and files; in PyTorch's words."""

from __future__ import annotations

import copy
import io
import operator
import pickle
import re

import numpy as np
import pytest

import tracejit as tj
from tracejit.autograd import GradcheckError, gradcheck

Z = np.array([1 + 2j, 4 - 3j], np.complex64)
R = np.array([1.0, 2.0], np.float32)


def f(m):
    return m.nn.functional


REFUSED = {
    "lt": lambda m, z, r: z < z, "le": lambda m, z, r: z <= 1, "gt": lambda m, z, r: r > z,
    "ge": lambda m, z, r: r >= 1j, "max": lambda m, z, r: z.max(),
    "max.dim": lambda m, z, r: z.max(0), "amax": lambda m, z, r: z.amax(),
    "argmin": lambda m, z, r: z.argmin(), "maximum": lambda m, z, r: m.maximum(z, z),
    "sort": lambda m, z, r: z.sort(), "topk": lambda m, z, r: z.topk(1),
    "median": lambda m, z, r: z.median(), "kthvalue": lambda m, z, r: z.kthvalue(1),
    "clamp": lambda m, z, r: z.clamp(0, 1), "clamp_min": lambda m, z, r: z.clamp_min(0),
    "floor": lambda m, z, r: z.floor(), "round": lambda m, z, r: z.round(),
    "round decimals": lambda m, z, r: z.round(decimals=1), "trunc": lambda m, z, r: z.trunc(),
    "frac": lambda m, z, r: z.frac(), "mod": lambda m, z, r: z % 2, "floordiv": lambda m, z, r:
    z // z, "fmod": lambda m, z, r: m.fmod(z, z), "erf": lambda m, z, r: z.erf(),
    "div": lambda m, z, r: m.div(z, z, rounding_mode="trunc"), "and": lambda m, z, r: z & z,
    "shift": lambda m, z, r: z << 1, "atan2": lambda m, z, r: m.atan2(z, z),
    "hypot": lambda m, z, r: m.hypot(z, z), "relu": lambda m, z, r: z.relu(),
    "hardtanh": lambda m, z, r: f(m).hardtanh(z), "threshold": lambda m, z, r:
    f(m).threshold(z, 0, 0), "glu": lambda m, z, r: f(m).glu(z),
    "mse": lambda m, z, r: f(m).mse_loss(z, z), "huber": lambda m, z, r: f(m).huber_loss(z, z),
    "kl": lambda m, z, r: f(m).kl_div(z, z), "unique": lambda m, z, r: m.unique(z),
    "arange": lambda m, z, r: m.arange(3, dtype=m.complex64),
    "randint": lambda m, z, r: m.randint(3, (2,), dtype=m.complex64),
    "abs_": lambda m, z, r: z.abs_(), "add_": lambda m, z, r: r.add_(1j),
    "fill_": lambda m, z, r: r.fill_(1j), "setitem": lambda m, z, r: operator.setitem(r, 0, 1j),
    "full": lambda m, z, r: m.full((2,), 1j, dtype=m.float32),
    "tensor": lambda m, z, r: m.tensor([1j], dtype=m.float32),
    "tensor of ints": lambda m, z, r: m.tensor(1j, dtype=m.int64),
    "int": lambda m, z, r: int(z[0]), "float": lambda m, z, r: float(z[0]),
    "index": lambda m, z, r: operator.index(z[0]), "imag": lambda m, z, r: r.imag,
    "view_as_real": lambda m, z, r: m.view_as_real(r),
    "pairs": lambda m, z, r: m.view_as_complex(m.zeros(3, 2).t()),
    "no pairs": lambda m, z, r: m.view_as_complex(m.tensor(1.0)),
    "pairs of ints": lambda m, z, r: m.view_as_complex(m.zeros(2, 2, dtype=m.int64)),
    "pairs apart": lambda m, z, r: m.view_as_complex(m.zeros(2, 4)[:, ::2]),
    "pairs at odd strides": lambda m, z, r: m.view_as_complex(m.zeros(3, 3)[:, :2]),
    "pairs at an odd place": lambda m, z, r: m.view_as_complex(m.zeros(10)[1:9].view(4, 2)),
    "complex of two kinds": lambda m, z, r: m.complex(r, r.double()),
    "complex of ints": lambda m, z, r: m.complex(r.int(), r.int()),
    "complex of complex": lambda m, z, r: m.polar(z, z),
    "H": lambda m, z, r: z.H, "H of three": lambda m, z, r: m.zeros(2, 2, 2).H,
    "mH": lambda m, z, r: z.mH, "adjoint": lambda m, z, r: m.adjoint(z),
    "backward": lambda m, z, r: z.requires_grad_().sum().backward(),
    "real gradient": lambda m, z, r: z.requires_grad_().backward(r),
    "complex gradient": lambda m, z, r: z.requires_grad_().abs().backward(z),
    "cummax": lambda m, z, r: z.cummax(0), "fmax": lambda m, z, r: m.fmax(z, z),
    "isposinf": lambda m, z, r: m.isposinf(z), "aminmax": lambda m, z, r: z.aminmax(),
    "mode": lambda m, z, r: z.mode(),
    "deg2rad": lambda m, z, r: z.deg2rad(), "heaviside": lambda m, z, r: m.heaviside(z, z),
    "frexp": lambda m, z, r: m.frexp(z), "isin": lambda m, z, r: m.isin(z, z),
    "bucketize": lambda m, z, r: m.bucketize(z, r), "nansum": lambda m, z, r: z.nansum(),
    "nanmean": lambda m, z, r: z.nanmean(), "logit": lambda m, z, r: z.logit(),
    "scatter_reduce": lambda m, z, r: z.scatter_reduce(0, m.tensor([0, 1]), z, "amax"),
    "product": lambda m, z, r: z.view(1, 2) @ r.view(2, 1),
    "to_complex": lambda m, z, r: m.int64.to_complex(),
}  # fmt: skip


def raised(call, m):
    with pytest.raises(Exception) as found:
        call(m, m.from_numpy(Z.copy()), m.from_numpy(R.copy()))
    return found.type, re.sub("torch|tracejit", "M", str(found.value))


@pytest.mark.oracle
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_errors_are_those_of_pytorch(call):
    assert raised(call, tj) == raised(call, pytest.importorskip("torch"))


def test_parts_look_at_the_numbers():
    z = tj.from_numpy(Z.copy())
    z.real[0] = 7
    z.imag = tj.tensor([5.0, 6.0])
    tj.view_as_real(z)[1, 0] = 8
    assert z.tolist() == [7 + 5j, 8 + 6j] and z._version == 3
    pairs = tj.zeros(2, 2)
    tj.view_as_complex(pairs).fill_(1 + 2j)
    assert pairs.tolist() == [[1, 2], [1, 2]]
    assert z.imag.stride() == (2,) and z.imag.storage_offset() == 1


def test_files_and_copies_keep_complex_numbers():
    z, memory = tj.from_numpy(Z.copy()), io.BytesIO()
    tj.save(z, memory)
    memory.seek(0)
    for other in (tj.load(memory), pickle.loads(pickle.dumps(z)), copy.deepcopy(z),
                  tj.from_dlpack(np.from_dlpack(z)), z.cdouble().cfloat()):
        assert other.dtype is tj.complex64 and tj.equal(other, z)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("convert", [
    lambda m, x: x.bfloat16(), lambda m, x: x.double(), lambda m, x: x.to(m.float64),
    lambda m, x: x.to(m.complex64)])  # fmt: skip
def test_modules_convert_complex_tensors_as_pytorch_does(convert):
    def kinds(m):
        x = m.nn.Module()
        x.register_buffer("z", m.from_numpy(Z.copy()))
        x.w = m.nn.Parameter(m.from_numpy(R.copy()))
        convert(m, x)
        return [str(t.dtype).partition(".")[2] for t in (x.z, x.w)]

    assert kinds(tj) == kinds(pytest.importorskip("torch"))


def test_promotion_keeps_the_width():
    half, single, double = (tj.ones(1, dtype=d) for d in (tj.float16, tj.float32, tj.float64))
    assert [(x * 1j).dtype for x in (half, single, double)] == [
        tj.complex64, tj.complex64, tj.complex128]
    assert (double * tj.tensor(1j)).dtype is tj.complex128
    assert tj.complex64.to_real() is tj.float32 and tj.float64.to_complex() is tj.complex128


def test_gradcheck_sees_a_missing_conjugate():
    z = tj.tensor([1 + 2j], dtype=tj.complex128, requires_grad=True)

    class Wrong(tj.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    assert gradcheck(lambda z: z * z, (z,))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (z,))
