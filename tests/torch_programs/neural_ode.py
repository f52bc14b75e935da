"""A differential equation whose right-hand side is a network, solved by Runge and Kutta's steps."""

import torch
from torch import nn


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.3)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y ** 3)


def odeint(func, y0, t):
    solution = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        dt, y = t1 - t0, solution[-1]
        k1 = func(t0, y)
        k2 = func(t0 + dt / 2, y + dt * k1 / 2)
        k3 = func(t0 + dt / 2, y + dt * k2 / 2)
        k4 = func(t1, y + dt * k3)
        solution.append(y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6)
    return torch.stack(solution)


def model():
    return ODEFunc()


def train(model):
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    t = torch.linspace(0.0, 1.0, 12)
    y0 = torch.tensor([[2.0, 0.0]])
    with torch.no_grad():
        true_y = odeint(lambda t, y: torch.mm(y ** 3, true_A), y0, t)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, eps=1e-3)

    @torch.compile
    def step(start, times, target):
        optimizer.zero_grad()
        loss = torch.mean(torch.abs(odeint(model, start, times) - target))
        loss.backward()
        optimizer.step()
        return loss.detach()

    losses = []
    for begin, length in ((0, 6), (3, 6), (5, 4)):
        part = slice(begin, begin + length)
        losses.append(step(true_y[begin], t[part] - t[begin], true_y[part]).item())
    return {"losses": losses, "true": true_y}
