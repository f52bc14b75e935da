"""The order in which leaves get their gradients, as hooks see it, beside PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def seen(space: Any, make: Any, *shapes: tuple[int, ...], captured: bool = False) -> list[str]:
    """Return the names of the parameters of `make(nn)` in the order in which hooks run."""
    module = make(space.nn)
    order: list[str] = []
    for name, parameter in module.named_parameters():
        parameter.register_hook(lambda grad, name=name: order.append(name))
    inputs = [space.randn(*shape) for shape in shapes]

    def step(*given: Any) -> None:
        found = module(*given)
        (found[0] if type(found) is tuple else found).sum().backward()

    run = space.script(step) if captured else step
    run(*inputs)
    order.clear()
    run(*inputs)
    return order


MODULES = {
    "layers": (lambda nn: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)), (4, 3)),
    "batches": (lambda nn: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)), (2, 4, 3)),
    "one row": (lambda nn: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)), (3,)),
    "no bias": (lambda nn: nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 2)), (4, 3)),
    "bilinear": (lambda nn: nn.Bilinear(2, 3, 2), (4, 2), (4, 3)),
    "convolution": (lambda nn: nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 2)), (4, 1, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "captured"])
@pytest.mark.parametrize("name", MODULES)
def test_hooks_run_in_pytorchs_order(name: str, captured: bool) -> None:
    make, *shapes = MODULES[name]
    assert seen(tracejit, make, *shapes, captured=captured) == seen(torch, make, *shapes)
