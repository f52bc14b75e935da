"""What makes a captured function compile again is named, with both values; what does not, does not:
equal structures and changed tensors are no cause (C2)."""

from __future__ import annotations

import dataclasses

import pytest

import tracejit as tj
from tracejit import nn


@dataclasses.dataclass
class Options:
    """What a program may be told."""

    name: str = "a"
    scale: float = 1.0


class Box:
    """Something with attributes and an operator."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __add__(self, x):
        return x + 1


def of_argument(first, second):
    """The cause of a recompilation where the first of two arguments changes."""

    @tj.script
    def f(option, x):
        name = getattr(option, "name", option)
        if isinstance(name, (list, dict)):
            return x * len(name)
        return x * 2 if name in ("a", None, True) or name is x else x + 1

    f(first, tj.ones(2))
    f(second, tj.ones(2))
    (found,) = f.report().recompiles
    return str(found)


def of_state(function, change):
    """The cause where something changes between two calls."""
    f = tj.script(function)
    f(tj.ones(2))
    change()
    f(tj.ones(2))
    (found,) = f.report().recompiles
    return str(found)


def of_operator():
    class Adding(Box):
        """Its operator is replaced."""

    box = Adding()
    return of_state(lambda x: box + x, lambda: setattr(Adding, "__add__", lambda self, x: x * 9))


def of_training():
    net = nn.Dropout(0.5)
    return of_state(lambda x: net(x), net.eval)


def of_attribute():
    box = Box(mode="fast")
    return of_state(lambda x: x if box.mode == "fast" else -x, lambda: setattr(box, "mode", "safe"))


CAUSES = {
    "a string": (lambda: of_argument("a", "b"), ("option", "'a'", "'b'")),
    "none": (lambda: of_argument(None, "b"), ("option", "None", "'b'")),
    "a bool": (lambda: of_argument(True, False), ("option", "True", "False")),
    "another type": (lambda: of_argument("a", ["b"]), ("option", "'a'", "['b']")),
    "a list's length": (lambda: of_argument([1], [1, 2]), ("option", "list of 1", "[1, 2]")),
    "keys of a dict": (lambda: of_argument({"k": 1}, {"j": 1}), ("option", "'k'", "{'j': 1}")),
    "a field": (lambda: of_argument(Options("a"), Options("b")), ("option.name", "'a'", "'b'")),
    "an attribute": (of_attribute, ("box.mode", "'fast'", "'safe'")),
    "training": (of_training, ("net.training", "True", "False")),
    "an operator": (of_operator, ("class", "Adding", "methods")),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_is_named_with_both_values(cause):
    run, wanted = CAUSES[cause]
    message = run()
    assert all(text in message for text in wanted), message


@pytest.mark.parametrize(
    "make",
    [
        lambda: [1.5, "a", [2]],
        lambda: {"a": (1, 2), "b": None},
        lambda: Options("a", 2.0),
        lambda: Box(name="a", inner=Box(scale=[1, 2])),
    ],
    ids=["list", "dict", "dataclass", "object"],
)
def test_equal_structures_are_one(make):
    @tj.script
    def f(option, x):
        return x * 2 if option is not None else x

    for _ in range(3):
        f(make(), tj.ones(2))
    assert (f.report().compiles, f.report().cache_hits) == (1, 2), str(f.report())


def test_tensors_of_a_closure_are_read_at_each_call():
    w = tj.ones(2)
    f = tj.script(lambda x: x * w)
    found = [f(tj.ones(2)).tolist()]
    w.fill_(3)
    found.append(f(tj.ones(2)).tolist())
    w = tj.full((2,), 5.0)
    found.append(f(tj.ones(2)).tolist())
    assert found == [[1, 1], [3, 3], [5, 5]]
    assert f.report().compiles == 1


def test_windows_of_a_parameter_are_written_into_a_program_and_other_sizes_are_not():
    @tj.script
    def f(x, w):
        return nn.functional.conv2d(nn.functional.conv2d(x, w, padding=1), w)

    def compiles(channels, size, window):
        x = tj.rand(2, channels, size, size + 1)
        w = nn.Parameter(tj.rand(channels, channels, window, window))
        got, wanted = f(x, w), f.function(x, w)
        assert tj.allclose(got, wanted, atol=1e-4) and got.shape == wanted.shape
        return f.report().compiles

    assert [compiles(3, 8, 3), compiles(5, 11, 3), compiles(3, 8, 5)] == [1, 1, 2]
    assert "w.shape[2] == 3 -> 5 and 3" in str(f.report().recompiles[0])
    assert ", s0_2 - 2, s0_3 - 2]" in str(next(iter(f.graphs.values())))
