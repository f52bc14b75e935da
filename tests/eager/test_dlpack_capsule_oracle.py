"""Capsules: a tensor of one is over the same memory, which may be written."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("lib", [torch, tracejit])
def test_writes_through_a_capsule(lib):
    dlpack = lib.utils.dlpack
    for x in (lib.arange(6.0).reshape(2, 3), lib.ones(4, 2).t()[:, ::2], lib.tensor(3)):
        y = dlpack.from_dlpack(dlpack.to_dlpack(x))
        y.fill_(7)
        assert x.tolist() == y.tolist() and x.stride() == y.stride()
        assert bool((x == 7).all())


def test_writes_through_a_capsule_in_a_captured_call():
    def f(x):
        y = x * 2
        tracejit.from_dlpack(tracejit.utils.dlpack.to_dlpack(y)).add_(1)
        return y

    captured = tracejit.script(f)
    for value in (1.0, 2.0, 3.0):
        assert captured(tracejit.tensor([value])).tolist() == [2 * value + 1]
