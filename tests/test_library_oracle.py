"""Ops of the user's own against PyTorch's, eager and captured."""

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def _defined(lib, name):
    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.scale = inputs[2] * keyword_only_inputs["more"]

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.scale, g * x * ctx.scale, None

    @lib.library.custom_op(f"tests::{name}", mutates_args=())
    def op(x: lib.Tensor, y: lib.Tensor, scale: float = 2.0, *, more: float = 1.0) -> lib.Tensor:
        return x * y * scale * more

    op.register_fake(lambda x, y, scale=2.0, *, more=1.0: lib.empty_like(x))
    lib.library.register_autograd(f"tests::{name}", backward, setup_context=setup)
    return op


@pytest.mark.parametrize("mode", ["eager", "script", "trace"])
def test_gradients_of_its_own(mode):
    found = []
    for lib in (tracejit, torch):
        _defined(lib, f"mul_{mode}")
        op = getattr(lib.ops.tests, f"mul_{mode}")

        def run(x, y):
            return op(x, y).sum() + op(x, y=y, scale=3.0, more=0.5).sum()  # noqa: B023

        if lib is tracejit and mode != "eager":
            run = getattr(tracejit, mode)(run)
        for k in range(3):
            x, y = (lib.tensor([1.0 + k, 2.0 * i], requires_grad=True) for i in (1, 2))
            out = run(x, y)
            out.backward()
            found.append([out.item(), x.grad.tolist(), y.grad.tolist()])
    assert found[:3] == found[3:]


def test_without_a_gradient_and_writing():
    for lib in (tracejit, torch):
        @lib.library.custom_op("tests::plain", mutates_args=())
        def plain(x: lib.Tensor) -> lib.Tensor:
            return x * 2

        @lib.library.custom_op("tests::sine_", mutates_args={"x"})
        def sine_(x: lib.Tensor) -> None:
            x.sin_()

        with pytest.raises(RuntimeError, match="no autograd formula was registered"):
            plain(lib.ones(2, requires_grad=True)).sum().backward()
        t = lib.zeros(2)
        assert sine_(t + 1) is None and sine_(t) is None and t.tolist() == [0.0, 0.0]
        with pytest.raises(RuntimeError, match="tests::nothing does not exist"):
            lib.library.register_fake("tests::nothing", plain)
