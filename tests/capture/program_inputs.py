"""Inputs of programs, the same in every library: sequences of several lengths, weights, modules."""

from __future__ import annotations

import tracejit as tj

LENGTHS = (8, 3, 1, 20)
TAKEN, OTHER = (1.0, 2.0, -1.5), (-1.0, -2.0, -3.0)  # of a branch on the sum
MANY = 20  # iterations, enough for a loop to be rolled
LOOPS = (MANY, 0, 1, 2, 33, MANY)  # iterations of loops: rolled ones, none, and unrolled ones


def data(length, width=3, seed=0):
    """A sequence; the same in every library."""
    whole = tj.arange(float(length * width)) * 12.9898 + (seed + length) * 0.7
    return whole.sin().view(length, width) * 1.3


def weights(width=3):
    """A leaf."""
    values = (tj.arange(float(width * width)) * 7.3 + 2).cos() * 0.5
    return values.view(width, width).requires_grad_()


def filled(module):
    """The module with parameters that are the same in every library."""
    with tj.no_grad():
        for p in module.parameters():
            p.copy_((tj.arange(float(p.numel())) * 12.9 + p.dim()).sin().view(p.shape) * 0.6)
    return module


def over_lengths(f, lengths=LENGTHS, *more):
    """Results and gradients for sequences of several lengths."""
    out = []
    for length in lengths:
        x = data(length).requires_grad_()
        y = f(x, *more)
        if y.requires_grad:
            y.sum().backward()
        out += [y, x.grad]
    return out


def tried(f, *args):
    """The result, or the exception."""
    try:
        return f(*args)
    except Exception as error:
        return error


def results(f, *more):
    """Results for loops of several lengths."""
    return [tried(f, data(length), *more) for length in LOOPS]


def results_and_gradients(f, *more):
    """Results, and gradients where there are any, for loops of several lengths."""
    out = []
    for length in LOOPS:
        x = data(length).requires_grad_()
        y = tried(f, x, *more)
        if isinstance(y, tj.Tensor) and y.requires_grad:
            y.sum().backward()
        out += [y, x.grad]
    return out


def results_and_states(f, make):
    """Results for loops of several lengths, and what each leaves in a state made for it."""
    out = []
    for length in LOOPS:
        state = make()
        out += [tried(f, data(length), state), state]
    return out


def shown(f, state=None, inputs=(OTHER, TAKEN, OTHER, TAKEN)):
    """What calls with these values give, leave in their argument, and leave elsewhere."""
    out = []
    for values in inputs:
        x = tj.tensor(values)
        out += [tried(f, x), x, None if state is None else state()]
    return out


def leaf(*values):
    return tj.tensor(values, requires_grad=True)


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def two():
    return tj.tensor([1.0, -2.0])


def many(*functions):
    """Each called often enough to be replayed by a snapshot."""
    return [f(two()) for f in functions for _ in range(3)]
