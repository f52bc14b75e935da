"""Hooks: features of inner layers, gradients on their way back, activations changed in passing."""

import numpy as np
import torch
from torch import nn


class Features:
    """Keeps the output of a layer."""

    def __init__(self, layer):
        self.handle = layer.register_forward_hook(self)
        self.value = None

    def __call__(self, module, args, output):
        self.value = output.detach()


def model():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def train(model):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 4)).astype("float32"))
    forward = torch.compile(model)
    seen = {}

    def keep_gradient(name):
        def hook(module, grad_input, grad_output):
            seen[name] = [g if g is None else g.clone() for g in (*grad_input, *grad_output)]
        return hook

    features = Features(model[1])
    handles = [model[i].register_full_backward_hook(keep_gradient(f"layer{i}")) for i in (2, 4)]
    handles.append(model[3].register_forward_pre_hook(lambda module, args: (args[0] * 0.5,)))
    norms = []
    handles.append(model[0].weight.register_hook(lambda g: norms.append(g.norm()) or g * 2))
    out = forward(x)
    out.pow(2).sum().backward()
    first = {"features": features.value, "seen": dict(seen), "norms": norms[:],
             "grads": [p.grad.clone() for p in model.parameters()]}

    for handle in (features.handle, *handles):
        handle.remove()
    model.zero_grad()
    seen.clear()
    inner = torch.zeros(5, 8).requires_grad_()
    shift = model[2].register_forward_hook(lambda module, args, output: output + inner)
    forward(x).sum().backward()
    shift.remove()
    return {"first": first, "inner": inner.grad, "seen": seen, "plain": forward(x),
            "left": [len(m._forward_hooks) + len(m._backward_hooks) for m in model]}
