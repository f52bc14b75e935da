"""The backward of a Function may write elements of tensors that it made: such calls are programs.
What it writes elsewhere is seen as in plain runs."""

import pytest

import tracejit as tj

Function = tj.autograd.Function
KEPT = [0.0]


class Rectified(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        mine = grad.clone()
        mine[x < 0] = 0
        return mine


class Chosen(Rectified):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        mine = other = None
        if ctx.needs_input_grad[0]:
            mine = grad.mul(x)
            mine[0] = 4.0
        return mine if other is None else other


class OfOps(Rectified):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        mine = tj.zeros_like(grad)
        mine[x > 0] = 2.0
        mine = tj.where(x > 2, mine - grad, mine)
        return mine


class Given(Rectified):
    @staticmethod
    def backward(ctx, grad):
        grad[0] = 5.0
        return grad * 2


class GivenWhole(Rectified):
    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(3)


class OfAList(Rectified):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = KEPT
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        kept = ctx.kept
        kept[0] = kept[0] + 1
        return grad * kept[0]


class OfEither(OfAList):
    @staticmethod
    def backward(ctx, grad):
        mine = grad.clone()
        if grad.shape[0] > 2:
            mine = ctx.kept
        mine[0] = 7.0
        return grad


def seen(function, jit):
    KEPT[0], w, out = 0.0, tj.tensor([1.0, -2.0, 3.0], requires_grad=True), []
    f = jit(lambda w: function.apply(w))
    for k in range(3):
        grad, w.grad = tj.full((3,), k + 1.0), None
        y = f(w)
        for _ in range(2):
            y.backward(grad, retain_graph=True)
            out += [y.tolist(), w.grad.tolist(), grad.tolist(), w.tolist(), list(KEPT)]
    return out, f


@pytest.mark.parametrize("jit", [tj.script, tj.trace])
@pytest.mark.parametrize("function, compiles", [
    (Rectified, 1), (Chosen, 1), (OfOps, 1), (Given, 0), (GivenWhole, 0), (OfAList, 0),
    (OfEither, 0)])
def test_a_backward_that_writes_elements(function, compiles, jit):
    plain, _ = seen(function, lambda f: f)
    captured, f = seen(function, jit)
    assert captured == plain
    assert f.report().compiles == compiles
