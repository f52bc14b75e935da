"""L-BFGS: a closure evaluated again and again, on a curve and on Rosenbrock's valley."""

import numpy as np
import torch
from torch import nn


class Sine(nn.Module):
    """Amplitude, frequency and phase of a wave."""

    def __init__(self):
        super().__init__()
        self.a, self.f, self.p = (nn.Parameter(torch.tensor(v)) for v in (0.7, 1.2, 0.1))

    def forward(self, t):
        return self.a * torch.sin(self.f * t + self.p)


def model():
    return Sine()


@torch.compile
def rosenbrock(xy):
    x, y = xy
    return (1 - x) ** 2 + 100 * (y - x ** 2) ** 2


def train(model):
    t = torch.from_numpy(np.linspace(0, 3, 40, dtype="float32"))
    target = 1.5 * torch.sin(1.6 * t + 0.4)
    loss_of = torch.compile(lambda: (model(t) - target).square().mean())
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, history_size=4)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)

    point = torch.tensor([-0.5, 1.0], requires_grad=True)
    valley = torch.optim.LBFGS([point], line_search_fn="strong_wolfe", max_iter=5)
    values = []

    def down():
        valley.zero_grad()
        value = rosenbrock(point)
        value.backward()
        values.append(value.item())
        return value

    valley.step(down)
    return {"losses": losses, "values": values, "point": point}
