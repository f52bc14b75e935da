"""What scatter and its kin make of every rank of index and source, also of an index without
elements, is what PyTorch makes of it."""

import itertools

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore:The reduce argument")]

SHAPES = [(), (3,), (2, 3), (2, 1, 3)]
INDICES = [*SHAPES, (0,), (0, 3), (1, 3), (3, 3)]
SOURCES = [*SHAPES, (0,), (2, 2), None]
CALLS = {
    "scatter": lambda x, i, s: x.scatter(0, i, s),
    "scatter_add": lambda x, i, s: x.scatter_add(0, i, s),
    "scatter_reduce": lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=False),
    "in place": lambda x, i, s: x.clone().scatter_(0, i, s, reduce="multiply"),
}


def outcome(t, call, input, index, source):
    x = t.full(input, 3.0, requires_grad=call != "in place")
    s = 5.0 if source is None else t.full(source, 5.0)
    try:
        out = CALLS[call](x, t.zeros(index, dtype=t.int64), s)
    except (IndexError, RuntimeError, TypeError) as error:
        said = str(error) if source is not None and call != "in place" else ""
        return type(error).__name__, said
    if x.requires_grad:
        out.sum().backward()
    return out.tolist(), x.grad if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("call", CALLS)
def test_ranks(call):
    for case in itertools.product(SHAPES, INDICES, SOURCES):
        if case[-1] is None and call == "scatter_add":
            continue
        found, expected = (outcome(t, call, *case) for t in (tracejit, torch))
        assert found == expected, case


def test_an_index_that_becomes_empty_in_captured_calls():
    add = tracejit.script(lambda x, i, s: x.scatter_add(0, i, s))
    for count in (2, 0, 3):
        found = add(tracejit.zeros(3), tracejit.zeros(count, dtype=tracejit.int64),
                    tracejit.ones(3))
        assert found.tolist() == [float(count), 0, 0]
    found = add(tracejit.zeros(3, 2), tracejit.zeros(0, dtype=tracejit.int64), tracejit.ones(3))
    assert found.tolist() == [[0, 0]] * 3
