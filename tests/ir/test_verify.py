"""The verifier refuses broken graphs, naming the pass, the node and the user's line."""

import pytest

from tracejit.core.memory.devices import CPU, device
from tracejit.core.ops import pointwise
from tracejit.core.ops.types import TensorType, float32, float64
from tracejit.jit.ir.graph import Graph, Location, Node, Value
from tracejit.jit.ir.parser import parse_graph
from tracejit.jit.ir.verify import GraphError, same_type, verify


def small():
    graph = Graph("step")
    n = graph.scope.symbol(4)
    graph.symbol_sources["s0"] = ("size", 0, 0)
    x = graph.input(TensorType(float32, (n, 3), CPU), "x")
    graph.location = Location("train.py", 7, "y = -(x * x)")
    graph.outputs = [-(x * x)]
    graph.writes = [(x, graph.outputs[0])]
    graph.number()
    return graph


def test_a_good_graph_passes_and_asks_nothing():
    graph = small()
    m = graph.scope.symbol(4)
    y = graph.input(TensorType(float32, (m, 3), CPU), "y")
    graph.outputs.append(graph.inputs[0] + y)  # learns s0 == s1
    known = (list(graph.scope.guards), dict(graph.scope.equal))
    verify(graph)
    assert (graph.scope.guards, graph.scope.equal) == known and known[0]


def test_inference_during_verification_records_no_guard():
    graph = small()
    m = graph.scope.symbol(4)
    y = graph.input(TensorType(float32, (m, 3), CPU), "y")
    graph.outputs.append(graph.inputs[0] + y)
    graph.scope.restore(([], {}))
    verify(graph)
    assert graph.scope.guards == [] and graph.scope.equal == {}


def test_the_message_names_pass_node_and_line():
    graph = small()
    graph.nodes.reverse()
    with pytest.raises(GraphError) as error:
        verify(graph, after="cse")
    assert "after pass 'cse'" in str(error.value)
    assert "%1: float32[s0, 3] = neg(%0)" in str(error.value)
    assert "train.py:7: y = -(x * x)" in str(error.value)
    assert "operand 0, %0, is not defined before this node" in str(error.value)


def broken(change, message):
    graph = small()
    verify(graph)
    change(graph)
    with pytest.raises(GraphError, match=message):
        verify(graph)


def of_another_graph(graph):
    graph.outputs = [small().outputs[0]]


def test_results_must_be_defined():
    broken(of_another_graph, "result %1 is not defined")


def test_operands_must_be_values_of_this_graph():
    def change(graph):
        graph.nodes[1].inputs = (small().nodes[0].outputs[0],)

    broken(change, "operand 0, %0, is not defined")


@pytest.mark.parametrize("operand", ["text", [1], object()], ids=["str", "list", "object"])
def test_operands_must_be_values_or_numbers(operand):
    def change(graph):
        graph.nodes[0].inputs = (graph.inputs[0], operand)

    broken(change, "operand 1 is a")


def test_attributes_hold_no_values():
    def change(graph):
        graph.nodes[0].attributes = {"a": (1, graph.inputs[0])}

    broken(change, "attribute 'a' holds a value")


@pytest.mark.parametrize("type", [
    TensorType(float64, (4, 3), CPU), TensorType(float32, (4, 3), CPU),
    TensorType(float32, (3,), CPU),
], ids=["dtype", "size", "rank"])  # fmt: skip
def test_recorded_types_must_be_inferred_ones(type):
    def change(graph):
        graph.nodes[1].outputs[0].type = type
        graph.writes = []

    broken(change, r"recorded as .*, inferred as float32\[s0, 3\]")


def test_the_device_is_part_of_the_type():
    on_gpu = TensorType(float32, (2,), device("cuda", 0))
    assert not same_type(TensorType(float32, (2,), CPU), on_gpu)
    assert same_type(TensorType(float32, (2,), CPU), TensorType(float32, (2,), None))


def test_failing_inference_is_reported():
    def change(graph):
        graph.nodes[0].attributes = {"nonsense": 1}

    broken(change, "inference fails")


def test_number_of_outputs():
    def change(graph):
        node = graph.nodes[1]
        node.outputs = (*node.outputs, Value(graph, node.outputs[0].type, node, 1))

    broken(change, "inference gives 1 outputs, the node has 2")


def test_outputs_point_back():
    def change(graph):
        graph.nodes[1].outputs[0].index = 1

    broken(change, "does not point back")


def test_names_are_unique():
    def change(graph):
        graph.nodes[1].outputs[0].name = "0"

    broken(change, "name %0 is given twice")


def test_a_node_stands_once():
    broken(lambda graph: graph.nodes.append(graph.nodes[0]), "%0 is defined twice")


def test_values_belong_to_the_graph():
    def change(graph):
        graph.inputs.append(small().inputs[0])

    broken(change, "belongs to another graph")


def test_only_inputs_are_written():
    def change(graph):
        graph.writes = [(graph.outputs[0], graph.outputs[0])]

    broken(change, "is written, but is not an input")


def test_an_input_is_written_once():
    broken(lambda graph: graph.writes.append(graph.writes[0]), "is written twice")


def test_written_types_agree():
    def change(graph):
        graph.writes = [(graph.inputs[0], pointwise.convert(graph.outputs[0], float64))]

    broken(change, r"of type float32\[s0, 3\] is written with")


def test_symbols_are_known():
    broken(lambda graph: (graph.scope.hints.clear(), graph.symbol_sources.clear()),
           "symbol 's0' has neither")


def test_regions_are_checked():
    inner = parse_graph("graph inner(in0: float32[2]):\n %0: float32[3] = neg(%in0) return %0")
    graph = small()
    graph.nodes[0].regions = (inner,)
    with pytest.raises(GraphError, match="in graph 'inner'"):
        verify(graph)


def test_nodes_without_a_location_are_named():
    graph = Graph("g")
    x = graph.input(TensorType(float32, (2,), CPU))
    graph.nodes.append(Node(pointwise.neg, (x, x), {}))
    with pytest.raises(GraphError, match=r"neg\(%\?, %\?\)"):
        verify(graph)
