"""`script(module)`: the compiled module and the module are one state (C2), of one class, with the
same hooks, methods, copies and pickles; and it goes when nobody holds it (C10)."""

from __future__ import annotations

import abc
import copy
import gc
import pickle
import weakref

import pytest

import tracejit as tj


class Net(tj.nn.Module):
    """Every way in which a forward meets the state of its module."""

    __secret = 1.0

    def __init__(self):
        super().__init__()
        self.layer = tj.nn.Linear(2, 2)
        self.scale = 2.0
        self.register_buffer("shift", tj.ones(2))
        self.calls = 0
        self.__own = 3.0

    def forward(self, x):
        self.calls += 1
        y = self.layer(x) * self.scale + self.shift + self.__secret + self.__own
        return y if self.training else y * 10

    def twice(self, x):
        return self(self(x))

    def grow(self):
        self.scale *= 2
        self.__own += 1

    def another(self):
        return type(self)(), self.__class__()


class Deep(Net):
    def forward(self, x):
        return super().forward(x) + 1


def change_attribute(net):
    net.scale = 5.0


def change_flag(net):
    net.eval()


def change_child(net):
    tj.manual_seed(1)
    net.layer = tj.nn.Linear(2, 2, bias=False)


def change_kind_of_child(net):
    net.layer = tj.nn.Identity()


def change_parameter(net):
    net.layer.weight = tj.nn.Parameter(tj.full((2, 2), 3.0))


def change_buffer(net):
    net.shift = tj.zeros(2)


def register_buffer(net):
    net.register_buffer("shift", tj.full((2,), 9.0))


def delete_and_set(net):
    del net.layer.bias
    net.layer.bias = None


def change_private(net):
    net._Net__own = -1.0


def load(net):
    net.load_state_dict({k: v * 2 for k, v in net.state_dict().items()})


def call_method(net):
    net.grow()


def add_hook(net):
    net.register_forward_hook(lambda module, args, output: output * 100)


def add_pre_hook(net):
    net.register_forward_pre_hook(lambda module, args: (args[0] + 1,))


def own_forward(net):
    net.forward = lambda x: x * 7


def double(net):
    net.double().float()


CHANGES = [
    change_attribute, change_flag, change_child, change_kind_of_child, change_parameter,
    change_buffer, register_buffer, delete_and_set, change_private, load, call_method, add_hook,
    add_pre_hook, own_forward, double,
]  # fmt: skip
X = tj.tensor([[1.0, -2.0]])


def outcome(net):
    return net(X).tolist(), net.calls


@pytest.mark.parametrize("through", ["module", "compiled", "within"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cls", [Net, Deep])
def test_a_change_through_either_is_seen_by_both(cls, change, through):
    net, plain = cls(), cls()
    plain.load_state_dict(net.state_dict())
    compiled = tj.script(net, numerics="eager")  # the same bits
    outer = tj.script(lambda x: compiled(x), numerics="eager")
    run = outer if through == "within" else compiled
    for _ in range(3):
        assert (run(X).tolist(), compiled.calls) == outcome(plain)
    change(net if through == "module" else compiled)
    change(plain)
    for _ in range(3):
        assert (run(X).tolist(), compiled.calls) == outcome(plain)
    assert outcome(net) == outcome(plain)
    assert vars(net) is vars(compiled)


def test_it_is_compiled_and_replays():
    net = Net()
    del net.calls
    compiled = tj.script(net, fullgraph=True)
    with pytest.raises(AttributeError):
        compiled(X)
    compiled.calls = tj.zeros(())
    for _ in range(4):
        compiled(X)
    assert compiled.report().compiles == 1 and compiled.report().cache_hits == 3
    assert compiled.report().breaks == [] and net.calls.item() == 4
    assert len(compiled.graph(X).nodes) > 0 and compiled.graphs
    with pytest.raises(AttributeError, match="not compiled"):
        net.report()


def test_other_methods_run_the_compiled_forward():
    net = Net()
    net.calls = tj.zeros(())
    compiled = tj.script(net, numerics="eager")
    expected = net.twice(X).tolist()
    assert compiled.twice(X).tolist() == expected
    compiled.twice(X)
    assert compiled.report().cache_hits == 2  # each of the two calls


def test_type_repr_and_names_are_the_modules():
    net = Net()
    compiled = tj.script(net)
    assert isinstance(compiled, Net) and issubclass(type(compiled), Net)
    assert compiled.__class__ is Net and type(compiled).__name__ == "Net"
    assert repr(compiled) == repr(net) and str(compiled) == str(net)
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in net.parameters()]
    assert dir(compiled.layer) == dir(net.layer) and type(compiled).__doc__ == Net.__doc__
    assert [type(n) for n in compiled.another()] == [Net, Net]
    assert type(tj.script(Net())) is type(compiled)


def test_modes_and_conversions_go_both_ways():
    net = Net()
    compiled = tj.script(net)
    assert compiled.eval() is compiled and not net.training and not net.layer.training
    net.train()
    assert compiled.training
    compiled.double()
    assert net.layer.weight.dtype is tj.float64
    compiled.zero_grad()
    compiled(X.double()).sum().backward()
    assert net.layer.weight.grad is compiled.layer.weight.grad is not None


def test_hooks_registered_on_either_run_once_and_can_be_removed():
    net = Net()
    compiled = tj.script(net)
    seen = []
    first = net.register_forward_hook(lambda m, a, o: seen.append("net"))
    second = compiled.register_forward_pre_hook(lambda m, a: seen.append("compiled"))
    compiled(X)
    net(X)
    assert seen == ["compiled", "net"] * 2
    first.remove()
    second.remove()
    compiled(X)
    assert len(seen) == 4


def test_backward_hooks_of_either_see_the_gradients():
    net = Net()
    compiled = tj.script(net)
    seen = []
    net.register_full_backward_hook(lambda m, i, o: seen.append(o[0].tolist()))
    for _ in range(2):
        compiled(X.clone().requires_grad_(True)).sum().backward()
    assert seen == [[[1.0, 1.0]]] * 2


def test_a_forward_replaced_on_the_class_is_seen():
    class Local(tj.nn.Module):
        def forward(self, x):
            return x * 2

    compiled = tj.script(Local())
    outer = tj.script(lambda x: compiled(x))
    assert compiled(X).tolist() == outer(X).tolist() == (X * 2).tolist()
    Local.forward = lambda self, x: x * 3
    assert compiled(X).tolist() == outer(X).tolist() == (X * 3).tolist()
    compiled.forward = lambda x: x * 4
    assert compiled(X).tolist() == outer(X).tolist() == (X * 4).tolist()
    del compiled.forward
    assert compiled(X).tolist() == outer(X).tolist() == (X * 3).tolist()
    with pytest.raises(AttributeError):
        del compiled.forward


def test_an_outer_program_holds_the_compiled_module_as_any_other():
    net = Deep()
    net.calls = tj.zeros(())
    compiled = tj.script(net, numerics="eager")
    outer = tj.script(lambda m, x: m(x) + m.scale, fullgraph=True, numerics="eager")
    expected = (net(X) + 2).tolist()
    for _ in range(3):
        assert outer(compiled, X).tolist() == expected
    assert outer.report().compiles == 1


def test_training_through_the_compiled_module():
    net, plain = tj.nn.Linear(2, 1), tj.nn.Linear(2, 1)
    plain.load_state_dict(net.state_dict())
    compiled = tj.script(net, numerics="eager")
    for module in (compiled, plain):
        optimizer = tj.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            module(X).sum().backward()
            optimizer.step()
    assert net.weight.tolist() == plain.weight.tolist()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("within", [lambda m: m, lambda m: tj.nn.Sequential(m)])
def test_copies_are_compiled_and_have_a_state_of_their_own(copied, within):
    compiled = tj.script(Net(), numerics="eager")
    before = compiled(X).tolist()
    again = copied(within(compiled))
    inner = again if within(compiled) is compiled else again[0]
    assert inner.report().compiles == 0 and isinstance(inner, Net)
    assert inner.forward.numerics == "eager"
    inner.scale = 0.0
    assert again(X).tolist() == [[5.0, 5.0]] and inner.report().compiles == 1
    assert compiled(X).tolist() == before


def test_a_shallow_copy_shares_the_tables_as_the_modules_does():
    net = Net()
    again, plain = copy.copy(tj.script(net)), copy.copy(net)
    assert again.layer is plain.layer is net.layer
    again.scale = 7.0
    assert net.scale == 2.0 and again.report().compiles == 0
    plain.scale = 7.0
    assert again(X).tolist() == plain(X).tolist()


def test_a_copy_of_both_is_again_one_state():
    net = Net()
    pair = [net, tj.script(net)]
    for first, second in (copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        first.scale = 9.0
        assert second.scale == 9.0 and vars(first) is vars(second) is not vars(net)
    net.__dict__["me"] = pair[1]
    again = copy.deepcopy(pair[1])
    assert vars(again.me) is vars(again)


def test_scripting_twice_is_one_more_view_of_the_module():
    net = Net()
    twice = tj.script(tj.script(net), numerics="eager")
    assert twice(X).tolist() == net(X).tolist() and twice.forward.numerics == "eager"
    assert vars(twice) is vars(net)


class Decorated(tj.nn.Module):
    @tj.script
    def forward(self, x):
        return x * 2


def test_a_decorated_forward_stays_what_it_is():
    compiled = tj.script(Decorated())
    assert compiled(X).tolist() == (X * 2).tolist()
    assert compiled.report().compiles == Decorated.forward.report().compiles == 1


class Registry(abc.ABCMeta):
    made: list[str] = []

    def __new__(meta, name, bases, body, **options):
        meta.made.append(name)
        return super().__new__(meta, name, bases, body, **options)


class Slotted(tj.nn.Module, metaclass=Registry):
    __slots__ = ("kept",)

    def __init_subclass__(cls, *, needed):
        raise TypeError("subclasses are counted")

    def forward(self, x):
        return x * self.kept


def test_classes_with_slots_and_a_metaclass_of_their_own():
    net = Slotted()
    net.kept = 2.0
    compiled = tj.script(net)
    assert isinstance(compiled, Slotted) and Registry.made == ["Slotted"]
    assert compiled(X).tolist() == (X * 2).tolist()
    compiled.kept = 3.0
    assert net.kept == 3.0 and compiled(X).tolist() == (X * 3).tolist()
    net.kept = 4.0
    assert compiled(X).tolist() == (X * 4).tolist()
    del compiled.kept
    assert not hasattr(net, "kept")


def test_the_compiled_module_goes_without_the_collector():
    class Local(tj.nn.Module):
        def forward(self, x):
            return x * 2

    net = Local()
    compiled = tj.script(net)
    for _ in range(3):
        compiled(X)
    alive = [weakref.ref(compiled), weakref.ref(compiled.forward), weakref.ref(net)]
    del compiled
    assert [alive[0]() is None, alive[2]() is net] == [True, True]
    del net
    gc.collect()
    assert [r() for r in alive] == [None] * 3


@pytest.mark.parametrize("decorate", [tj.trace, tj.script])
def test_trace_shares_the_state_as_well(decorate):
    net = Net()
    compiled = decorate(net, numerics="eager")
    compiled(X)
    net.scale = 11.0
    assert compiled(X).tolist() == net(X).tolist()
