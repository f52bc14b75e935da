"""Kernels that the compiler refuses: the graph runs op by op, and a warning says so."""

import pytest

import tracejit as tj
from tracejit.config import flags
from tracejit.jit.lowering import native


@pytest.fixture
def refusing(monkeypatch):
    """Set the start of the names of kernels that nothing can compile."""
    monkeypatch.setattr(flags, "verify_passes", False)
    emit, wrong = native.emit_kernel, []

    def emit_or_refuse(kernel):
        if any(kernel.name.startswith(name) for name in wrong):
            raise native.KernelError(f"kernel {kernel.name}: refused")
        return emit(kernel)

    monkeypatch.setattr(native, "emit_kernel", emit_or_refuse)
    return wrong.append


def total(x):
    found = tj.zeros(())
    for row in x * 3.7193:
        found = found * 0.9 + (row * row).sum()
    return found * 2


@pytest.mark.parametrize("name", ["for_loop", "mul"])
def test_the_graph_runs_op_by_op(refusing, name):
    refusing(name)
    x = tj.arange(57.0).reshape(19, 3)
    compiled = tj.script(total)
    with pytest.warns(RuntimeWarning, match=f"kernel {name}_.*: refused.*op by op"):
        first = compiled(x)
    assert tj.allclose(first, total(x)) and tj.allclose(compiled(x + 1), total(x + 1))
