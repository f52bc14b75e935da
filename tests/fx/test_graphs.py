"""Graphs of calls without PyTorch: copies, files, marks of functions, subclasses, readable code."""

from __future__ import annotations

import copy
import inspect
import linecache
import math
import pickle
import traceback

import pytest

import tracejit as tj
from tests.fx import marked, modules
from tracejit import fx, nn

NAMES = list(modules.everything(tj))


def same(a, b):
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return tj.allclose(a, b, equal_nan=True) if isinstance(a, tj.Tensor) else a == b


def net():
    return modules.linears(tj)["own modules"][0]


@pytest.mark.parametrize("name", NAMES)
def test_copies_give_the_same(name):
    plain, arguments, concrete = modules.everything(tj)[name]
    gm = fx.symbolic_trace(plain, concrete)
    gm.graph.lint()
    wanted = gm(*copy.deepcopy(arguments))
    assert same(wanted, plain(*copy.deepcopy(arguments)))
    for again in (copy.deepcopy(gm), copy.copy(gm), pickle.loads(pickle.dumps(gm)),
                  fx.GraphModule(gm, copy.deepcopy(gm.graph))):
        assert type(again) is not type(gm) and again.graph is not gm.graph
        assert again.graph.owning_module is again and again.training == gm.training
        assert same(again(*copy.deepcopy(arguments)), wanted)
        assert [n.op for n in again.graph.nodes] == [n.op for n in gm.graph.nodes]


def test_a_deep_copy_shares_nothing():
    gm = fx.symbolic_trace(net())
    again = copy.deepcopy(gm)
    again.graph.erase_node(again.graph.output_node())
    again.scale.data.zero_()
    assert gm.graph.output_node() and gm.scale.sum() > 0
    assert {id(p) for p in gm.parameters()}.isdisjoint(map(id, again.parameters()))
    assert gm(tj.ones(1, 3)).shape == (1, 4)


def test_a_graph_module_is_saved_to_a_file(tmp_path):
    gm = fx.symbolic_trace(net())
    x = tj.ones(2, 3)
    tj.save(gm, tmp_path / "net.pt")
    assert tj.equal(tj.load(tmp_path / "net.pt", weights_only=False)(x), gm(x))
    assert set(gm.state_dict()) == {*net().state_dict(), "plain"}
    with pytest.raises(pickle.UnpicklingError):
        tj.load(tmp_path / "net.pt")
    gm.to_folder(tmp_path / "folder", "Net")
    names: dict = {"__file__": str(tmp_path / "folder/module.py")}
    exec((tmp_path / "folder/module.py").read_text(), names)
    assert tj.equal(names["Net"]()(x), gm(x))


def test_code_is_a_file_to_python():
    gm = fx.symbolic_trace(lambda x: x.missing())
    assert "x.missing()" in inspect.getsource(gm.forward)
    with pytest.raises(AttributeError) as caught:
        gm(tj.ones(1))
    assert "missing = x.missing()" in traceback.format_tb(caught.value.__traceback__)[-1]
    name = gm.forward.__code__.co_filename
    assert name in linecache.cache
    caught.value.__traceback__ = None
    del caught
    gm.graph.owning_module = None
    type(gm).forward = None
    assert name not in linecache.cache


def test_wrapped_functions_are_nodes():
    gm = fx.symbolic_trace(marked.program)
    calls = [(n.name, n.meta.get("is_wrapped", False)) for n in gm.graph.nodes
             if n.op == "call_function"]
    assert calls == [("chosen", True), ("tripled", True), ("add", False), ("add_1", False),
                     ("len_1", True), ("add_2", False), ("add_3", False), ("add_4", False)]
    assert 'tracejit.fx._symbolic_trace.wrap("len")' in gm.code
    x = tj.ones(3)
    assert tj.equal(gm(x), marked.program(x))
    assert not hasattr(marked.chosen, "_fx_records") and "len" not in vars(marked)
    assert [n.name for n in fx.symbolic_trace(marked.roots).graph.nodes][1] == "sqrt"
    assert not hasattr(math.sqrt, "_fx_records")


def test_a_failed_trace_leaves_no_patch():
    call, read = nn.Module.__call__, nn.Module.__getattr__
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: marked.tripled(1) if x else marked.tripled(2))
    assert nn.Module.__call__ is call and nn.Module.__getattr__ is read
    assert marked.tripled.__name__ == "tripled" and not fx.tracer.is_fx_tracing()


def test_functions_of_a_module_may_be_wrapped_by_the_tracer():
    tracer = fx.Tracer(autowrap_functions=(marked.tripled,))
    names = [n.name for n in tracer.trace(marked.program).nodes]
    assert "tripled" in names
    assert "tripled" in [n.name for n in fx.symbolic_trace(marked.program).graph.nodes]


class Recording(fx.Interpreter):
    def __init__(self, module):
        super().__init__(module)
        self.seen = []

    def run_node(self, n):
        result = super().run_node(n)
        self.seen.append((n.op, tuple(getattr(result, "shape", ()))))
        return result


def test_interpreters_run_each_node():
    runner = Recording(fx.symbolic_trace(net()))
    assert runner.run(tj.ones(2, 3)).shape == (2, 4)
    assert runner.seen[0] == ("placeholder", (2, 3)) and runner.seen[-1] == ("output", (2, 4))
    assert len(runner.env) == 1  # the values that are not needed are gone
    kept = fx.Interpreter(runner.module, garbage_collect_values=False)
    kept.run(tj.ones(2, 3))
    assert len(kept.env) == len(kept.graph.nodes)
    boxed = [tj.ones(2, 3)]
    assert fx.Interpreter(runner.module).boxed_run(boxed).shape == (2, 4) and boxed == []


def test_interpreters_say_which_node_failed():
    gm = fx.symbolic_trace(lambda x, y=2: (x + y).missing())
    with pytest.raises(AttributeError, match=r"While executing %missing : \[num_users=1\]"):
        fx.Interpreter(gm).run(tj.ones(1))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(gm).run()
    with pytest.raises(RuntimeError, match=r"Node referenced nonexistent target a\.b"):
        fx.Interpreter(_with_part()).fetch_attr("a.b")


def _with_part():
    gm = fx.symbolic_trace(lambda x: x)
    gm.add_submodule("a", nn.ReLU())
    return gm


def test_values_may_be_given_to_an_interpreter():
    gm = fx.symbolic_trace(lambda x, y: x + y)
    x, y, *_ = gm.graph.nodes
    assert fx.Interpreter(gm).run(initial_env={x: 5, y: 7}) == 12


def test_transformers_trace_again():
    class Doubled(fx.Transformer):
        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * 2

    plain = modules.linears(tj)["layers"][0]
    gm = Doubled(fx.symbolic_trace(plain)).transform()
    assert [n.name for n in gm.graph.nodes].count("mul") == 1
    assert len(gm.graph.find_nodes(op="call_module")) == 4
    x = tj.ones(1, 3)
    one = plain.rest[0](plain.first(x) * 2) * 2
    assert tj.allclose(gm(x), (tj.relu(one) * 2).tanh() * 2 + 1)


def test_submodules_come_and_go():
    gm = fx.symbolic_trace(net())
    assert gm.add_submodule("a.b.c", nn.ReLU()) and isinstance(gm.a.b.c, nn.ReLU)
    assert not gm.add_submodule("scale.b", nn.ReLU())
    assert gm.delete_submodule("a.b.c") and not gm.delete_submodule("a.b.c")
    assert not gm.delete_submodule("scale")
    gm.delete_all_unused_submodules()
    assert not hasattr(gm, "a") and gm(tj.ones(1, 3)).shape == (1, 4)


def test_attributes_of_a_dict():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(tj.mul, (x, graph.get_attr("part.weight")))
    graph.output(graph.call_module("part.layer", (y,)))
    gm = fx.GraphModule({"part.weight": tj.ones(3), "part.layer": nn.ReLU()}, graph, "Made")
    assert type(gm).__name__ == "Made" and repr(gm).startswith("Made(")
    assert tj.equal(gm(-tj.ones(3)), tj.zeros(3))
    assert [name for name, _ in gm.named_buffers()] == ["part.weight"]


def test_new_nodes_go_where_they_are_told():
    graph = fx.Graph()
    x = graph.placeholder("x")
    end = graph.output(x)
    with graph.inserting_before(end):
        first = graph.call_function(tj.relu, (x,))
        with graph.inserting_after(x):
            second = graph.call_function(tj.neg, (x,))
        third = graph.call_function(tj.exp, (x,))
    assert list(graph.nodes) == [x, second, first, third, end]
    with graph.inserting_before():
        begin = graph.placeholder("w")
    assert next(iter(graph.nodes)) is begin
    third.append(second)
    assert third.next is second and second.prev is third and first < second and not second < first
    assert len(graph.nodes) == 6


def test_nodes_may_be_erased_in_a_walk():
    gm = fx.symbolic_trace(lambda x: tj.relu(tj.neg(tj.exp(x))))
    for node in gm.graph.nodes:
        if node.op == "call_function":
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.recompile()
    assert len(gm.graph.nodes) == 2
    assert [n.op for n in gm.graph.nodes] == ["placeholder", "output"]
    assert gm(tj.ones(1)).item() == 1


def test_users_follow_arguments():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    z = graph.call_function(tj.add, (x, x), {"alpha": y})
    assert z.all_input_nodes == [x, y] and list(x.users) == [z] == list(y.users)
    z.args = (y, 1)
    assert list(x.users) == [] and z.all_input_nodes == [y]
    z.kwargs = {}
    z.insert_arg(0, [x, {"k": (x, slice(x, None))}])
    assert list(x.users) == [z] and len(z.args) == 3
    kept = graph.call_function(tj.neg, (x,))
    assert x.replace_all_uses_with(y, lambda user: user is not kept) == [z]
    assert list(x.users) == [kept] and z.args[0] == [y, {"k": (y, slice(y, None))}]


def test_code_of_all_kinds_of_arguments():
    def given(x):
        kind = {"dtype": tj.float64, "device": tj.device("cpu")}
        return tj.zeros_like(x, **kind), x.reshape(*(1, -1)), x[1:, None], math.inf

    gm = fx.symbolic_trace(given)
    assert "dtype = tracejit.float64, device = device(type='cpu')" in gm.code
    assert "x[(slice(1, None, None), None)]" in gm.code and "inf)" in gm.code
    assert gm(tj.ones(2))[0].dtype is tj.float64


def test_lines_of_code_may_be_changed():
    gm = fx.symbolic_trace(lambda x: x + 1)

    def loud(body):
        return ["seen.append(1)\n", *body]

    with gm.graph.on_generate_code(lambda last: loud):
        assert "seen.append(1)" in gm.recompile().src
    assert "seen.append(1)" not in gm.recompile().src


def test_readable_code_names_lines_of_the_program():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    plain = modules.linears(tj)["layers"][0]
    shown = fx.GraphModule(plain, tracer.trace(plain)).print_readable(print_output=False)
    assert shown.startswith("class GraphModule(tracejit.nn.Module):\n    def forward(self, x):")
    assert "modules.py" in shown and "code: return self.rest(self.first(x)) + 1" in shown


def test_tables_of_nodes(capsys):
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    try:
        import tabulate  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError):
            graph.print_tabular()
    else:
        graph.print_tabular()
        assert "call_function" in capsys.readouterr().out


def test_parameters_with_known_shapes():
    class Sized(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tj.ones(3, 2))

        def forward(self, x):
            return x * 2 if self.weight.shape[0] == 3 and self.weight.dim() == 2 else x

    graph = fx.Tracer(param_shapes_constant=True).trace(Sized())
    assert "mul" in [n.name for n in graph.nodes]
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(Sized())


def test_objects_made_of_proxies():
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

    gm = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    assert gm.graph.output_node().args[0].target is Pair
    assert gm(tj.ones(1)).right.item() == 2


def test_a_graph_module_is_traced_into():
    inner = fx.symbolic_trace(lambda x: x + 1)

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x) * 2

    assert [n.name for n in fx.symbolic_trace(Outer()).graph.nodes] == ["x", "add", "mul", "output"]


def test_einsum_of_a_list_is_told_of_each_operand():
    gm = fx.symbolic_trace(lambda x, y: tj.einsum("ij,jk->ik", [x, y]))
    node = list(gm.graph.nodes)[2]
    assert [str(a) for a in node.args] == ["ij,jk->ik", "x", "y"]


def test_private_helpers_of_modules_take_no_users_name():
    class Names(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("_compiled_forward", nn.ReLU())
            self._table, self._take, self._cast = nn.Linear(1, 1), nn.Parameter(tj.ones(1)), 3

        def forward(self, x):
            return self._compiled_forward(self._table(x)) * self._take

    names = Names().double()
    names.load_state_dict(names.state_dict())
    assert names(tj.ones(1, 1, dtype=tj.float64)).dtype is tj.float64
    with pytest.raises(AttributeError, match="is not compiled"):
        names.report()
