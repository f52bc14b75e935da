"""Where does the NaN come from? Five ways to ask, on a bug that many have written.

The length of a vector is `sqrt(sum of squares)`, and its derivative at zero is 0 * inf. One row
of zeros, as padding makes them, and after one step every weight is NaN.

    python examples/debug_nan.py
"""

import argparse
import sys
import textwrap
import warnings

import tracejit
from tracejit import config, nn


class Directions(nn.Module):
    """Project, divide by the length, score. `epsilon` 0 is the bug."""

    def __init__(self, epsilon: float):
        super().__init__()
        self.project = nn.Linear(8, 8, bias=False)
        self.score = nn.Linear(8, 1)
        self.epsilon = epsilon

    def forward(self, x):
        y = self.project(x)
        length = tracejit.sqrt((y * y).sum(dim=1, keepdim=True) + self.epsilon)
        return self.score(y / (length + 1e-3))


def loss_of(model: Directions, x, target):
    return ((model(x) - target) ** 2).mean()


def data():
    """Sixteen rows, the last of them padding."""
    tracejit.manual_seed(0)
    x, target = tracejit.randn(16, 8), tracejit.randn(16, 1)
    x[15] = 0.0
    return x, target


def losses(epsilon: float, steps: int, mode: str = "compiled", rows: int = 16) -> list[float]:
    """Train under `tracejit.script` in one of its modes, on the last rows of the data."""
    x, target = (tensor[-rows:] for tensor in data())
    model = Directions(epsilon)
    optimizer = tracejit.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    @tracejit.script(mode=mode)
    def step(x, target):
        optimizer.zero_grad()
        loss = loss_of(model, x, target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return [step(x, target).item() for _ in range(steps)]


def first_kernel() -> str:
    """What the compiled step says with TRACEJIT_CHECK_NANS=1: the first kernel that wrote a NaN."""
    try:
        # The flag holds for what is bound under it: sizes that were not used before.
        with config.override(check_nans=True):
            losses(0.0, 1, rows=8)
    except FloatingPointError as error:
        return str(error)
    return ""


def anomaly_report() -> list[str]:
    """Eager mode names the operation whose derivative made the NaN, and its forward line."""
    x, target = data()
    model = Directions(0.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with tracejit.autograd.detect_anomaly():
                loss_of(model, x, target).backward()
        except RuntimeError as error:
            where = [line for warning in told for line in str(warning.message).splitlines()]
            return [str(error), *[line.strip() for line in where if line.strip()][-2:]]
    return []


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    steps = 4 if parser.parse_args(argv).quick else 20

    broken = losses(0.0, steps)
    print(f"1. the losses: {', '.join(f'{loss:.4f}' for loss in broken[:4])}, ...")
    print("   fine once, NaN ever after: the first backward did it\n")

    print("2. is it the compiler? The same step in the other modes:")
    others = {mode: losses(0.0, 2, mode) for mode in ("eager", "graph", "python")}
    for mode, found in others.items():
        print(f"   {mode:<8} {found[0]:.4f}, {found[1]:.4f}")
    print("   no. And node by node, the forward agrees with eager mode:")
    x, target = data()
    model = Directions(0.0).requires_grad_(False)
    comparison = tracejit.compare(tracejit.script(lambda x: model(x)), x)
    print("\n".join(f"   | {line}" for line in str(comparison).splitlines()[:12]), end="\n\n")

    print("3. anomaly mode, on the plain function:")
    anomaly = anomaly_report()
    print("\n".join(f"   | {line}" for line in anomaly), end="\n\n")

    print("4. TRACEJIT_CHECK_NANS=1, on the compiled step: which kernel, which line:")
    kernel = first_kernel()
    print("\n".join(f"   | {line}" for line in textwrap.wrap(kernel, 90)), end="\n\n")

    fixed = losses(1e-12, steps)
    print("5. with a small number under the root, as the derivative there wants:")
    print(f"   {fixed[0]:.4f} -> {fixed[-1]:.4f}")

    nan = all(loss != loss for found in (broken, *others.values()) for loss in found[1:])
    named = "Sqrt" in "".join(anomaly) and "sqrt" in kernel and "loss.backward()" in kernel
    right = nan and named and fixed[-1] < fixed[0]
    print("\nall as it should be" if right else "\nWRONG: see above")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
