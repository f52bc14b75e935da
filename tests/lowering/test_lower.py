"""Graphs through lowering, run as plain Python and compiled, against the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tracejit
from tracejit import where
from tracejit.core.ops.types import bfloat16, bool_, float16, float32, float64, int32, int64, uint8
from tracejit.jit.runtime.executable import ProgramError

sys.path.insert(0, str(Path(__file__).parent))
from execution import check, execute, graph_of

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.standard_normal(shape).astype("f4")


def softmax(x):
    e = (x - x.amax(dim=-1, keepdim=True)).exp()
    return e / e.sum(dim=-1, keepdim=True)


def layer_norm(x, w, b):
    d = x - x.mean(dim=-1, keepdim=True)
    return d * ((d * d).mean(dim=-1, keepdim=True) + 1e-5).rsqrt() * w + b


PROGRAMS = {
    "gelu": ([("A", "B")], lambda x: 0.5 * x * (1 + (x + 0.04 * x * x * x).tanh())),
    "row vector": ([("A", "B"), ("B",)], lambda x, w: x * w + 1),
    "column vector": ([("A", "B"), ("A", 1)], lambda x, w: (x * w).exp()),
    "outer": ([("A", 1), (1, "B")], lambda x, y: x * y),
    "scalar operand": ([("A", "B"), ()], lambda x, s: x * (s.exp() + 1)),
    "softmax": ([("A", "B", "C")], softmax),
    "layer_norm": ([("A", "B", "C"), ("C",), ("C",)], layer_norm),
    "sum all": ([("A", "N")], lambda x: (x * x).sum()),
    "mean of rows": ([("A", "N")], lambda x: x.mean(dim=1)),
    "sum of columns": ([("N", "C")], lambda x: [x.sum(dim=0), (x * 2).amax(dim=0)]),
    "sum of the middle": ([("A", "B", "C")], lambda x: x.sum(dim=1)),
    "sum of both ends": ([("A", "B", "C")], lambda x: (x * x).sum(dim=(0, 2))),
    "kept dims": ([("A", "B", "C")], lambda x: x.sum(dim=(0, 1), keepdim=True)),
    "prod min": ([("A", "B")], lambda x: [x.prod(dim=1), x.amin(dim=0), x.amin()]),
    "argmax": ([("A", "B")], lambda x: [x.argmax(dim=1), x.argmax(), x.argmin(dim=0)]),
    "any all": ([("A", "B")], lambda x: [(x > 1).any(dim=1), (x > -3).all(dim=0), (x > 2).any()]),
    "permuted": ([("A", "B", "C")], lambda x: x.permute(2, 0, 1) * 2),
    "permuted and flattened": ([("A", "B", "C")], lambda x: x.permute(1, 0, 2).flatten(1).exp()),
    "two orders": ([("A", "B")], lambda x: x + x.transpose(0, 1).reshape(x.shape)),
    "slices": ([("A", "N")], lambda x: x[:, 2:50:3] * x[:, 3:51:3]),
    "cat": ([("A", "B"), ("A", "C")], lambda x, y: tracejit.cat([x * 2, y, x], 1).exp()),
    "cat of softmax": ([("A", "B"), ("C", "B")], lambda x, y: tracejit.cat([softmax(x), y])),
    "stack": ([("A",), ("A",)], lambda x, y: tracejit.stack([x, y + 1], 1)),
    "pad": ([("A", "B")], lambda x: tracejit.nn.functional.pad(x * 2, (1, 2))),
    "flip": ([("A", "B")], lambda x: softmax(x).flip(0)),
    "expand": ([("A", 1)], lambda x: x.exp().expand(-1, 4) + 0),
    "arange": ([("A", "B")], lambda x: where(x > 0, x, 1) * tracejit.eye(3)[1, 2]),
    "two outputs": ([("A", "B")], lambda x: [x.exp(), x.exp().sum(dim=1), x + 1]),
    "same output twice": ([("A",)], lambda x: (lambda y: [y, y, x])(x + 1)),
    "reshaped output": ([("A", "B")], lambda x: (lambda y: [y, y.reshape(-1)])(x + 1)),
    "cumulated rows": ([("A", "B")], lambda x: (x - x.sum(dim=1, keepdim=True)).amax(dim=1)),
    "nested reductions": ([("A", "B", "C")], lambda x: softmax(x).sum(dim=1).amax(dim=0)),
    "norm": ([("A", "B"), ("C",)], lambda x, y: ((x * x).sum() + (y * y).sum()).sqrt() * x),
    "product": ([("A", "B"), ("C", "B")], lambda x, w: (x @ w.transpose(0, 1)).tanh()),
    "product of views": ([("A", "B", "C")], lambda x: x.permute(1, 2, 0) @ x.permute(1, 0, 2)),
    "product of a vector": ([("A", "B"), ("B",)], lambda x, v: x @ v),
    "both gradients": ([("A", "B"), ("B", "C")],
                       lambda x, w: (lambda y: [y.transpose(0, 1) @ x, y @ w.transpose(0, 1),
                                                y.sum(dim=0)])((x @ w).exp())),
}  # fmt: skip


def graph_for(name):
    shapes, function = PROGRAMS[name]
    graph, values = graph_of(*shapes)
    result = function(*values)
    graph.outputs = list(result) if isinstance(result, list) else [result]
    return graph


def arrays_for(graph, sizes):
    return [
        normal(*(s if type(s) is int else sizes[str(s)] for s in v.shape)) for v in graph.inputs
    ]


SIZES = [
    {"A": 5, "B": 7, "C": 19, "N": 300},
    {"A": 1, "B": 1, "C": 1, "N": 60},
    {"A": 3, "B": 64, "C": 40, "N": 5000},
]


@pytest.mark.parametrize("mode", ["python", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, mode):
    graph = graph_for(name)
    for sizes in SIZES[: 2 if mode == "python" else 3]:
        arrays = arrays_for(graph, sizes)
        if graph.scope.guards and not all(g.holds({**sizes}) for g in graph.scope.guards):
            continue
        check(graph, arrays, mode, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "name",
    [
        "gelu",
        "row vector",
        "softmax",
        "sum all",
        "cat",
        "permuted",
        "sum of the middle",
        "mean of rows",
    ],
)
def test_no_elements(name):
    graph = graph_for(name)
    empty = {"A": 0, "B": 4, "C": 3, "N": 0}
    with np.errstate(all="ignore"):
        check(graph, arrays_for(graph, empty), "compiled")


def test_sizes_known_to_be_zero():
    graph, (x, y) = graph_of(("A", 0, "B"), (3, 0))
    graph.outputs = [
        x.reshape(-1) + 1,
        x.sum(dim=1),
        y.sum(),
        y.transpose(0, 1) * 2,
        x.permute(2, 0, 1).exp(),
    ]
    for mode in ("python", "compiled"):
        check(graph, [np.zeros((4, 0, 5)), np.zeros((3, 0))], mode)


@pytest.mark.parametrize("dtype", [float64, float16, bfloat16], ids=lambda d: d.name)
def test_other_floats(dtype):
    graph, (x, y) = graph_of((("A", "B"), dtype), (("B",), dtype))
    graph.outputs = [(x * y + 1).exp(), x.sum(dim=1), x.sum(), x.amax(dim=0), x.float() * 2]
    tolerance = 1e-12 if dtype is float64 else 1e-2
    inputs = [normal(50, 70), normal(70)]
    for mode in ("python", "compiled"):
        check(graph, inputs, mode, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [uint8, int32, int64, bool_], ids=lambda d: d.name)
def test_integers(dtype):
    graph, (x, y) = graph_of((("A", "B"), dtype), (("B",), dtype))
    outputs = [x & y, x | y, x == y, x.float(), x.sum(dim=1), x.sum(), x.amax(dim=0)]
    if dtype is not bool_:
        outputs += [x * y + 100, x // 3, x % 3, -x if dtype is not uint8 else x, x.argmax(dim=1)]
    graph.outputs = outputs
    given = [RNG.integers(0, 2 if dtype is bool_ else 200, shape) for shape in ((9, 40), (40,))]
    for mode in ("python", "compiled"):
        check(graph, given, mode)


def test_casts():
    graph, (x, i, b) = graph_of(("A",), (("A",), int64), (("A",), bool_))
    graph.outputs = [
        x.long(),
        x.int(),
        x.half(),
        x.double(),
        i.float(),
        b.float(),
        b.long(),
        i.bool(),
        x.bool(),
        i.byte(),
        b & (x > 0),
    ]
    given = [normal(40) * 50, RNG.integers(-5, 300, 40), RNG.integers(0, 2, 40)]
    for mode in ("python", "compiled"):
        check(graph, given, mode)


def test_inputs_with_strides():
    graph, _ = graph_of(("A", "B"))
    a, b = graph.inputs[0].shape
    graph.inputs.clear()
    x = graph.input(
        graph_type(a, b),
        "x",
        contiguous=False,
        strides=[graph.scope.symbol(1, "p"), graph.scope.symbol(9, "q")],
    )
    graph.symbol_sources |= {"p": ("stride", 0, 0), "q": ("stride", 0, 1)}
    graph.outputs = [x * 2, x.sum(dim=0), x.sum(), x @ x.transpose(0, 1)]
    graph.writes = [(x, x + 1)]
    for array in (normal(7, 5).T, normal(9, 20)[::2, ::3]):
        for mode in ("python", "compiled"):
            check(graph, [array], mode, rtol=1e-5, atol=1e-5)


def graph_type(*shape):
    from tracejit.core.ops.types import TensorType

    return TensorType(float32, shape)


def test_gather_and_its_check():
    graph, (x, t) = graph_of(("A", "B"), (("A",), int64))
    graph.outputs = [softmax(x).log().gather(1, t.unsqueeze(1)).sum(), x[t]]
    x_, t_ = normal(6, 9), RNG.integers(0, 6, 6)
    for mode in ("python", "compiled"):
        program = check(graph, [x_, t_], mode, rtol=1e-5)
        with pytest.raises(ProgramError, match="out of bounds"):
            execute(program, [x_, np.where(t_ == t_[2], 11, t_)], mode)


@pytest.mark.parametrize("mode", ["python", "compiled"])
def test_scatters(mode):
    graph, (w, x, i, rows) = graph_of(("A", "B"), ("C", "B"), (("C", "B"), int64), (("C",), int64))
    one = (w * 2).scatter_add(0, i, x.exp())
    graph.outputs = [one + 1, w.scatter(0, i, x), w.index_add(0, rows, x), w.double()]
    graph.writes = [(w, w.index_add(0, rows, softmax(x)))]
    inputs = [normal(6, 9), normal(40, 9), RNG.integers(0, 6, (40, 9)), RNG.integers(0, 6, 40)]
    program = check(graph, inputs, mode, rtol=1e-5, atol=1e-5)
    assert not [i for i in program.instructions if i.host is not None]
    before = [a.copy() for a in inputs]
    inputs[3][5] = -7
    with pytest.raises(ProgramError, match="out of"):
        execute(program, inputs, mode)
    assert np.array_equal(inputs[0], before[0])


@pytest.mark.parametrize("mode", ["python", "compiled"])
def test_random_numbers_are_eagers_to_the_bit(mode):
    from tracejit.core.ops import random

    graph, (x, state) = graph_of(("A", "B"), ((2,), int64))
    shared = {"shape": x.shape, "device": None}
    records = [
        (random.uniform_record, {"dtype": float32}), (random.normal_record, {"dtype": float32}),
        (random.bernoulli_record, {"dtype": bool_, "p": 0.3}),
        (random.uniform_record, {"dtype": float16}),
        (random.randint_record, {"dtype": int64, "low": -3, "high": 9}),
    ]  # fmt: skip
    graph.outputs = [graph.append(record, (state,), {"offset": k, **shared, **own})
                     for k, (record, own) in enumerate(records)]  # fmt: skip
    check(graph, [normal(13, 17), np.array([5, 7])], mode, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["compiled", "python", "graph"])
def test_a_sum_of_one_term_is_added_to_zero(mode):
    """-0.0 becomes 0.0, as in the sum of any number of them."""
    x = tracejit.full((1,), -0.0)
    sums = [lambda x: x[0].sum(), lambda x: x[0].mean(), lambda x: x.sum(0), lambda x: x[0].sum(0)]
    for sum_of in sums:
        f = tracejit.script(sum_of, mode=mode)
        for _ in range(2):
            assert np.signbit(f(x).numpy()) == np.signbit(sum_of(x).numpy()) == 0


def test_sums_of_repeated_elements_do_not_depend_on_their_memory():
    """With exact numerics a program adds in eager's order, however it holds the elements."""

    def total(x):
        wide = x.unsqueeze(0).expand(3, -1, -1)
        x.t().pow_(2)
        return wide.sum((0, 2))

    f = tracejit.script(total, mode="graph", numerics="eager")
    for seed in range(5):
        a = tracejit.from_numpy(np.random.default_rng(seed).standard_normal((5, 17)))
        assert f(a.clone()).tolist() == total(a).tolist()
