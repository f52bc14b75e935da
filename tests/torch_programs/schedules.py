"""Learning rates over time: warm-up by hand, one cycle, restarts, and one that watches the loss."""

import math

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler


def model():
    return nn.Linear(5, 1)


def warmup(step):
    return (step + 1) / 5 if step < 5 else 0.5 * (1 + math.cos(math.pi * (step - 5) / 15))


def train(model):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((20, 5)).astype("float32"))
    y = x @ torch.arange(5.0).view(5, 1)
    kinds = {
        "lambda": lambda o: lr_scheduler.LambdaLR(o, lr_lambda=warmup),
        "one cycle": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.1, total_steps=20),
        "multi": lambda o: lr_scheduler.MultiStepLR(o, milestones=[4, 10], gamma=0.1),
        "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.5),
        "exponential": lambda o: lr_scheduler.ExponentialLR(o, gamma=0.9),
    }
    begin = {name: value.clone() for name, value in model.state_dict().items()}
    found = {}
    for name, make in kinds.items():
        model.load_state_dict(begin)
        optimizer = torch.optim.SGD([
            {"params": [model.weight]}, {"params": [model.bias], "lr": 0.2}],
            lr=0.05, momentum=0.5)
        scheduler = make(optimizer)

        @torch.compile
        def step():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        losses, rates = [], []
        for _ in range(20):
            loss = step()
            losses.append(loss.item())
            rates.append([group["lr"] for group in optimizer.param_groups])
            if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
                scheduler.step(round(losses[-1], 2))
            else:
                scheduler.step()
        found[name] = (losses, rates)
    return found
