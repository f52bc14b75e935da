"""Empty tensors by strides and by the order of their dimensions, against PyTorch's."""

from __future__ import annotations

import pytest

import tracejit

CALLS = """
t.empty_strided((2, 3), (1, 2))
t.empty_strided((2, 3), (4, 1), dtype=t.int32)
t.empty_strided((3,), (0,), dtype=t.float64, requires_grad=True)
t.empty_strided((), ())
t.empty_strided((2, 3), (1,))
t.empty_strided((2, 3), (1, -1))
t.empty_strided((2, -3), (1, 1))
t.ones(1, dtype=t.float64).new_empty_strided((2, 3), (1, 2))
t.ones(1).new_empty_strided((2, 3), (1, 2), dtype=t.int8)
t.empty_permuted((2, 3, 5), (2, 0, 1))
t.empty_permuted((2, 4), (1, 0), requires_grad=True)
t.empty_permuted((), ())
t.empty_permuted((2, 3, 5), (2, 0))
t.empty_permuted((2, 3, 5), (2, 0, 0))
t.empty_permuted((2, 3, 5), (2, 0, 3))
t.empty_permuted((2, 3), (0, -1))
""".strip().split("\n")


def shown(library, call):
    try:
        x = eval(call, {"t": library})
    except RuntimeError as error:
        return str(error).lower()
    kind = str(x.dtype).rpartition(".")[2]
    return tuple(x.shape), x.stride(), kind, x.requires_grad, x.is_leaf, x._is_view()


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_layouts_and_errors_are_pytorch_s(call):
    torch = pytest.importorskip("torch")
    assert shown(tracejit, call) == shown(torch, call)


def filled(values):
    x = tracejit.empty_strided(tuple(values.shape), (1, values.shape[0]))
    y = tracejit.empty_permuted(tuple(values.shape), (1, 0))
    x.copy_(values)
    y.add_(x)
    return x * 1, y


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_captured_tensors_lie_as_asked_for(mode):
    run = tracejit.script(filled, mode=mode)
    for shape in ((2, 3), (4, 2), (3, 5)):
        values = tracejit.randn(shape)
        x, y = run(values)
        assert x.equal(values) and y.equal(values)
        assert y.stride() == (1, shape[0])
    assert run.report().compiles == 1 and not run.report().breaks
