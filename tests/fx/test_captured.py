"""GraphModules under `script`: their code is the user's, and a changed graph is seen."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.fx import modules
from tracejit import fx, nn

NAMES = ["layers", "own modules", "lists", "attention", "operators", "indexing", "methods",
         "constants", "einsum", "chosen"]


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return tj.allclose(a, b, equal_nan=True) if isinstance(a, tj.Tensor) else a == b


@pytest.mark.parametrize("name", NAMES)
def test_graph_modules_replay(name):
    plain, arguments, concrete = modules.everything(tj)[name]
    gm = fx.symbolic_trace(plain, concrete)
    run = tj.script(lambda *given: gm(*given), fullgraph=True)
    for _ in range(3):
        assert same(run(*arguments), plain(*arguments))
    report = run.report()
    assert report.cache_hits == 2 and not report.breaks


def test_a_scripted_graph_module():
    plain = modules.linears(tj)["own modules"][0]
    compiled = tj.script(fx.symbolic_trace(plain))
    x = tj.ones(2, 3)
    for _ in range(3):
        assert tj.allclose(compiled(x), plain(x))
    assert compiled.report().cache_hits == 2 and isinstance(compiled, tj.jit.ScriptModule)


def test_a_changed_graph_is_captured_again():
    gm = fx.symbolic_trace(lambda x: tj.relu(x) + 1)
    run = tj.script(lambda x: gm(x) * 2, fullgraph=True)
    x = tj.tensor([-1.0, 2.0])
    assert [run(x).tolist() for _ in range(2)] == [[2.0, 6.0]] * 2
    for node in gm.graph.nodes:
        if node.target is tj.relu:
            node.target = tj.neg
    assert run(x).tolist() == [2.0, 6.0]
    gm.recompile()
    assert [run(x).tolist() for _ in range(2)] == [[4.0, -2.0]] * 2
    gm.graph = fx.symbolic_trace(lambda x: x).graph
    assert run(x).tolist() == [-2.0, 4.0]


def test_training_through_a_graph_module():
    plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    gm = fx.symbolic_trace(plain)
    optimizer = tj.optim.SGD(plain.parameters(), lr=0.1)

    @tj.script(fullgraph=True)
    def step(x):
        loss = gm(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(tj.ones(2, 3)).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    assert step.report().cache_hits == 3


def test_control_flow_around_and_a_subclass():
    class Twice(fx.GraphModule):
        def forward_twice(self, x):
            return self(self(x))

    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.Tanh()))
    gm = Twice(traced, traced.graph)
    run = tj.script(lambda x: gm.forward_twice(x) if x.sum() > 0 else gm(x), fullgraph=True)
    for x in (tj.ones(1, 2), -tj.ones(1, 2)) * 2:
        assert tj.allclose(run(x), traced(traced(x)) if x.sum() > 0 else traced(x))
