"""The captured graph that `SummaryWriter.add_graph` logs: its boxes, edges, shapes; the model stays
as it is."""

import struct

import pytest

import tracejit as tj
from tracejit import nn

pytest.importorskip("tensorboardX")

from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.graph_pb2 import GraphDef

from tracejit.utils.tensorboard import SummaryWriter


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(n, n), nn.BatchNorm1d(n), nn.Dropout(0.5)

    def forward(self, x):
        y = self.drop(self.norm(self.linear(x)).relu())
        if y.sum() > 1:
            y = y * 2
        else:
            y = y - 1
        return x + y


class Net(nn.Module):
    def __init__(self, kind=Block):
        super().__init__()
        self.body = nn.Sequential(kind(4), kind(4))
        self.again = self.body[0]  # one module under two names
        self.head = nn.Linear(4, 10)

    def forward(self, x, scale=2.0):
        return self.head(self.again(self.body(x))) * scale, x.max(1)


def events(folder):
    """Of the files in a folder; each event is its length, a checksum, itself, a checksum."""
    for path in folder.rglob("events*"):
        data = path.read_bytes()
        while data:
            size, = struct.unpack("<Q", data[:8])
            yield Event.FromString(data[12:12 + size])
            data = data[16 + size:]


def logged(folder, model, *args, **kwargs):
    """The nodes of the graph that add_graph logs, by name."""
    with SummaryWriter(str(folder)) as writer:
        writer.add_graph(model, *args, **kwargs)
    found, = (GraphDef.FromString(e.graph_def) for e in events(folder) if e.graph_def)
    assert len({node.name for node in found.node}) == len(found.node)
    return {node.name: node for node in found.node}


def shapes(node):
    return [[d.size for d in shape.dim] for shape in node.attr["_output_shapes"].list.shape]


def test_ops_stand_in_the_boxes_of_their_modules(tmp_path):
    nodes = logged(tmp_path, Net(), tj.randn(3, 4))
    block = "Net/Sequential[body]/Block[1]"
    linear = nodes[f"{block}/Linear[linear]/linear"]
    assert linear.op == "linear" and shapes(linear) == [[3, 4]]
    assert [*linear.input] == ["Net/Sequential[body]/Block[0]/add",
                               f"{block}/Linear[linear]/weight", f"{block}/Linear[linear]/bias"]
    assert b"self.linear(x)" in linear.attr["line"].s and b".py:" in linear.attr["line"].s
    assert [*nodes[f"{block}/relu"].input] == [f"{block}/BatchNorm1d[norm]/batch_norm"]
    assert nodes["Net/Sequential[body]/Block[0]/Linear[linear]/linear_1"]  # under its first name
    assert nodes["input/x"].op == "IO Node" and shapes(nodes["input/x"]) == [[3, 4]]
    assert [*nodes["Net/mul"].input] == ["Net/Linear[head]/linear", "Net/convert"]
    assert [*nodes["Net/convert"].input] == ["input/scale"]


def test_edges_lead_to_nodes_and_their_results(tmp_path):
    nodes = logged(tmp_path, Net(), tj.randn(3, 4))
    results = {}
    for node in nodes.values():
        for edge in node.input:
            name, _, k = edge.partition(":")
            results.setdefault(name, set()).add(int(k or 0))
    assert all(max(ks) < len(shapes(nodes[name])) for name, ks in results.items())
    top = next(name for name in nodes if name.startswith("Net/max"))
    assert [[*nodes[f"output/{k}"].input] for k in range(3)] == [["Net/mul"], [top], [f"{top}:1"]]
    assert nodes["output/2"].attr["dtype"].s == b"int64"


def test_sides_of_branches_have_boxes_of_their_own(tmp_path):
    nodes = logged(tmp_path, Net(), tj.randn(3, 4))
    box = "Net/Sequential[body]/Block[1]/cond"
    assert nodes[f"{box}_then/mul"].attr["numbers"].s == b"2.0"
    assert nodes[f"{box}_else/sub"].attr["numbers"].s == b"1.0"
    assert [*nodes[f"{box}_else/input"].input] == [box]


def test_what_the_model_writes_is_shown_and_not_written(tmp_path):
    model = Net()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    x = tj.randn(3, 4, requires_grad=True)
    drawn = tj.get_rng_state()
    nodes = logged(tmp_path, model, x)
    norm = "Net/Sequential[body]/Block[1]/BatchNorm1d[norm]"
    assert [*nodes[f"{norm}/num_batches_tracked_written"].input] == [f"{norm}/add"]
    assert all(tj.equal(x, before[name]) for name, x in model.state_dict().items())
    assert tj.equal(tj.get_rng_state(), drawn) and x.grad is None
    assert type(model).forward is Net.forward and not hasattr(model.forward, "report")


def test_several_arguments(tmp_path, capsys):
    nodes = logged(tmp_path, Net(), (tj.randn(2, 4), tj.ones(2, 10)), verbose=True)
    assert shapes(nodes["input/scale"]) == [[2, 10]]
    assert "graph forward(" in capsys.readouterr().out


def test_containers_and_functions_are_models_too(tmp_path):
    nodes = logged(tmp_path, nn.Sequential(nn.Linear(2, 3), nn.Tanh()), tj.ones(1, 2))
    assert [*nodes["Sequential/Tanh[1]/tanh"].input] == ["Sequential/Linear[0]/linear"]


def test_a_compiled_model_is_drawn(tmp_path):
    model = tj.compile(Net())
    model(tj.randn(3, 4))
    assert "Net/Linear[head]/linear" in logged(tmp_path, model, tj.randn(5, 4))
    assert model.report().compiles == 1


def test_a_model_without_a_single_graph_is_refused(tmp_path):
    class Printing(nn.Module):
        def forward(self, x):
            y = x * 2
            open("/dev/null").close()
            return y + 1

    with pytest.raises(tj.CaptureError, match="open"):
        logged(tmp_path, Printing(), tj.ones(2))
