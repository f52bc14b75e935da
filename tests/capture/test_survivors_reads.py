"""Where a call leaves numbers it read from tensors: written for planted faults."""

from __future__ import annotations

import collections
import functools

import pytest

import tracejit as tj

Pair = collections.namedtuple("Pair", "loss, count")


class Box:
    """An object made in the call, that no list of sources has."""

    def __init__(self, content):
        self.content = content

    def __eq__(self, other):
        return vars(self) == vars(other)

    __hash__ = None


KEPT = {
    "an object": lambda n: Box(n),
    "a tuple in an object": lambda n: Box((n, 1)),
    "a tuple in a tuple in an object": lambda n: Box((Pair(n, 2), 1)),
    "a tuple in an object in a tuple": lambda n: (1, Box((n, 3))),
    "a set of tuples in an object": lambda n: Box({(n, 4)}),
    "a deque in an object": lambda n: Box(collections.deque([n, (n, 5)])),
    "a tuple": lambda n: (n, 1),
    "a named tuple": lambda n: Pair(n, 1),
    "a tuple in a tuple": lambda n: ((n, 2), n),
    "a tuple in a list": lambda n: [(n, 3)],
    "a tuple in a dict": lambda n: {"k": (n, 4)},
}


def types(value):
    """The types in a structure, as they are: not what `isinstance` is told."""
    if isinstance(value, dict):
        return {k: types(v) for k, v in value.items()}
    if isinstance(value, (tuple, list, set, collections.deque)):
        return (type(value), [types(v) for v in value])
    if type(value) is Box:
        return types(vars(value))
    return type(value)


class Holder:
    """An object that keeps what a call gives it."""


@pytest.mark.parametrize("kind", KEPT)
def test_tuples_hold_plain_numbers_after_every_call(kind):
    make, holder = KEPT[kind], Holder()

    @tj.script(mode="graph")
    def step(x):
        holder.kept = make(x.sum().item())
        return x * 2

    for k in range(3):
        step(tj.ones(3) + k)
        expected = make(3.0 + 3 * k)
        assert types(holder.kept) == types(expected) and holder.kept == expected


def test_partials_hold_plain_numbers_after_every_call():
    """No list of sources has what is in their arguments."""
    made = []

    @tj.script(mode="graph")
    def step(x):
        n = x.sum().item()
        made.append(functools.partial(max, n, (n, 1), Box(x.max().item()), key=x.shape[0]))
        return x * 2

    for k in range(3):
        step(tj.ones(3) + k)
        expected = (3.0 + 3 * k, (3.0 + 3 * k, 1), Box(1.0 + k))
        assert types(made[k].args) == types(expected) and made[k].args == expected
        assert types(made[k].keywords) == {"key": int} and made[k].keywords == {"key": 3}
