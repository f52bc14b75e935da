"""Writes to the pieces that `split`, `chunk`, `unbind` and iteration give, as in PyTorch."""

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


def grid(library, tracked=True):
    return library.arange(12.0, requires_grad=tracked).reshape(3, 4) * 1


def under_no_grad(library):
    with library.no_grad():
        return grid(library).chunk(3)[1]


PIECES = {
    "chunk": lambda t: grid(t).chunk(3)[1],
    "split": lambda t: grid(t).split(1)[2],
    "sections": lambda t: grid(t).split([1, 2])[1],
    "split_with_sizes": lambda t: grid(t).split_with_sizes([1, 2])[1],
    "unbind": lambda t: grid(t).unbind()[1],
    "iteration": lambda t: list(grid(t))[1],
    "a part of a piece": lambda t: grid(t).chunk(3)[1][0],
    "a piece of a leaf": lambda t: t.ones(4, requires_grad=True).chunk(2)[0],
    "no history": lambda t: grid(t, False).unbind()[1],
    "a copy": lambda t: grid(t).unbind()[1].clone(),
    "detached": lambda t: grid(t).unbind()[1].detach(),
    "made under no_grad": under_no_grad,
    "tensor_split": lambda t: grid(t).tensor_split(3)[1],
    "vsplit": lambda t: grid(t).vsplit(3)[1],
    "unsafe_chunk": lambda t: grid(t).unsafe_chunk(3)[1],
    "unsafe_split": lambda t: grid(t).unsafe_split(1)[1],
    "unsafe_split_with_sizes": lambda t: grid(t).unsafe_split_with_sizes([1, 2])[1],
}
WRITES = {
    "mul_": lambda t, x: x.mul_(2),
    "zero_": lambda t, x: x.zero_(),
    "setitem": lambda t, x: x.__setitem__(0, 5.0),
    "by what has a history": lambda t, x: x.mul_(t.ones(4, requires_grad=True)[: x.shape[-1]]),
}


def outcome(library, run):
    try:
        return run(library).tolist()
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("made", PIECES)
def test_written(made, how):
    def run(library):
        piece = PIECES[made](library)
        WRITES[how](library, piece)
        return piece

    mine, theirs = outcome(tracejit, run), outcome(torch, run)
    if made == "a part of a piece":  # PyTorch's name of the node is the last one's
        assert mine.startswith("Output 0 of Select is a view and is being modified inplace.")
    assert mine == theirs


def test_a_captured_call_refuses_them_too():
    def scale(x):
        first, second = (x * 1).chunk(2)
        first.mul_(2)
        return first + second

    compiled = tracejit.script(scale)
    x = tracejit.ones(4, requires_grad=True)
    for function in (scale, compiled, compiled):
        with pytest.raises(RuntimeError, match="^Output 0 of Split is a view and is being"):
            function(x)
    with tracejit.no_grad():
        assert compiled(x).tolist() == compiled(x).tolist() == [3.0, 3.0]


def test_pieces_that_a_captured_call_returns_are_refused():
    halves = tracejit.script(lambda x: (x * 1).chunk(2))
    x = tracejit.ones(4, requires_grad=True)
    for _ in range(3):
        first, second = halves(x)
        with pytest.raises(RuntimeError, match="^Output 1 of Split is a view and is being"):
            second.mul_(2)
        with tracejit.no_grad():
            first.mul_(2)
        assert first.tolist() == [2.0, 2.0]
