"""What runs together, in which order, and in whose memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tracejit
from tracejit.core.ops.types import float64, int64
from tracejit.jit.lowering.lower import lower
from tracejit.jit.passes.open_composites import open_composites
from tracejit.jit.runtime.executable import ProgramError

sys.path.insert(0, str(Path(__file__).parent))
from execution import check, execute, graph_of

RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.standard_normal(shape).astype("f4")


def loops(program):
    return [i for i in program.instructions if i.kernel is not None and not i.extern]


def run_both(graph, inputs, **how):
    check(graph, inputs, "python", **how)
    return check(graph, inputs, "compiled", **how)


# -- writes ----------------------------------------------------------------------------------------
def test_an_elementwise_update_is_in_place():
    graph, (x, y) = graph_of(("A", "B"), ("A", "B"))
    graph.writes = [(x, x * 0.5 + y)]
    program = run_both(graph, [normal(4, 9), normal(4, 9)])
    assert len(program.buffers) == 2 and len(program.instructions) == 1


def test_a_written_value_is_returned_too():
    graph, (x,) = graph_of(("A",))
    y = x + 1
    graph.outputs, graph.writes = [y, y * 2, x], [(x, y)]
    run_both(graph, [normal(12)])


def test_swapped_inputs():
    graph, (x, y) = graph_of(("A",), ("A",))
    graph.writes = [(x, y), (y, x)]
    run_both(graph, [normal(30), normal(30)])


def test_one_value_written_twice():
    graph, (x, y) = graph_of(("A",), ("A",))
    v = x * y
    graph.writes = [(x, v), (y, v)]
    run_both(graph, [normal(30), normal(30)])


def test_an_input_read_elsewhere_than_it_is_written():
    graph, (x,) = graph_of(("A", "A"))
    graph.writes = [(x, x + x.transpose(0, 1))]
    run_both(graph, [normal(20, 20)])


def test_a_row_reduction_written_over_its_input():
    graph, (x,) = graph_of(("A", "B"))
    e = (x - x.amax(dim=1, keepdim=True)).exp()
    graph.writes = [(x, e / e.sum(dim=1, keepdim=True))]
    run_both(graph, [normal(6, 50)])


def test_the_old_content_is_read_before_it_goes():
    graph, (x, w) = graph_of(("A", "A"), ("A", "A"))
    graph.outputs = [x @ w, x.sum()]
    graph.writes = [(x, x - w)]
    program = run_both(graph, [normal(9, 9), normal(9, 9)], rtol=1e-4, atol=1e-5)
    assert program.buffers[program.instructions[-1].operands[-1]].role == "input"


def test_a_written_product():
    graph, (x, w) = graph_of(("A", "A"), ("A", "A"))
    graph.writes = [(x, x @ w)]
    run_both(graph, [normal(9, 9), normal(9, 9)], rtol=1e-4, atol=1e-5)


def test_inputs_of_one_element():
    graph, (x, s) = graph_of(("A",), ((), float64))
    graph.outputs, graph.writes = [x * s.float()], [(s, s + 1)]
    run_both(graph, [normal(7), 3.0])


def test_nothing_visible_is_written_before_a_check_fails():
    graph, (x, t, y) = graph_of(("A",), (("B",), int64), ("A",))
    v = x + 1
    graph.writes = [(x, v), (y, x * 2)]
    graph.outputs = [y[t]]
    inputs = [normal(8), np.array([1, 99]), normal(8)]
    program = lower(open_composites(graph))
    assert "status" in program.instructions[0].kernel.source
    kept = [a.copy() for a in inputs]
    with pytest.raises(ProgramError):
        execute(program, inputs, "compiled")
    assert all(np.array_equal(a, b) for a, b in zip(inputs, kept))
    written = [program.buffers[i.operands[-1]].role for i in program.instructions]
    assert written[0] == "output" and set(written[1:]) == {"input"}


# -- fusion ----------------------------------------------------------------------------------------
def test_a_softmax_is_one_kernel():
    graph, (x,) = graph_of(("A", "C"))
    e = (x - x.amax(dim=1, keepdim=True)).exp()
    graph.outputs = [e / e.sum(dim=1, keepdim=True)]
    assert len(loops(lower(open_composites(graph)))) == 1


def test_forward_and_backward_of_layer_norm_rows_are_one_kernel():
    graph, (x, g) = graph_of(("A", "C"), ("A", "C"))
    d = x - x.mean(dim=1, keepdim=True)
    r = ((d * d).mean(dim=1, keepdim=True) + 1e-5).rsqrt()
    y = d * r
    graph.outputs = [
        y,
        (g - g.mean(dim=1, keepdim=True) - y * (g * y).mean(dim=1, keepdim=True)) * r,
    ]
    program = run_both(graph, [normal(8, 100), normal(8, 100)], rtol=1e-4, atol=1e-5)
    assert len(loops(program)) == 1


def update(p, g, m, v, lr):
    m2, v2 = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
    return (p, p - m2 / (v2.sqrt() + 1e-8) * lr.float()), (m, m2), (v, v2)


def test_updates_of_all_parameters_are_one_loop():
    shapes = [("A", "B"), ("B",), ("B", "C"), ("C",), ("C", "A", "B")]
    graph, values = graph_of(*[s for s in shapes for _ in range(4)], ((), float64))
    for k in range(len(shapes)):
        graph.writes += update(*values[4 * k : 4 * k + 4], values[-1])
    sizes = {"A": 5, "B": 700, "C": 60}
    inputs = [abs(normal(*(sizes[s] for s in shape))) for shape in shapes for _ in range(4)]
    program = run_both(graph, [*inputs, 0.1])
    assert len(program.instructions) == 1 and program.instructions[0].kernel.loops == 1
    assert all(b.role == "input" for b in program.buffers)


def test_dependent_groups_do_not_become_segments():
    graph, (x, y) = graph_of(("A",), ("B",))
    one = x * 2
    graph.outputs = [one, y * 2, (one.sum() * y).exp()]
    run_both(graph, [normal(40), normal(30)], rtol=1e-5)


def test_a_shared_expensive_value_is_computed_once():
    graph, (x, w) = graph_of(("A", "A"), ("A", "A"))
    y = (x.exp() + w).tanh()
    graph.outputs = [y @ w, y * 2, y.sum(dim=0)]
    sources = " ".join(i.kernel.source for i in loops(lower(open_composites(graph))))
    assert sources.count("tanh_float32(") == 1


def test_a_cheap_value_is_computed_again_rather_than_stored():
    graph, (x, w) = graph_of(("A", "B"), ("C", "B"))
    mask = (x > 0).float()
    graph.outputs = [mask * 3, (mask * 2).sum(dim=0)]
    program = lower(open_composites(graph))
    assert not [b for b in program.buffers if b.role == "temporary"]


def test_reshapes_returned_share_memory_and_do_no_work():
    graph, (x,) = graph_of(("A", "B"))
    y = x.exp()
    graph.outputs = [y.reshape(-1)]
    assert len(lower(open_composites(graph)).instructions) == 1


def test_equal_layers_share_a_kernel():
    graph, (x, w) = graph_of(("A", "B"), ("B", "B"))
    h = x
    for _ in range(4):
        h = (h @ w).tanh()
    graph.outputs = [h]
    program = lower(open_composites(graph))
    assert len(program.instructions) == 8 and len(program.kernels) == 2


def test_long_chains_are_cut():
    graph, (x,) = graph_of(("A",))
    y = x
    for k in range(1000):
        y = y * 0.99 + 0.01 * k
    graph.outputs = [y]
    program = run_both(graph, [normal(50)], rtol=1e-4)
    assert 5 < len(program.instructions) < 40


def test_bits_do_not_depend_on_the_number_of_threads():
    graph, (x,) = graph_of(("A", "C"))
    e = (x - x.amax(dim=1, keepdim=True)).exp()
    graph.outputs = [x.sum(), e / e.sum(dim=1, keepdim=True), x.sum(dim=0)]
    program, inputs = lower(open_composites(graph)), [normal(500, 333)]
    threads = tracejit.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            tracejit.set_num_threads(count)
            results.append(execute(program, inputs, "compiled")[0])
    finally:
        tracejit.set_num_threads(threads)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other))


def test_eager_numerics_are_bit_for_bit():
    graph, (x, w) = graph_of(("A", "B"), ("B",))
    y = (x * w + x / 3 - w).exp()
    graph.outputs = [y, y.sum(dim=0), y.mean(), (x * w + x).sqrt(), x @ x.transpose(0, 1)]
    program = check(
        graph, [normal(40, 50), normal(50)], "compiled", rtol=0, atol=0, numerics="eager"
    )
    assert any(i.host is not None and i.host.op.name == "exp" for i in program.instructions)
    assert all("FASTMATH = ()" in i.kernel.source for i in loops(program))


def test_bytes_are_counted():
    graph, (x, w) = graph_of(("A", "B"), ("B",))
    graph.outputs = [x * w]
    (instruction,) = lower(open_composites(graph)).instructions
    a, b = graph.inputs[0].shape
    assert str(instruction.bytes_read) == str(4 * a * b + 4 * b)
    assert str(instruction.bytes_written) == str(4 * a * b)
