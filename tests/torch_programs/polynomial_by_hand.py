"""The first tutorial: a cubic fitted to a sine by hand, by autograd, by a module, by optimizers."""

import math

import torch


class Polynomial3(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (torch.nn.Parameter(torch.randn(())) for _ in range(4))

    def forward(self, x):
        return self.a + self.b * x + self.c * x ** 2 + self.d * x ** 3

    def string(self):
        return f"{self.a.item():.3f} + {self.b.item():.3f} x"


def model():
    return Polynomial3()


def train(model):
    x = torch.linspace(-math.pi, math.pi, 200)
    y = torch.sin(x)
    a, b, c, d = (p.detach().clone().requires_grad_() for p in model.parameters())
    by_hand = []
    for t in range(5):
        loss = (a + b * x + c * x ** 2 + d * x ** 3 - y).pow(2).sum()
        by_hand.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for p in (a, b, c, d):
                p -= 1e-6 * p.grad
                p.grad = None

    criterion = torch.nn.MSELoss(reduction="sum")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    compiled = torch.compile(model)
    losses = []
    for t in range(5):
        loss = criterion(compiled(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    p = torch.tensor([1, 2, 3])
    xx = x.unsqueeze(-1).pow(p)
    linear = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
    with torch.no_grad():
        linear[0].weight.copy_(torch.stack([model.b, model.c, model.d])[None])
        linear[0].bias.fill_(model.a.item())
    assert torch.allclose(linear(xx), model(x), atol=1e-4)
    return {"by hand": by_hand, "losses": losses, "text": model.string(), "xx": xx.shape,
            "a": (a, b, c, d)}
