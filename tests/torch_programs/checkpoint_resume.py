"""Training is stopped, saved to a file and resumed in new objects: as if it had never stopped."""

import io

import numpy as np
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR


def model():
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.BatchNorm1d(16), nn.Linear(16, 1))


def made(model):
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    return optimizer, CosineAnnealingLR(optimizer, T_max=12)


def run_epochs(model, optimizer, scheduler, epochs):
    criterion = nn.MSELoss()

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = torch.compile(step)
    losses = []
    for epoch in epochs:
        rng = np.random.default_rng(epoch)
        x = torch.tensor(rng.standard_normal((24, 6)), dtype=torch.float32)
        losses.append(step(x, (x ** 2).mean(1, keepdim=True)).item())
        scheduler.step()
    return losses


def train(model):
    optimizer, scheduler = made(model)
    losses = run_epochs(model, optimizer, scheduler, range(5))
    buffer = io.BytesIO()
    torch.save({
        "epoch": 5,
        "model_state_dict": model.state_dict(),
        "optimizer_state_dict": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "losses": losses,
    }, buffer)
    straight = run_epochs(model, optimizer, scheduler, range(5, 12))

    buffer.seek(0)
    checkpoint = torch.load(buffer, map_location="cpu")
    again = globals()["model"]()
    again_optimizer, again_scheduler = made(again)
    again.load_state_dict(checkpoint["model_state_dict"])
    again_optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
    again_scheduler.load_state_dict(checkpoint["scheduler"])
    resumed = run_epochs(again, again_optimizer, again_scheduler, range(checkpoint["epoch"], 12))
    assert resumed == straight
    state = again_optimizer.state_dict()
    return {"losses": checkpoint["losses"] + resumed, "groups": state["param_groups"],
            "steps": [s["step"] for s in state["state"].values()],
            "rates": again_scheduler.get_last_lr()}
