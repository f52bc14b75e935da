"""A derivative of one's own: a softplus that neither overflows nor loses its second derivative.

`log(1 + exp(x))` overflows for large x, and so does its derivative. An `autograd.Function` says
how to compute both well. Its backward is written in tensor operations, so it can be differentiated
again, which the gradient penalty below needs; inside `@tracejit.script` nothing changes.

    python examples/custom_function.py
"""

import argparse
import sys

import tracejit

STEPS = 200
TOLERANCE = 1e-5


class Softplus(tracejit.autograd.Function):
    """log(1 + exp(x)), with a derivative that is a plain sigmoid."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return tracejit.clamp(x, min=0.0) + tracejit.log(1.0 + tracejit.exp(-tracejit.abs(x)))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * tracejit.sigmoid(x)


def penalised_loss(x, target, weight, hidden):
    """A regression whose output should also be flat in x: the loss holds a derivative."""
    prediction = Softplus.apply(x @ weight) @ hidden
    (slope,) = tracejit.autograd.grad(prediction.sum(), x, create_graph=True)
    return ((prediction - target) ** 2).mean() + 0.01 * (slope**2).mean()


def fit(steps: int, compiled: bool) -> list[float]:
    """Losses of plain gradient descent on the penalised loss."""
    tracejit.manual_seed(0)
    x = tracejit.randn(64, 4, requires_grad=True)
    target = (x.detach() ** 2).sum(dim=1, keepdim=True)
    weight = (0.5 * tracejit.randn(4, 16)).requires_grad_()
    hidden = (0.5 * tracejit.randn(16, 1)).requires_grad_()

    def step(x, target, weight, hidden):
        loss = penalised_loss(x, target, weight, hidden)
        for parameter, grad in zip(
            (weight, hidden), tracejit.autograd.grad(loss, (weight, hidden))
        ):
            with tracejit.no_grad():
                parameter.sub_(0.02 * grad)
        return loss.detach()

    run = tracejit.script(step) if compiled else step
    return [run(x, target, weight, hidden).item() for _ in range(steps)]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    steps = STEPS // 10 if parser.parse_args(argv).quick else STEPS

    ends = tracejit.tensor([-100.0, 0.0, 100.0])
    print(f"softplus of -100, 0, 100: {Softplus.apply(ends).tolist()}")
    points = tracejit.tensor([-3.0, -0.5, 0.25, 2.0], dtype=tracejit.float64, requires_grad=True)
    first = tracejit.autograd.gradcheck(Softplus.apply, (points,))
    second = tracejit.autograd.gradgradcheck(Softplus.apply, (points,))
    print(f"gradcheck {first}, gradgradcheck {second}\n")

    eager, compiled = fit(steps, compiled=False), fit(steps, compiled=True)
    print(f"{'step':>6} {'eager':>12} {'compiled':>12}")
    for step in sorted({0, steps // 4, steps // 2, steps - 1}):
        print(f"{step:>6} {eager[step]:>12.6f} {compiled[step]:>12.6f}")
    worst = max(abs(a - b) / abs(a) for a, b in zip(eager, compiled))
    right = first and second and worst <= TOLERANCE and eager[-1] < 0.7 * eager[0]
    print(f"\nlosses agree to {worst:.1e} (relative)")
    print("all as it should be" if right else "WRONG: see above")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
