"""200 programs run at several sizes in one order; prints what each gave, as a digest of its bits.

    python -m tests.runtime.sizes_in_order ORDER STEP

ORDER  "up": small sizes come first, "down": large ones
STEP   one program in so many is run
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import tracejit as t
import tracejit.nn.functional as F

SHAPES = [(6, 5), (70, 300), (20_011, 4), (3, 20_011)]

BEFORE: dict[str, Callable[[Any], Any]] = {
    "x": lambda x: x,
    "square": lambda x: x * x,
    "exp": lambda x: (-x * x).exp(),
    "row": lambda x: x + x[0],
    "column": lambda x: (x * x[:, :1] + 1).tanh(),
    "gelu": F.gelu,
}
REDUCED: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d, keepdim=True) * x,
    "var": lambda x, d: x.var(d, unbiased=False),
    "norm": lambda x, d: x / (1 + x.norm(2, d, True)),
    "amax": lambda x, d: x - x.amax(d, True),
    "softmax": lambda x, d: x.softmax(d),
    "logsumexp": lambda x, d: x.logsumexp(d).sum(),
    "argmax": lambda x, d: x.argmax(d),
    "cumsum": lambda x, d: x.cumsum(d).amax(d),
    "twice": lambda x, d: (x - x.mean(d, True)).square().sum() + x.sum(),
}


def gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        leaf = x.detach().requires_grad_()
        return t.autograd.grad(f(leaf), leaf)[0]

    return run


def _bias(x: Any) -> Any:
    bias = t.zeros(x.shape[1], requires_grad=True)
    return t.autograd.grad(((x + bias) * x).sum(), bias)[0]


WHOLE: dict[str, Callable[[Any], Any]] = {
    "mse": lambda x: F.mse_loss(x, x * 0.5 + 1),
    "product": lambda x: (x[:, :3].t() @ x).sum(),
    "gram": lambda x: x.t()[:4] @ x[:, :4],
    "outer": lambda x: (x[:, :1] * x[:1]).sum((0, 1)),
    "conv": lambda x: F.conv1d(x[None, :3].contiguous(), t.ones(2, 3, 3)).sum(2),
    "layer_norm": lambda x: F.layer_norm(x, (x.shape[1],)).sum(0),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True).square().mean(),
    "scatter": lambda x: t.zeros(3).scatter_add(0, (x[:, 0] > 0).long(), x[:, 1]),
    "index_add": lambda x: t.zeros(2, x.shape[1]).index_add(0, (x[:, 0] > 0).long(), x),
    "embedding": lambda x: F.embedding((x > 0).long(), x[:2]).sum((0, 1)),
    "cross_entropy": lambda x: F.cross_entropy(x, x.argmax(1)),
    "two norms": lambda x: (x.square().sum() + x[:, 0].square().sum()).sqrt(),
    "middle": lambda x: x.reshape(1, -1, 1).expand(2, -1, 3).sum(1),
    "bias": _bias,
}
AXES: list[Any] = [0, 1]


def programs() -> list[tuple[str, Callable[[Any], Any]]]:
    """Name and function of each."""
    found = []
    for b, before in BEFORE.items():
        for r, reduced in REDUCED.items():
            for d in AXES:
                found.append((f"{r}({b}, {d})", _joined(before, reduced, d)))
        for w, whole in WHOLE.items():
            found.append((f"{w}({b})", lambda x, f=whole, g=before: f(g(x))))
    found += [(f"grad of {w}", gradient(lambda x, f=f: f(x).float().sum()))
              for w, f in WHOLE.items() if w != "bias"]
    return found


def _joined(before: Any, reduced: Any, d: int) -> Callable[[Any], Any]:
    return lambda x: reduced(before(x), d)


def run(order: str, step: int) -> dict[str, str]:
    """The digest of each result, by program and shape."""
    found = {}
    for name, function in programs()[::step]:
        captured = t.script(function)
        for shape in SHAPES if order == "up" else SHAPES[::-1]:
            t.manual_seed(0)
            result = captured(t.randn(*shape)).numpy()
            found[f"{name} {shape}"] = hashlib.sha256(result.tobytes()).hexdigest()[:16]
    return found


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
