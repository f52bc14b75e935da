"""Functions that native replays serve, and how their calls are compared with plain ones."""

from __future__ import annotations

import tracejit as tj

LEVEL = 2.0


class Settings:
    factor = 3.0


def by_default(x, by=2.0):
    return x * by


def plain(x, y):
    z = (x * LEVEL + y) * Settings.factor
    return by_default(z) if tj.is_grad_enabled() else z - 1


def pair(x, y):
    return x * y, x.sum() + y


def warmed(function=plain, *given):
    """Return a captured function that native code serves."""
    compiled = tj.script(function, mode="compiled")
    given = given or (tj.arange(4.0), tj.ones(4))
    for _ in range(9):
        compiled(*given)
    assert compiled.native is not None
    return compiled


def served(compiled, *given):
    """Call, and return the result and whether native code gave it."""
    result = compiled(*given)
    return result, compiled.native is not None


def facts(result):
    if isinstance(result, tuple):
        return [type(result), *map(facts, result)]
    return [type(result), result.dtype, result.shape, result.stride(), result.device,
            result.requires_grad, result.grad_fn is None, result.is_leaf, result.is_inference(),
            result._version, result.detach().tolist()]  # fmt: skip


def outcome(function, *given):
    try:
        return facts(function(*given))
    except Exception as error:
        return type(error), str(error).split("\n")[0]


class Scaled(tj.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = tj.nn.Parameter(tj.ones(4))
        self.inner = tj.nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x) * self.weight * (2 if self.training else 3)
