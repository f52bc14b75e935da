"""`_dynamo.explain`: the graphs of one call, and why there are several."""

import tracejit as tj
from tracejit import nn
from tracejit._dynamo import explain


def breaking(x):
    y = x.exp()
    size = len(str(y.tolist()))
    return (y + size).sum()


def test_one_graph():
    found = explain(lambda x, y: (x * y).tanh(), tj.ones(3), y=tj.ones(3))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 2)
    assert found.ops_per_graph == [["mul", "tanh"]] and len(found.graphs) == 1
    assert any(line.startswith("x:") for line in found.out_guards)


def test_breaks_are_named():
    found = explain(breaking)(tj.ones(3))
    assert found.graph_count == 2 and found.graph_break_count == len(found.break_reasons) == 1
    assert found.ops_per_graph == [["exp"], ["add", "sum"]]
    text = str(found)
    assert "Graph Break Count: 1\nOp Count: 3\n" in text and "size = len(str(y.tolist()))" in text
    assert "  Ops 2:\n    add\n    sum\n" in text and "Compile Times: passes" in text


def test_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    found = explain(model, tj.ones(1, 2))
    assert found.ops_per_graph == [["linear", "relu"]]
    assert model.training and not hasattr(model.forward, "report")
