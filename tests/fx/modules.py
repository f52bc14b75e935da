"""Modules and functions to trace, written once for `torch` and `tracejit`: M is either."""

from __future__ import annotations

import math
import operator
from typing import Any


def linears(M: Any) -> dict[str, Any]:
    """Return {name: (module or function, arguments, concrete_args)}."""
    nn, F = M.nn, M.nn.functional

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.rest = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Tanh()))

        def forward(self, x):
            return self.rest(self.first(x)) + 1

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Layers()
            self.scale = nn.Parameter(M.ones(4))
            self.register_buffer("shift", M.ones(4))
            self.plain = M.full((4,), 2.0)

        def forward(self, x):
            y = self.inner(x) * self.scale
            return self.shift + y - self.plain - self.inner.first.bias * self.scale

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
            self.named = nn.ModuleDict({"out": nn.LayerNorm(3)})

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return self.named["out"](x)

    class Defaults(nn.Module):
        def forward(self, x, y=None, *, k=1.5, **rest):
            return x * k if y is None else x * k + y

    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.pool = nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(2)
            self.norm, self.end = nn.BatchNorm2d(2), nn.Linear(8, 2)

        def forward(self, x):
            x = self.pool(M.relu(self.norm(self.conv(x))))
            return self.end(M.flatten(x, 1))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(3, 3) for _ in range(3))
            self.drop = nn.Dropout(0.0)

        def forward(self, x):
            scores = M.matmul(self.q(x), self.k(x).transpose(-2, -1)) / math.sqrt(3)
            return self.drop(M.softmax(scores, -1)) @ self.v(x)

    x, image = M.arange(6.0).reshape(2, 3), M.arange(32.0).reshape(2, 1, 4, 4)
    return {
        "layers": (Layers(), (x,), None),
        "own modules": (Own(), (x,), None),
        "lists": (Listed(), (x,), None),
        "defaults": (Defaults(), (x, M.ones(2, 3)), None),
        "images": (Images().eval(), (image,), None),
        "attention": (Attention(), (x,), None),
        "sequential": (nn.Sequential(nn.Linear(3, 2), nn.GELU()), (x,), None),
        "shared layer": (_shared(nn), (x,), None),
        "relu": (lambda x: F.relu(x, inplace=False) + M.relu(x), (x,), None),
        "concrete number": (lambda x, n: x * n if n > 1 else x, (x, 3), {"n": 3}),
        "concrete none": (lambda x, m=None: x if m is None else x + m, (x, None), {"m": None}),
    }


def _shared(nn):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(self.layer(x).abs())

    return Shared()


def functions(M: Any) -> dict[str, Any]:
    """Return {name: (function, arguments, None)}."""
    x, y = M.arange(6.0).reshape(2, 3), M.ones(2, 3)

    def operators(x, y):
        a = -x + 1 - y * 2 / (1 + y) ** 2
        return a % 3 // 2, abs(a) @ a.T, a == x, (a < x) & (x >= y) | ~(a != y), 2 ** x, 1 - x

    def indexing(x):
        return x[0], x[:, 1:2], x[..., None], x[(0, 1)], x.shape[0], x.size(1)

    def containers(x, y):
        both = [x, y]
        return {"sum": x + y, "both": both, "cat": M.cat(both, dim=1)}, (x, slice(0, 1))

    def methods(x, y):
        first, second = x.chunk(2, dim=0)
        return first.add(second).view(-1).to(M.float64), x.T.contiguous().sum(dim=1, keepdim=True)

    def constants(x):
        return x + M.ones(3) * 2 + M.full((3,), 0.5), x * float("inf")

    def in_place(x):
        z = x + 0
        z.add_(1)
        z += 2
        z = operator.iadd(z, 3)
        return z

    def einsum(x, y):
        return M.einsum("ij,kj->ik", x, y), M.where(x > 2, x, y), M.stack((x, y))

    def chosen(x):
        half = M.full_like(x, 0.5) + M.sigmoid_(x + 0)
        return half, M.topk(x, 2)[0], x.max(dim=1)[1], x.unsqueeze(0).permute(2, 0, 1), math.pi * x

    return {
        "operators": (operators, (x, y), None), "indexing": (indexing, (x,), None),
        "containers": (containers, (x, y), None), "methods": (methods, (x, y), None),
        "constants": (constants, (x,), None), "in place": (in_place, (x,), None),
        "einsum": (einsum, (x, y), None), "chosen": (chosen, (x,), None),
    }  # fmt: skip


def everything(M: Any) -> dict[str, Any]:
    return linears(M) | functions(M)
