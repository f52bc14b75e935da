"""What a program shows, as plain data that can be compared: plain runs, captured ones, PyTorch's.

In: whatever a program returned. Out: a tree of lists (types by name, tensors with all that can be
asked of them), and which of its tensors are one object or look at one memory. Called by the tests
of programs, for tracejit's tensors and PyTorch's.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

PLAIN = (bool, int, float, complex, str, bytes, type(None))
CONTAINERS = (list, tuple, dict, set)


def plain(function):
    """In the place of `script`: the function itself."""
    return function


def seen(value, strides=True, messages=True):
    """All of a program's result that its caller can look at."""
    look = _Look(strides, messages)
    tree = look.at(value)
    return [tree, look.same_objects(), look.shared_memory()]


class _Look:
    def __init__(self, strides, messages):
        self.strides, self.messages = strides, messages
        self.tensors = []

    def at(self, value):
        kind = type(value).__name__
        if hasattr(value, "requires_grad") and hasattr(value, "stride"):
            return self._tensor(kind, value)
        if isinstance(value, float) and value == 0:
            return [kind, value, math.copysign(1, value)]
        if isinstance(value, PLAIN):
            return [kind, value]
        if isinstance(value, BaseException):
            return ["error", kind, str(value) if self.messages else ""]
        if isinstance(value, (list, tuple, dict, set)):
            kind = [kind, type(value) in CONTAINERS]  # what follows one may bear its name
        if isinstance(value, dict):
            return [kind, [[self.at(k), self.at(v)] for k, v in value.items()]]
        if isinstance(value, (list, tuple)):
            return [kind, [self.at(v) for v in value]]
        if isinstance(value, (set, frozenset)):
            return [kind, [self.at(v) for v in sorted(value)]]
        if isinstance(value, (type, np.ndarray)):
            return [kind, getattr(value, "__name__", value)]
        assert not callable(value), f"a program shows {value!r}, which cannot be compared"
        return [kind, self.at(vars(value))]

    def _tensor(self, kind, value):
        self.tensors.append(value)
        bare = value.detach()
        dtype = str(value.dtype).rpartition(".")[2]
        told = [kind, dtype, tuple(value.shape), value.requires_grad, value.is_leaf]
        grad = self.at(value.grad) if value.is_leaf else None
        told += [tuple(value.stride()) if self.strides else None, grad]
        return [*told, np.array(bare.tolist())]

    def same_objects(self):
        """For each tensor, which is the first that is the same object."""
        first = {}
        return [first.setdefault(id(t), k) for k, t in enumerate(self.tensors)]

    def shared_memory(self):
        """Pairs of tensors that look at overlapping memory."""
        spans = [_span(t) for t in self.tensors]
        pairs = itertools.combinations(range(len(spans)), 2)
        return [[i, j] for i, j in pairs if _overlap(spans[i], spans[j])]


def _span(t):
    """First byte and the byte after the last, or None for a tensor without elements."""
    if not all(t.shape):
        return None
    last = sum((n - 1) * abs(s) for n, s in zip(t.shape, t.stride()))
    start = t.detach().data_ptr()
    return start, start + (last + 1) * t.element_size()


def _overlap(a, b):
    return a is not None and b is not None and a[0] < b[1] and b[0] < a[1]


def assert_same(got, expected, path="result", rtol=2e-5, atol=1e-6):
    """Equal trees: numbers to the tolerance, everything else exactly."""
    if isinstance(expected, (list, tuple)):
        assert type(got) is type(expected) and len(got) == len(expected), f"{path}: {got}"
        for k, (g, e) in enumerate(zip(got, expected)):
            assert_same(g, e, f"{path}[{k}]", rtol, atol)
    elif isinstance(expected, np.ndarray):
        assert got.shape == expected.shape, path
        np.testing.assert_allclose(got, expected, rtol, atol, err_msg=path)
    elif isinstance(expected, float):
        np.testing.assert_allclose(got, expected, rtol, atol, err_msg=path)
    else:
        assert type(got) is type(expected) and got == expected, f"{path}: {got!r}, {expected!r}"
