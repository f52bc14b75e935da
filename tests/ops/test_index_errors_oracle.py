"""What `index_add`, `index_copy`, `index_fill`, `roll` and `x[index]` refuse, and what they give of
tensors without dimensions or elements, is what PyTorch refuses and gives."""

import itertools
import re

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

INPUTS = {
    "number": lambda t: t.tensor(1.0),
    "vector": lambda t: t.arange(3.0),
    "matrix": lambda t: t.arange(6.0).reshape(3, 2),
}
INDICES = {
    "one": lambda t: t.tensor([0]),
    "number": lambda t: t.tensor(0),
    "two": lambda t: t.tensor([0, 0]),
    "second": lambda t: t.tensor([1]),
    "last": lambda t: t.tensor([-1]),
    "outside": lambda t: t.tensor([3]),
    "none": lambda t: t.tensor([], dtype=t.int64),
    "matrix": lambda t: t.tensor([[0]]),
    "floats": lambda t: t.tensor([0.0]),
    "int32": lambda t: t.tensor([0], dtype=t.int32),
}
SOURCES = {
    "number": lambda t: t.tensor(5.0),
    "one": lambda t: t.ones(1) * 5,
    "two": lambda t: t.ones(2) * 5,
    "row": lambda t: t.ones(1, 2) * 5,
    "long row": lambda t: t.ones(1, 3) * 5,
    "cell": lambda t: t.ones(1, 1) * 5,
    "integers": lambda t: t.ones(1, dtype=t.int64),
}
VALUES = {
    "float": lambda t: 2.0,
    "complex": lambda t: 1j,
    "number": lambda t: t.tensor(2.0),
    "vector": lambda t: t.ones(1),
    "bool": lambda t: t.tensor(True),
}


def outcome(run, t):
    try:
        return run(t).tolist()
    except (IndexError, RuntimeError) as error:
        # of either type in PyTorch
        outside = re.search("index .*out of (range in self|bounds)", str(error))
        return "outside" if outside else type(error).__name__


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", ["index_add", "index_copy", "index_add_", "index_copy_"])
def test_sources(name, given):
    for dim, index, source in itertools.product((0, -1, 1), INDICES, SOURCES):
        def run(t, dim=dim, index=index, source=source):
            return getattr(INPUTS[given](t), name)(dim, INDICES[index](t), SOURCES[source](t))

        assert outcome(run, tracejit) == outcome(run, torch), (dim, index, source)


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("name", ["index_fill", "index_fill_"])
def test_values(name, given):
    for dim, index, value in itertools.product((0, -1, 1), INDICES, VALUES):
        def run(t, dim=dim, index=index, value=value):
            return getattr(INPUTS[given](t), name)(dim, INDICES[index](t), VALUES[value](t))

        assert outcome(run, tracejit) == outcome(run, torch), (dim, index, value)


def test_messages():
    for run in (
        lambda t: t.tensor(1.0).index_add(0, t.tensor([0]), t.ones(1)),
        lambda t: t.ones(3).index_add(0, t.tensor([[0]]), t.ones(1)),
        lambda t: t.ones(3).index_copy(0, t.tensor([0, 1]), t.tensor(1.0)),
        lambda t: t.ones(3, 2).index_copy(0, t.tensor([0]), t.ones(1)),
        lambda t: t.ones(3, 2).index_copy(0, t.tensor([0]), t.ones(1, 3)),
        lambda t: t.ones(3, 2).index_fill(0, t.tensor([0]), t.ones(1)),
        lambda t: t.ones(3, 2).index_fill(0, t.tensor([9]), 1),
    ):
        found = []
        for t in (torch, tracejit):
            with pytest.raises((IndexError, RuntimeError)) as error:
                run(t)
            found.append(str(error.value))
        assert found[0] == found[1]


def test_negative_positions_are_filled_in_captured_calls():
    fill = tracejit.script(lambda x, i: x.index_fill(0, i, 7.0))
    for places in ([-1], [0, -2], [2], [-3]):
        found = fill(tracejit.zeros(3), tracejit.tensor(places))
        assert found.tolist() == torch.zeros(3).index_fill(0, torch.tensor(places), 7).tolist()


EMPTY = [(0,), (2, 0), (0, 2)]


def test_rolling_what_is_empty():
    ways = [(1, 5), (1, -3), (1, 0), ((1, 1), (0, 7)), ((1, 1), 0), (1, ()), ((), ()), (0, 7)]
    for shape, (shifts, dims) in itertools.product([*EMPTY, (2, 2)], ways):
        def run(t, shape=shape, shifts=shifts, dims=dims):
            return t.roll(t.ones(shape), shifts, dims)

        assert outcome(run, tracejit) == outcome(run, torch), (shape, shifts, dims)


READ = {
    "row outside": lambda x, t: x[:, :0][t.tensor([5])],
    "far before": lambda x, t: x[:, :0][t.tensor([-9])],
    "matrix of rows": lambda x, t: x[:, :0][t.tensor([[9]])],
    "column of no rows": lambda x, t: x[:0][:, t.tensor([5])],
    "slice and list": lambda x, t: x[:0, t.tensor([9])],
    "of no columns": lambda x, t: x[:, :0][:, t.tensor([0])],
    "both": lambda x, t: x[:, :0][t.tensor([0]), t.tensor([0])],
    "row of none": lambda x, t: x[:0][t.tensor([0])],
    "outside": lambda x, t: x[t.tensor([5])],
    "int": lambda x, t: x[:, :0][9],
    "number": lambda x, t: x[:, :0][t.tensor(9)],
}


@pytest.mark.parametrize("case", READ)
def test_positions_of_which_nothing_is_read(case):
    assert outcome(lambda t: READ[case](t.zeros(3, 4), t), tracejit) == outcome(
        lambda t: READ[case](t.zeros(3, 4), t), torch)


def test_positions_of_which_nothing_is_written():
    for part in (lambda x: x[:, :0], lambda x: x):
        def run(t, part=part):
            x = t.zeros(3, 4)
            part(x)[t.tensor([5])] = 1.0
            part(x).index_put_((t.tensor([5]),), t.tensor(1.0), accumulate=True)
            return x

        assert outcome(run, tracejit) == outcome(run, torch)
