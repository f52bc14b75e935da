"""Low-rank adapters beside frozen weights, added to them for evaluation and taken away again.

Windows of the sequence overlap by strides; masks are made with Python's types as dtypes.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Adapter:
    """What adapted layers share: the update's factors, and whether the weight has it already."""

    def adapt(self, inputs, outputs, rank):
        self.down = nn.Parameter(self.weight.new_zeros((rank, inputs)))
        self.up = nn.Parameter(self.weight.new_zeros((outputs, rank)))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scaling, self.merged = 1 / rank, False
        self.weight.requires_grad = False

    def update(self):
        return (self.up @ self.down).view(self.weight.shape) * self.scaling

    def train(self, mode=True):
        nn.Module.train(self, mode)
        if mode and self.merged:
            self.weight.data -= self.update()
            self.merged = False
        elif not mode and not self.merged:
            self.weight.data += self.update()
            self.merged = True
        return self


class AdaptedLinear(Adapter, nn.Linear):
    def __init__(self, inputs, outputs, rank):
        nn.Linear.__init__(self, inputs, outputs)
        self.adapt(inputs, outputs, rank)

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        if not self.merged:
            y += x @ self.down.T @ self.up.T * self.scaling
        return y


class AdaptedConv(Adapter, nn.Conv1d):
    def __init__(self, inputs, outputs, width, rank):
        nn.Conv1d.__init__(self, inputs, outputs, width, padding=width // 2)
        self.adapt(inputs * width, outputs, rank)

    def forward(self, x):
        weight = self.weight if self.merged else self.weight + self.update()
        return self._conv_forward(x, weight, self.bias)


class Windowed(nn.Module):
    """Attention of every row to the rows of its window, of which each half is the next one's."""

    def __init__(self, width, half):
        super().__init__()
        self.project, self.half = AdaptedLinear(width, 3 * width, 2), half
        causal = torch.tril(torch.ones((2 * half, 2 * half), dtype=bool))
        self.register_buffer("causal", causal, persistent=False)

    def windows(self, x):
        x = x.view(x.size(0), -1, 2 * self.half, x.size(2))
        size, stride = list(x.size()), list(x.stride())
        size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
        return x.as_strided(size=size, stride=stride)

    def forward(self, x):  # (length, batch, width)
        q, k, v = (self.windows(t.contiguous().transpose(0, 1))
                   for t in self.project(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~self.causal, torch.finfo(scores.dtype).min)
        return (scores.softmax(-1, dtype=float).to(v.dtype) @ v).mean(dim=(1, 2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.attention = AdaptedConv(3, 8, 3, 2), Windowed(8, 2)
        self.head = AdaptedLinear(8, 4, 2)

    def forward(self, x):
        x = torch.tanh(self.conv(x)).permute(2, 0, 1)
        return self.head(self.attention(x))


def model():
    return Net()


def train(model):
    rng = np.random.default_rng(0)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    compiled = torch.compile(model)
    losses, evaluated = [], []
    for _ in range(4):
        x = torch.from_numpy(rng.standard_normal((5, 3, 8)).astype(np.float32))
        y = torch.from_numpy(rng.integers(0, 4, 5))
        model.train()
        loss = F.cross_entropy(compiled(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            evaluated.append(compiled(x))
    frozen = torch.tensor([not p.requires_grad for p in model.parameters()], dtype=int)
    return {"losses": losses, "evaluated": evaluated, "frozen": frozen}
