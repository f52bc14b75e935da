"""Views are those that the array library would make: layouts, memory, history, errors."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager import view_layouts

CHAINS = 300


def _step(x, rng):
    """Return the text of a random view of x."""
    dims = x.dim()
    d = rng.randrange(-dims, dims) if dims else 0
    size = x.shape[d] if dims else 0
    ways = [f"unsqueeze({rng.randint(-dims - 1, dims)})", "view(-1)",
            "reshape(x.shape)", "squeeze()", "view(x.shape[::-1])", "reshape(2, -1)",
            "unsqueeze(0).expand(2, *x.shape)"]
    if dims:
        order = list(range(dims))
        rng.shuffle(order)
        start, stop = sorted(rng.sample(range(size + 2), 2))
        index, step = rng.randint(-size, size), rng.randint(1, 3)
        ways += [f"permute({order})", f"transpose({d}, 0)", f"select({d}, {index})",
                 f"narrow({d}, {start}, {stop - start})", f"squeeze({d})", "t()", "mT", "[-1]",
                 f"[{start}:{stop}:{step}]", f"[..., {index}]", f"[None, {start}:]"]
    return rng.choice(ways)


def _look(x, step):
    return eval(f"x{step}" if step.startswith("[") else f"x.{step}", {"x": x})


def _facts(x, base):
    strides = [stride for stride, size in zip(x.stride(), x.shape) if size != 1]  # others are free
    offset = x.storage_offset() * (x.numel() > 0)
    shared = x.untyped_storage().data_ptr() == base.data_ptr()
    return (tuple(x.shape), strides, offset, x.tolist(), x.is_contiguous(), x.dtype, shared,
            x._is_view(), x._base is base, x.requires_grad, type(x.grad_fn).__name__)  # fmt: skip


def _run(seed):
    """Return what a chain of views gives, step by step, errors and gradients included."""
    rng = random.Random(seed)
    shape = [rng.choice([0, 1, 2, 3, 4]) if rng.random() < 0.1 else rng.randint(1, 4)
             for _ in range(rng.randint(0, 4))]  # fmt: skip
    base = tj.arange(float(tj.Size(shape).numel())).reshape(shape).clone()
    leaf = base.requires_grad_(rng.random() < 0.5)
    base = leaf * 1 if leaf.requires_grad else leaf
    x, found = base, []
    for _ in range(rng.randint(1, 5)):
        step = _step(x, rng)
        try:
            x = _look(x, step)
        except (RuntimeError, IndexError, ValueError) as error:
            found.append((step, type(error).__name__, str(error)))
            continue
        found.append((step, _facts(x, base)))
    if leaf.requires_grad:
        try:
            x.mul_(2)
            (base * base).sum().backward()
        except RuntimeError as error:  # several elements lie in one place
            found.append(str(error))
        found.append(None if leaf.grad is None else leaf.grad.tolist())
    return found


@pytest.mark.parametrize("first", range(0, CHAINS, 100))
def test_chains_of_views_are_those_of_the_array_library(first, monkeypatch):
    ours = [_run(seed) for seed in range(first, first + 100)]
    monkeypatch.setattr(view_layouts, "seen", lambda *given: None)
    for seed, found in enumerate(ours, first):
        assert found == _run(seed), seed


def test_most_views_are_worked_out(monkeypatch):
    asked, made = [], []
    plain = view_layouts.seen

    def counted(op, x, attributes):
        found = plain(op, x, attributes)
        asked.append(op.name)
        made.append(found is not None)
        return found

    monkeypatch.setattr(view_layouts, "seen", counted)
    for seed in range(CHAINS):
        _run(seed)
    assert sum(made) > 0.8 * len([name for name in asked if name != "expand"]) > 500


def test_memory_that_was_given_back_has_no_views():
    x = tj.ones(4)
    x.untyped_storage().resize_(0)
    for look in (lambda: x[1:], lambda: x.view(2, 2)):
        assert_same_error(look)


def assert_same_error(look):
    texts = []
    for seen in (view_layouts.seen, lambda *given: None):
        before, view_layouts.seen = view_layouts.seen, seen
        try:
            look()
            texts.append(None)
        except RuntimeError as error:
            texts.append(str(error))
        finally:
            view_layouts.seen = before
    assert texts[0] == texts[1]


def test_views_of_other_memory():
    array = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    tj.from_numpy(array).t()[2:, 1].unsqueeze(0).fill_(50.0)
    assert array[1].tolist() == [4.0, 5.0, 50.0, 50.0]
    assert tj.arange(6, dtype=tj.bfloat16)[::2].tolist() == [0.0, 2.0, 4.0]
