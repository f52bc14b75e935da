"""Inputs and weights that are the same whichever library is `torch`.

In: shapes and modules. Out: tensors of NumPy's seeded numbers. Called by the programs beside it.
"""

import numpy as np
import torch


def array(*shape, seed=0, scale=1.0):
    """Return a float32 tensor of normal numbers."""
    values = np.random.RandomState(seed).randn(*shape) * scale
    return torch.from_numpy(np.asarray(values, dtype=np.float32))


def integers(*shape, high, seed=0):
    """Return an int64 tensor of numbers from 0 to `high` - 1."""
    return torch.from_numpy(np.random.RandomState(seed).randint(0, high, shape).astype(np.int64))


def filled(module, scale=0.1):
    """Give the module's floating parameters and buffers fixed values; variances are positive."""
    with torch.no_grad():
        for seed, (name, value) in enumerate(sorted(module.state_dict().items())):
            if not value.is_floating_point():
                continue
            new = array(*value.shape, seed=seed, scale=scale)
            if "var" in name:
                new = new.abs() + 0.5
            elif name.endswith("weight") and value.dim() == 1:
                new = new + 1.0
            value.copy_(new)
    return module


def trained(module, loss, lr=0.05):
    """Return a training step of SGD, which gives the loss and two gradients."""
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)

    def step(*batch):
        optimizer.zero_grad()
        value = loss(module, *batch)
        value.backward()
        optimizer.step()
        grads = [p.grad for p in module.parameters() if p.grad is not None]
        return [value.detach(), grads[0], grads[-1]]

    return step
