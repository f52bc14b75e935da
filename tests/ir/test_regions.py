"""Graphs with branches and loops: interpreted, checked, as text, extracted."""

import gc

import numpy as np
import pytest

import tracejit
from tests.runtime.region_graphs import Maker
from tracejit.core.ops.control import ErrorOf
from tracejit.core.ops.stacks import live_stacks
from tracejit.jit.ir.clone import copy_graph, inline
from tracejit.jit.ir.digest import digest
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import interpret, run_arrays
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import GraphError, verify

FOR = """
graph loop(in0: float32[s0, 3] "x", in1: float32[3] "v") where s0=4 in0.size[0]:
  %0: float32[3], %1: float32[s0, 3] =
      for_loop(%in1, %in0, %in1, trip_count=s0, carried=1, scanned=1, reverse=REVERSE) {
    graph body(in0: int64[], in1: float32[3], in2: float32[3], in3: float32[3]):
      %0: float32[3] = mul(%in1, 2.0)
      %1: float32[3] = add(%0, %in2)
      %2: float32[3] = mul(%in3, %in0)
      return %1, %2
  }
  return %0, %1
"""
WHILE = """
graph loop(in0: float32[2] "x", in1: bool[] "go", in2: float32[] "most"):
  %0: int64[], %1: float32[2], %2: int64[1] = while_loop(%in1, %in0, %in2, carried=1) {
    graph body(in0: float32[2], in1: float32[]):
      %0: float32[2] = mul(%in0, %in0)
      %1: float32[] = sum(%0, dims=(0,), keepdim=False)
      %2: bool[] = lt(%1, %in1)
      return %2, %0, %in0
  }
  %3: float32[2] = unwind_loop(%0, %2, %in0, carried=1) {
    graph body(in0: float32[2], in1: float32[2]):
      %0: float32[2] = mul(%in0, %in1)
      return %0
  }
  return %0, %1, %3
"""
COND = """
graph branch(in0: bool[] "p", in1: float32[2] "x"):
  %0: float32[2] = cond(%in0, %in1) {
    graph then(in0: float32[2]):
      %0: float32[2] = exp(%in0)
      return %0
    graph else(in0: float32[2]):
      return %in0
  }
  return %0
"""
RAISE = """
graph check(in0: bool[] "p", in1: float32[2] "x"):
  %0: bool[] = raise_if(%in0, error=error("ValueError", "no, \\"really\\"", 3, True))
  return %in1
"""


def number(x, dtype=np.float32):
    return np.asarray(x, dtype)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_for_loop(reverse, n):
    graph = parse_graph(FOR.replace("REVERSE", str(reverse)))
    verify(graph)
    x, v = np.arange(3 * n, dtype=np.float32).reshape(n, 3), np.ones(3, np.float32)
    state, rows = v, np.zeros((n, 3), np.float32)
    for i in reversed(range(n)) if reverse else range(n):
        state, rows[i] = 2 * state + x[i], v * i
    found = interpret(graph, [x, v]).outputs
    np.testing.assert_array_equal(found[0], state)
    np.testing.assert_array_equal(found[1], rows)


@pytest.mark.parametrize("going, most", [(False, 9), (True, 0), (True, 3000)])
def test_a_while_loop_and_its_way_back(going, most):
    graph = parse_graph(WHILE)
    verify(graph)
    x, states = number([1.5, 2]), []
    state, go = x, going
    while go:
        states.append(state)
        state = state * state
        go = state.sum() < most
    found = interpret(graph, [x, np.asarray(going), number(most)]).outputs
    assert found[0] == len(states)
    np.testing.assert_array_equal(found[1], state)
    np.testing.assert_array_equal(found[2], np.prod([x, *states], axis=0))
    assert live_stacks() == 0


def test_the_tape_sees_through_loops():
    graph = parse_graph(WHILE)
    x = tracejit.tensor([1.5, 2.0], requires_grad=True)
    count, last, product = interpret(
        graph, [x, tracejit.tensor(True), tracejit.tensor(3000.0)]).outputs
    assert int(count) == 4
    last.sum().backward(retain_graph=True)
    np.testing.assert_allclose(x.grad.numpy(), 16 * x.detach().numpy() ** 15)
    x.grad = None
    product.sum().backward()  # x * x * x^2 * x^4 * x^8
    np.testing.assert_allclose(x.grad.numpy(), 16 * x.detach().numpy() ** 15)


def test_detached_loops_are_not_on_the_tape():
    text = COND.replace("= cond(", "= detached cond(")
    x = tracejit.ones(2, requires_grad=True)
    (found,) = interpret(parse_graph(text), [tracejit.tensor(True), x]).outputs
    assert not found.requires_grad


@pytest.mark.parametrize("taken", [True, False])
def test_one_side_of_a_branch_runs(taken):
    graph = parse_graph(COND)
    verify(graph)
    ran = []

    def run(node, operands, attributes):
        ran.append(node.op.name)
        return run_arrays(node, operands, attributes)

    x = number([1, 2])
    (found,) = interpret(graph, [np.asarray(taken), x], run=run).outputs
    np.testing.assert_array_equal(found, np.exp(x) if taken else x)
    assert ran == (["cond", "exp"] if taken else ["cond"])


def test_a_stack_lives_as_long_as_a_result_that_holds_its_handle():
    text = WHILE.replace("return %0, %1, %3", "return %0, %1, %2")
    inputs = [number([1.5, 2]), np.asarray(True), number(3000)]
    found = interpret(parse_graph(text), inputs).outputs
    assert live_stacks() == 1
    unwind = parse_graph("""
    graph back(in0: int64[], in1: int64[1], in2: float32[2]):
      %0: float32[2] = unwind_loop(%in0, %in1, %in2, carried=1) {
        graph body(in0: float32[2], in1: float32[2]):
          %0: float32[2] = add(%in0, %in1)
          return %0
      }
      return %0
    """)
    for _ in range(2):  # reading takes nothing off
        (total,) = interpret(unwind, [found[0], found[2], inputs[0]]).outputs
        np.testing.assert_array_equal(total, [x + sum(x ** 2**k for k in range(4))
                                              for x in inputs[0]])
    handle = found[2].copy()
    del found
    gc.collect()
    assert live_stacks() == 0
    with pytest.raises(GraphError, match="after it was freed"):
        interpret(unwind, [number(1, np.int64), handle, inputs[0]])


def test_a_stack_is_freed_when_a_run_fails():
    text = WHILE.replace("  return %0, %1, %3", """
  %4: bool[] = raise_if(%in1, error=error("ValueError"))
  return %2""")
    with pytest.raises(GraphError):
        interpret(parse_graph(text), [number([1, 1]), np.asarray(True), number(1)])
    assert live_stacks() == 0


def test_an_exception_of_the_user():
    graph = parse_graph(RAISE)
    verify(graph)
    x = number([1, 2])
    assert interpret(graph, [np.asarray(False), x]).outputs[0] is x
    with pytest.raises(GraphError) as raised:
        interpret(graph, [np.asarray(True), x])
    assert type(raised.value.__cause__) is ValueError
    assert raised.value.__cause__.args == ('no, "really"', 3, True)
    with pytest.raises(GraphError) as raised:
        interpret(graph, [tracejit.tensor(True), tracejit.ones(2)])
    assert type(raised.value.__cause__) is ValueError


class OwnError(Exception):
    pass


def test_classes_of_exceptions_as_text():
    graph = parse_graph(RAISE)
    graph.nodes[0].attributes["error"] = ErrorOf.of(OwnError(2.5))
    assert "region" in OwnError.__module__ and ":OwnError" in str(graph)
    assert parse_graph(str(graph)).nodes[0].attributes["error"] == ErrorOf(OwnError, (2.5,))
    for name in ("nowhere.at_all:Error", "Nothing", "print"):
        with pytest.raises(GraphError, match="no exception"):
            parse_graph(RAISE.replace("ValueError", name))
    with pytest.raises(TypeError, match="ndarray"):
        ErrorOf.of(ValueError(np.ones(1)))


@pytest.mark.parametrize("seed", range(30))
def test_text_and_digest_of_random_graphs(seed):
    graph = Maker(seed, failing=seed % 2 == 0).graph
    verify(graph)
    again = parse_graph(str(graph))
    verify(again)
    assert str(again) == str(graph)
    assert digest(again) == digest(graph) == digest(copy_graph(graph)[0])


def test_digests_tell_regions_apart():
    texts = [COND, COND.replace("exp", "exp2"), WHILE, WHILE.replace("%1, %3", "%3, %1"),
             RAISE, RAISE.replace("3, True", "3, 1"), RAISE.replace("ValueError", "TypeError"),
             FOR.replace("REVERSE", "True"), FOR.replace("REVERSE", "False")]  # fmt: skip
    assert len({digest(parse_graph(text)) for text in texts}) == len(texts)


WRONG = [
    (COND.replace("return %in0", "%0: float64[2] = convert(%in0, dtype=float64)\n return %0"),
     "outputs of the else region: number 0 is float64"),
    (COND.replace("cond(%in0, %in1)", "cond(%in1, %in1)"), "the predicate is float32"),
    (COND.replace("cond(%in0, %in1)", "cond(%in0, %in0)"), "inputs of the then"),
    (FOR.replace("REVERSE", "True").replace("trip_count=s0", "trip_count=4"),
     "expected a leading size of 4"),
    (FOR.replace("REVERSE", "True").replace("%1, %2\n", "%in0, %2\n"),
     "what the body carries"),
    (WHILE.replace("return %2, %0, %in0", "return %in0, %0, %in0"), "decision"),
    (WHILE.replace("unwind_loop(%0, %2", "unwind_loop(%0, %0"), "count and stack"),
]


@pytest.mark.parametrize("text, message", WRONG)
def test_wrong_regions_are_found(text, message):
    with pytest.raises(GraphError, match=message):
        verify(parse_graph(text))


def test_nodes_are_appended_with_regions():
    graph = Graph("built")
    template = parse_graph(COND)
    p, x = (graph.input(v.type) for v in template.inputs)
    record = template.nodes[0].op
    regions = [copy_graph(region)[0] for region in template.nodes[0].regions]
    for region in regions:
        region.scope = graph.scope
    (y,) = graph.append(record, (p, x), {}, regions)
    graph.outputs = [y]
    verify(graph)
    np.testing.assert_array_equal(
        interpret(graph, [np.asarray(True), number([0, 0])]).outputs[0], [1, 1])
    with pytest.raises(TypeError):
        graph.append(record, (p, x), {}, regions[:1] + [Graph("empty")])


def test_a_region_is_inlined():
    graph = parse_graph(COND)
    node = graph.nodes[0]
    with graph.inserting("test", like=node) as made:
        (y,) = inline(node.regions[0], graph, [graph.inputs[1]])
    assert [n.op.name for n in made] == ["exp"] and y.graph is graph
    graph.nodes, graph.outputs = made, [y]
    verify(graph)


def test_what_may_fail_in_a_region_is_extracted():
    text = """
    graph check(in0: bool[] "p", in1: float32[2] "x", in2: float32[s0] "y") where s0=3 in2.size[0]:
       = cond(%in0, %in0) {
        graph then(in0: bool[]):
          %0: bool[] = raise_if(%in0, error=error("ValueError"))
          return
        graph else(in0: bool[]):
          return
      }
      %0: float32[2] = exp(%in1)
      return %0
    """
    graph = parse_graph(text)
    assert graph.nodes[0].may_fail and not graph.nodes[1].may_fail
    part = extract(graph, "part", graph.inputs, graph.outputs)
    assert [n.op.name for n in part.nodes] == ["cond", "exp"]
    assert [n.op.name for n in extract(graph, "part", graph.inputs[1:], []).nodes] == []
    assert str(parse_graph(str(part))) == str(part)
