"""Graphs of modules and functions, their code, results and transformations, beside PyTorch's."""

from __future__ import annotations

import copy
import operator
import re

import numpy as np
import pytest

import tracejit
from tests.fx import modules

pytestmark = pytest.mark.oracle
NAMES = list(modules.everything(tracejit))


def both():
    return tracejit, pytest.importorskip("torch")


def traced(M, name):
    """Return the GraphModule of a row, its arguments, and the plain one; weights are equal."""
    plain, arguments, concrete = modules.everything(M)[name]
    if isinstance(plain, M.nn.Module):
        for k, parameter in enumerate(plain.parameters()):
            ramp = M.arange(float(parameter.numel())).reshape(parameter.shape)
            parameter.data = ramp * 0.01 + 0.1 * k
    return M.fx.symbolic_trace(plain, concrete), arguments, plain


def text(code):
    """Return code as either package writes it: one name for each."""
    code = re.sub(r"\btracejit\b", "torch", code).replace("torch.nn.modules.", "torch.nn.")
    return code.replace(" = None\n", "\n").replace("_stacklevel = 3, ", "")


def target(node):
    if isinstance(node.target, str):
        return node.target
    return node.target.__name__


def shown(value):
    """Return arguments and results as plain objects."""
    if isinstance(value, (list, tuple)):
        return [shown(x) for x in value]
    if isinstance(value, dict):
        return {key: shown(x) for key, x in value.items()}
    if hasattr(value, "detach"):
        return ["tensor", str(value.dtype).split(".")[-1], value.detach().numpy().tolist()]
    if isinstance(value, (int, float, bool, str, slice)) or value is None:
        return value
    return str(value).replace("tracejit", "torch")


def rows(graph):
    return [(n.op, n.name, target(n), shown(n.args), shown(n.kwargs), [u.name for u in n.users],
             list(n.meta)) for n in graph.nodes]


@pytest.mark.parametrize("name", NAMES)
def test_nodes_and_code(name):
    ours, theirs = (traced(M, name)[0] for M in both())
    found, wanted = (rows(gm.graph) for gm in (ours, theirs))
    assert [row[:4] + row[5:] for row in found] == [row[:4] + row[5:] for row in wanted]
    for mine, other in zip(found, wanted):
        assert mine[4] == {k: v for k, v in other[4].items() if k != "_stacklevel"}
    assert text(ours.code) == text(theirs.code)
    assert text(str(ours.graph)) == text(str(theirs.graph))


def equal(found, wanted):
    if isinstance(wanted, dict):
        return list(found) == list(wanted) and all(equal(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list) and wanted[:1] == ["tensor"]:
        return found[:2] == wanted[:2] and np.allclose(
            np.array(found[2]), np.array(wanted[2]), rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(equal, found, wanted))
    return found == wanted


@pytest.mark.parametrize("name", NAMES)
def test_results(name):
    results = []
    for M in both():
        gm, arguments, plain = traced(M, name)
        again = copy.deepcopy(gm)
        results.append([shown(called(*copy.deepcopy(arguments))) for called in (
            gm, plain, again, M.fx.Interpreter(gm).run, M.fx.Transformer(gm).transform())])
    for found in results[0]:
        assert equal(found, results[1][0])


def raised(call):
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value).__name__, str(caught.value).replace("tracejit", "torch")


def _branches(x):
    return x if x.sum() > 0 else -x


def _loops(x):
    for row in x:
        x = x + row
    return x


def _whiles(x):
    while x.sum() > 0:
        x = x - 1
    return x


def _asserts(x):
    assert x.shape[0] == 1
    return x


REFUSED = [
    _branches, _loops, _whiles, _asserts, lambda x: bool(x), lambda x: len(x), lambda x: int(x),
    lambda x: x in [1], lambda x: 1 in x, lambda x: list(x), lambda x: [1, 2][x], lambda x: {**x},
    lambda x: {x: 1}, lambda x: object(), lambda x: x.sum(*x), lambda x: range(x),
    lambda x: not x, lambda x: x and x,
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_control_flow_on_proxies_raises_as_pytorch_does(k):
    ours, theirs = (raised(lambda M=M: M.fx.symbolic_trace(REFUSED[k])) for M in both())
    assert ours == theirs


def test_layers_that_are_not_in_the_module_raise():
    def call(M):
        return M.fx.symbolic_trace(lambda x: M.nn.Linear(1, 1)(x))

    def parameter(M):
        return M.fx.symbolic_trace(lambda x: x + M.nn.Parameter(M.ones(1)))

    for made in (call, parameter):
        ours, theirs = (raised(lambda M=M, made=made: made(M)) for M in both())
        assert ours == theirs


def changed(M):
    """Make changes of all kinds to graphs; return what they look like after each."""
    fx, found = M.fx, []

    def note(gm):
        gm.graph.lint()
        gm.recompile()
        found.append((text(gm.code), rows(gm.graph)))

    gm = fx.symbolic_trace(lambda x, y: M.relu(x + y) * 2 + M.relu(y))
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target == M.relu:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(M.sigmoid, node.args)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    note(gm)
    first = next(iter(gm.graph.nodes))
    with gm.graph.inserting_before(first.next.next):
        extra = gm.graph.call_method("exp", (first,))
        gm.graph.call_function(operator.setitem, (extra, 0, 1))
        gm.graph.call_method("add_", (extra, 1))
    note(gm)
    found.append(gm.graph.eliminate_dead_code())
    note(gm)
    last = gm.graph.output_node()
    last.args[0].replace_input_with(last.args[0].args[0], extra)
    last.prev.update_kwarg("alpha", 1)
    last.prev.kwargs = {}
    note(gm)
    other = fx.Graph()
    result = other.graph_copy(gm.graph, {})
    other.output((result, result))
    note(fx.GraphModule({}, other, "Other"))
    found.append([n.name for n in other.find_nodes(op="placeholder")])
    found.append([n.name for n in reversed(other.nodes)])
    return found


def test_changes_of_graphs():
    ours, theirs = map(changed, both())
    assert ours == theirs


def refused(M):
    graph, other = M.fx.Graph(), M.fx.Graph()
    x, y = graph.placeholder("x"), other.placeholder("y")
    a = graph.call_function(M.relu, (x,))
    b = graph.call_method("exp", (a,))
    graph.output(b)
    mixed = M.fx.Graph()
    mixed.call_function(M.relu, (x,))
    swapped = copy.deepcopy(graph)
    list(swapped.nodes)[0].prepend(list(swapped.nodes)[1])
    listed = M.fx.Graph().call_method("m", ([1, {"k": 2}],))
    calls = [lambda: graph.erase_node(a), lambda: other.erase_node(b), mixed.lint, swapped.lint,
             lambda: other.inserting_before(a), lambda: a.append(y),
             lambda: graph.create_node("nothing", "x"), lambda: listed.args[0].append(1),
             lambda: listed.args[0][1].update(a=1), lambda: M.fx.GraphModule(3, graph),
             lambda: M.fx.GraphModule({}, _with_attribute(M)), lambda: M.fx.wrap(3),
             lambda: M.fx.wrap("name")]
    return [tuple(s.replace("_tensor_", "") for s in raised(call)) for call in calls]


def _with_attribute(M):
    graph = M.fx.Graph()
    graph.output(graph.get_attr("a.b"))
    return graph


def test_errors_of_graphs():
    ours, theirs = map(refused, both())
    for mine, other in zip(ours, theirs):
        assert (mine[0], text(mine[1])) == (other[0], text(other[1]))


WISHES = """add_ foo __add__ fooBar Conv2dRelu a.b.0 0 x class print A relu_1 relu relu relu_1
relu_3 relu relu_01 inf self forward _x __x device""".split()


def test_names_of_nodes():
    def names(M):
        graph = M.fx.Graph()
        x = graph.placeholder("x")
        return [graph.call_method(wish, (x,)).name for wish in WISHES]

    ours, theirs = map(names, both())
    assert ours == theirs


def patterns(M):
    nn = M.nn

    class Layer(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.name = name
            setattr(self, name, nn.Linear(2, 2))

        def forward(self, x):
            return getattr(self, self.name)(x).relu()

    def several(a, b):
        c = M.add(a, b).relu()
        d = M.add(c, a).relu()
        return M.add(d, 1).relu() + c

    rows_ = [
        (several, lambda x, y: M.add(x, y).relu(), lambda x, y: M.mul(x, y)),
        (lambda a, b: ((a.relu() + 1), (b.relu() + 1), a.relu() + 2), lambda x: x.relu() + 1,
         lambda x: x.neg()),
        (lambda a: _twice(a.relu()), lambda x: _pair(x.relu()), lambda x: (x.neg(), x.abs())),
        (Layer("layer"), Layer("layer"), Layer("other")),
        (lambda a: (a.relu() + 1, a.relu()), lambda x: x.relu() + 2, lambda x: x),
        (lambda a: _used(a.relu()), lambda x: x.relu() + 1, lambda x: x),
        (lambda a: a.relu().relu().relu(), lambda x: x.relu().relu(), lambda x: x.neg()),
        (lambda a: a.relu().relu().relu().relu(), lambda x: x.relu().relu(), lambda x: x.neg()),
        (lambda a: M.cat([a, a.exp()], dim=1), lambda x, y: M.cat([x, y], dim=1),
         lambda x, y: M.stack((y, x))),
    ]
    found = []
    for function, pattern, replacement in rows_:
        gm = M.fx.symbolic_trace(function)
        places = M.fx.replace_pattern(gm, pattern, replacement)
        found.append((text(gm.code), len(places), [p.anchor.name for p in places],
                      sorted(name for name, _ in gm.named_modules())))
    return found


def _twice(r):
    return (r + 1) - (r * 2)


def _pair(r):
    return r + 1, r * 2


def _used(r):
    return r + 1, r


def test_patterns():
    ours, theirs = map(patterns, both())
    for mine, other in zip(ours, theirs):
        assert mine == other


def test_tracers_of_users():
    def found(M):
        class Deep(M.fx.Tracer):
            def is_leaf_module(self, m, module_qualified_name):
                return module_qualified_name == "first" or isinstance(m, M.nn.Tanh)

        plain = modules.linears(M)["layers"][0]
        graph = Deep().trace(plain)
        stacks = [list(n.meta.get("nn_module_stack", {})) for n in graph.nodes]
        return rows(graph), stacks, text(M.fx.GraphModule(plain, graph).code)

    ours, theirs = map(found, both())
    assert [r[1:3] for r in ours[0]] == [r[1:3] for r in theirs[0]] and ours[1] == theirs[1]
    assert ours[2].replace("nn.functional.linear", "_C._nn.linear") == theirs[2]


def test_arguments_that_are_containers():
    def found(M):
        PH = M.fx.PH
        gm = M.fx.symbolic_trace(lambda x, y: (x["a"] + x["b"][0], {"y": y}),
                                 concrete_args={"x": {"a": PH, "b": [PH, 3]}, "y": PH})
        one = {"a": M.ones(1), "b": [M.ones(1), 3]}
        wrong = {"a": M.ones(1), "b": [M.ones(1), 4]}
        return ([n.name for n in gm.graph.nodes], shown(gm(one, M.ones(1))),
                raised(lambda: gm(wrong, 1)))

    ours, theirs = map(found, both())
    assert ours == theirs


def test_specialised_arguments_are_checked():
    def found(M):
        gm = M.fx.symbolic_trace(lambda x, n, m: x * n, concrete_args={"n": 3, "m": None})
        one = M.ones(1)
        return (shown(gm(one, 3, None)), raised(lambda: gm(one, 4, None)),
                raised(lambda: gm(one, 3, 5)), text(gm.code))

    ours, theirs = map(found, both())
    assert ours == theirs


def test_shapes():
    def found(M):
        from importlib import import_module

        prop = import_module(f"{M.__name__}.fx.passes.shape_prop").ShapeProp
        gm, arguments, _ = traced(M, "images")
        prop(gm).propagate(*arguments)
        metas = [n.meta["tensor_meta"] for n in gm.graph.nodes]
        return [(tuple(m.shape), str(m.dtype).split(".")[-1], m.requires_grad, m.stride,
                 str(m.memory_format).split(".")[-1]) for m in metas]

    ours, theirs = map(found, both())
    assert ours == theirs


def test_impure_nodes():
    def found(M):
        def f(x):
            x.add_(1)
            M.bernoulli(x)
            M.nn.functional.dropout(x)
            M.rand_like(x)
            M._assert(x.shape[0] > 1, "long")
            M.exp(x)
            return x * 2

        gm = M.fx.symbolic_trace(f)
        impure = [(n.name, n.is_impure()) for n in gm.graph.nodes]
        gm.graph.eliminate_dead_code()
        return impure, [n.name for n in gm.graph.nodes]

    ours, theirs = map(found, both())
    assert ours == theirs
