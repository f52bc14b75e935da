"""The other spellings of PyTorch's operators: the method, the method in place, `out=`.

In: a few of PyTorch's own samples of each operator that has them. What must agree is what
`test_operator_samples` compares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tracejit
from tests.shares import share

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests.oracle.test_operator_samples import (
        BY_DESIGN,
        CALLS,
        OPERATORS,
        array,
        brief,
        converted,
        defined,
        difference,
        identity,
        ours,
        unequal,
    )

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

KINDS = (torch.float32, torch.int64, torch.complex64)
SAMPLES = 2  # of each dtype


def samples(op: Any) -> list[Any]:
    found = []
    for kind in KINDS:
        if kind in op.dtypes:
            torch.manual_seed(0)
            grad = op.supports_autograd and kind in op.supported_backward_dtypes("cpu")
            every = list(op.sample_inputs("cpu", kind, requires_grad=grad))
            found += every[::max(1, len(every) // SAMPLES)][:SAMPLES]
    return found


def method(variant: Any) -> str:
    """The method's name; empty where PyTorch has none."""
    name = getattr(variant, "__name__", "")
    return "" if name.startswith("<") else name


def called(name: str, in_place: bool) -> Callable[..., Any]:
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        self = self.clone() if in_place else self
        return getattr(self, name)(*arguments, **keywords)

    return call


class Spelled:
    """An operator's entry, called in another way."""

    def __init__(self, op: Any, call: Callable[..., Any]):
        self.name, self.call = op.name, call

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.call(*arguments, **keywords)


def raises(op: Any, sample: Any) -> bool:
    try:
        op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return True
    return False


CASES = [
    pytest.param(op, method(variant), in_place, id=f"{identity(op)}-{method(variant)}",
                 marks=share(f"{identity(op)}-{in_place}", 16))
    for op in OPERATORS if identity(op) not in BY_DESIGN
    for in_place, variant in enumerate((op.method_variant, op.inplace_variant)) if method(variant)
]  # fmt: skip


@pytest.mark.parametrize(("op", "name", "in_place"), CASES)
def test_methods_agree_with_pytorch(op: Any, name: str, in_place: int) -> None:
    spelled, wrong = Spelled(op, called(name, bool(in_place))), []
    for sample in samples(op):
        if in_place and (sample.broadcasts_input or raises(spelled, sample)):
            continue
        try:
            different = difference(spelled, spelled.call, sample)
        except NotImplementedError as error:
            assert "the derivative for 'inplace version of" in str(error)  # PyTorch has none
            continue
        if different is not None:
            wrong.append(f"{brief(sample)}: {different}")
    assert not wrong, "\n".join(wrong[:5])


STORING = [op for op in OPERATORS if op.supports_out and op.name not in CALLS
           and identity(op) not in BY_DESIGN]  # fmt: skip


@pytest.mark.parametrize(
    "op", [pytest.param(op, id=identity(op), marks=share(identity(op), 16)) for op in STORING])
def test_results_are_stored_in_out(op: Any) -> None:
    function = ours(op)
    assert function is not None
    for sample in samples(op):
        with torch.no_grad():
            expected = op(sample.input, *sample.args, **sample.kwargs)
            if not isinstance(expected, torch.Tensor) or raises(
                    lambda *a, out=torch.empty_like(expected), **k: op(*a, **k, out=out), sample):
                continue
        args = [converted(x, []) for x in (sample.input, *sample.args)]
        kwargs = {k: converted(v, []) for k, v in sample.kwargs.items()}
        out = converted(torch.zeros_like(expected), [])
        try:
            with tracejit.no_grad():
                assert function(*args, **kwargs, out=out) is out
        except NotImplementedError as error:
            assert "complex tensors are not supported" in str(error)
            continue
        if defined(op, sample):
            assert not unequal(array(out), array(expected), 1e-4), brief(sample)
