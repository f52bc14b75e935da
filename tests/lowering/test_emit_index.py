"""Index expressions come out simple, and loops over them are vectorised."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tracejit.core.ops.types import float64
from tracejit.jit.ir.sizes import ShapeEnv
from tracejit.jit.lowering.index import (
    Condition,
    Variable,
    as_index,
    contiguous_strides,
    linear,
    unravelled,
)
from tracejit.jit.lowering.lower import lower
from tracejit.jit.lowering.native import optimized_ir

sys.path.insert(0, str(Path(__file__).parent))
from execution import graph_of


@pytest.fixture
def sizes():
    scope = ShapeEnv()
    yield [scope.symbol(hint, name) for name, hint in zip("abc", (4, 5, 6))]
    assert not scope.guards, "index arithmetic asked about a size"


def test_a_flat_index_survives_any_reshape(sizes):
    a, b, c = sizes
    flat = Variable("f", a * b * c)
    for shape in ((a, b, c), (a * b, c), (a, b * c), (a * b * c,)):
        assert linear(unravelled(flat, shape), contiguous_strides(shape)).key == as_index(flat).key


def test_division_finds_what_divides(sizes):
    a, b, c = sizes
    x, y, z = Variable("x", a), Variable("y", b), Variable("z", c)
    whole = (as_index(x) * b + y) * c + z
    assert [i.key for i in unravelled(whole, (a, b, c))] == [as_index(v).key for v in (x, y, z)]
    assert (whole // (b * c)).key == as_index(x).key
    assert (whole % c).key == as_index(z).key
    assert ((whole // c) % b).key == as_index(y).key
    assert ((as_index(x) * 6 + 7) // 3).key == (as_index(x) * 2 + 2).key


def test_conditions_are_decided_where_bounds_tell(sizes):
    a, b, _ = sizes
    x = as_index(Variable("x", a))
    assert (x < a) is True and (x >= 0) is True and (x < 0) is False
    assert (x + b < b) is False and (x - a >= 0) is False
    assert isinstance(x < 3, Condition) and isinstance(x == 1, Condition)
    assert ((x < a) & (x < 3)).key == (x < 3).key


def update(p, g, m, lr):
    m2 = m * 0.9 + g * 0.1
    return [(m, m2), (p, p - m2 * lr.float())]


def segments():
    graph, values = graph_of(*["AB", "AB", "AB", "B", "B", "B"], ((), float64))
    graph.writes = update(*values[:3], values[-1]) + update(*values[3:6], values[-1])
    return graph


def one(function, *shapes):
    graph, values = graph_of(*shapes)
    graph.outputs = [function(*values)]
    return graph


LOOPS = {
    "elementwise": lambda: one(lambda x: (x * 0.5).tanh() * x, ("A",)),
    "row vector": lambda: one(lambda x, w: (x * w).exp(), ("A", "B"), ("B",)),
    "sum of rows": lambda: one(lambda x: (x * x).sum(dim=1), ("A", "B")),
    "largest of rows": lambda: one(lambda x: x.amax(dim=1), ("A", "B")),
    "sum of columns": lambda: one(lambda x: x.sum(dim=0), ("A", "B")),
    "sum of all": lambda: one(lambda x: x.flatten().exp().sum(), ("N", "C")),
    "select": lambda: one(lambda x: x * (x > 0).float(), ("A",)),
    "segments": segments,
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_vectorised(name):
    program = lower(LOOPS[name]())
    text = optimized_ir([i.kernel for i in program.instructions[:1]])
    arithmetic = re.findall(r"(?:fmul|fadd|fsub)[a-z ]* <(\d+) x float>", text)
    extrema = re.findall(r"llvm\.maximum\.v(\d+)f32", text)
    assert any(int(width) >= 4 for width in arithmetic + extrema), text
