"""Results that are views, call after call: a later call gives what the first gave."""

import numpy as np
import pytest

import tracejit as tj
from tracejit.core.eager.views import View


def chain(x):
    return (x * 2.0).permute(1, 0)[1:].unsqueeze(0)


def told(y):
    """What a user can see of a view, and what a write to it changes."""
    base = y._base
    seen = (y.shape, y.stride(), y.storage_offset(), y._is_view(), y._version, y.requires_grad)
    y.add_(1.0)
    return seen, y._version, base._version, base.tolist(), y.tolist()


@pytest.mark.parametrize("shape", [(3, 4), (5, 2)])
def test_each_call_gives_the_same_views(shape):
    x = tj.from_numpy(np.random.default_rng(1).standard_normal(shape))
    run = tj.script(chain)
    want = told(chain(x))
    for _ in range(4):
        assert told(run(x)) == want


def test_records_of_views_are_those_of_the_first_call():
    """A view's parents, and what says how it may be used."""
    run, x, records = tj.script(chain), tj.ones(3, 4), []
    run(x)
    for _ in range(3):
        y, record = run(x), []
        while type(y._view) is View:
            view = y._view
            record.append(
                (
                    y.shape,
                    view.op.name,
                    view.attributes,
                    view.origin,
                    view.version,
                    view.viewed,
                    view.output,
                    view.generation,
                )
            )
            y = view.parent
        records.append(record)
    assert len(records[0]) == 3 and records[0] == records[1] == records[2]


def test_sizes_in_turns():
    run = tj.script(chain)
    for shape in [(3, 4), (5, 2), (3, 4), (5, 2)]:
        x = tj.ones(*shape)
        assert told(run(x)) == told(chain(x))


def test_views_of_views_and_gradients():
    """A write through one view reaches another one's history, whichever call made them."""

    @tj.script
    def both(x):
        y = x * 2.0
        return y, y[1:]

    for _ in range(3):
        x = tj.ones(3, requires_grad=True)
        whole, part = both(x)
        part.mul_(3.0)
        whole.sum().backward()
        assert x.grad.tolist() == [2.0, 6.0, 6.0]


def test_vmapped_results():
    @tj.script
    def slopes(x):
        return tj.func.vmap(tj.func.jacrev(lambda v: tj.stack([v.sum(), (v * v).sum()])))(x)

    x = tj.tensor([[1.0, 2.0], [3.0, 4.0]])
    want = tj.func.vmap(tj.func.jacrev(lambda v: tj.stack([v.sum(), (v * v).sum()])))(x)
    for _ in range(4):
        found = slopes(x)
        assert found.tolist() == want.tolist()
        assert (found._base is None) == (want._base is None)
