"""Containers: order, names, slices, changes."""

from collections import OrderedDict

import pytest

import tracejit
from tracejit import nn


def test_sequential():
    a, b, c = nn.Linear(1, 1), nn.ReLU(), nn.Identity()
    model = nn.Sequential(OrderedDict(first=a, second=b))
    assert model.first is a and list(model.named_children()) == [("first", a), ("second", b)]
    assert model[-1] is b and len(model) == 2 and list(model) == [a, b]
    assert list(model[:1].state_dict()) == ["first.weight", "first.bias"]
    plain = nn.Sequential(a, b)
    assert plain.append(c)[2] is c
    plain[1] = c
    del plain[0]
    assert list(plain._modules) == ["0", "1"] and list(plain) == [c, c]
    plain.insert(0, a)
    assert plain.pop(0) is a and plain.extend([b])[-1] is b
    with pytest.raises(IndexError, match="index 7 is out of range"):
        plain[7]
    x = tracejit.tensor([[-3.0]])
    assert nn.Sequential(nn.ReLU(), nn.Identity())(x).tolist() == [[0.0]]
    assert nn.Sequential()(x) is x


def test_module_list():
    layers = nn.ModuleList(nn.Linear(k, 1) for k in (1, 2, 3))
    assert [m.in_features for m in layers] == [1, 2, 3]
    assert [m.in_features for m in layers[1:]] == [2, 3] and type(layers[1:]) is nn.ModuleList
    layers += [nn.Linear(4, 1)]
    assert [name for name, _ in (layers + [nn.Identity()]).named_children()] == list("01234")
    del layers[:2]
    assert list(layers.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    with pytest.raises(NotImplementedError):
        layers(1)


def test_module_dict():
    layers = nn.ModuleDict({"a": nn.Linear(1, 1)})
    layers["b"] = nn.Identity()
    layers.update([("c", nn.ReLU())])
    assert (
        list(layers) == ["a", "b", "c"] == list(layers.keys())
        and "b" in layers
        and len(layers) == 3
    )
    assert layers.pop("b") is not None and [k for k, _ in layers.items()] == ["a", "c"]
    del layers["c"]
    assert [type(m) for m in layers.values()] == [nn.Linear]
    assert [name for name, _ in layers.named_parameters()] == ["a.weight", "a.bias"]
    layers.clear()
    assert len(layers) == 0


def test_parameter_containers():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.listed = nn.ParameterList([tracejit.zeros(1), nn.Parameter(tracejit.ones(2))])
            self.named = nn.ParameterDict({"p": tracejit.zeros(2, 3)})

    holder = Holder()
    assert [name for name, _ in holder.named_parameters()] == ["listed.0", "listed.1", "named.p"]
    holder.listed.append(tracejit.zeros(1))
    holder.listed[0] = tracejit.ones(1)
    assert [p.tolist() for p in holder.listed][0] == [1.0] and len(holder.listed[1:]) == 2
    assert holder.listed[-1].requires_grad and len(holder.listed) == 3
    holder.named["q"] = tracejit.zeros(1)
    assert "q" in holder.named and [k for k, _ in holder.named.items()] == ["p", "q"]
    del holder.named["q"]
    assert (
        list(holder.named) == ["p"] == list(holder.named.keys())
        and len(list(holder.named.values())) == 1
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called."):
        holder.listed(1)


LISTS = [
    lambda m, p: [], lambda m, p: [p(1)], lambda m, p: [p(1), m.ones(2, 3), 3, m.nn.ReLU(), None],
]
DICTS = [
    lambda m, p: {}, lambda m, p: {"b": p(1)}, lambda m, p: {"b": m.ones(1), "a": p(2), "n": 3},
    lambda m, p: [("b", p(1)), ("a", None)], lambda m, p: OrderedDict(z=p(1), a=m.nn.ReLU()),
    lambda m, p: m.nn.ParameterDict(OrderedDict(z=p(1), a=p(2))),
]
STEPS = [
    lambda m, d: d["n"], lambda m, d: d["a"].tolist(), lambda m, d: d[3], lambda m, d: "a" in d,
    lambda m, d: d.pop("b").tolist(), lambda m, d: d.pop("no"), lambda m, d: d.__delitem__("no"),
    lambda m, d: [*reversed(d)], lambda m, d: [*(d | {"y": 1, "x": 2})], lambda m, d: d.update(3),
    lambda m, d: d.update([3]), lambda m, d: d.update([(1, 2, 3)]), lambda m, d: d.setdefault("s"),
    lambda m, d: d.setdefault("a").tolist(), lambda m, d: d.get("no", 5), lambda m, d: d.popitem(),
    lambda m, d: [*d.fromkeys(["k", "j"], 1)], lambda m, d: d.__setitem__("keys", m.ones(1)),
    lambda m, d: d.__setitem__("a.b", m.ones(1)), lambda m, d: d.__setitem__("a", m.ones(7)),
    lambda m, d: d.__ior__({"k": m.ones(1), "j": 2}) is d, lambda m, d: [*d.copy()],
    lambda m, d: d(1), lambda m, d: m.nn.ParameterList(3), lambda m, d: m.nn.ParameterDict(3),
    lambda m, d: m.nn.ParameterList(m.ones(2)), lambda m, d: m.nn.ParameterList([1])[1],
    lambda m, d: (d.clear(), len(d)),
]


@pytest.mark.oracle
def test_parameter_containers_as_in_pytorch():
    torch = pytest.importorskip("torch")

    def shown(m):
        def p(n):
            return m.nn.Parameter(m.ones(n))

        found = []
        for make, kind in [*((f, m.nn.ParameterList) for f in LISTS),
                           *((f, m.nn.ParameterDict) for f in DICTS)]:
            made = kind(make(m, p))
            found.append((repr(made), [*made.state_dict()], len(made),
                          [n for n, _ in made.named_modules()]))
        for step in STEPS:
            d = m.nn.ParameterDict({"b": m.ones(1), "a": p(2), "n": 3})
            try:
                found.append((repr(step(m, d)), repr(d)))
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
        return found

    for ours, theirs in zip(shown(tracejit), shown(torch)):
        assert str(ours).replace("tracejit", "torch") == str(theirs)


@pytest.mark.oracle
def test_lists_print_what_is_alike_once():
    torch = pytest.importorskip("torch")

    def text(library):
        linear = library.nn.Linear
        inner = library.nn.ModuleList([library.nn.ReLU()] * 2)
        lists = [
            [],
            [linear(1, 2)],
            [linear(1, 2)] * 2,
            [linear(1, 2)] * 3 + [linear(2, 2)] * 2,
            [linear(1, 2), inner, linear(1, 2)],
        ]
        return [repr(library.nn.ModuleList(modules)) for modules in lists]

    assert text(tracejit) == text(torch)


def test_sequentials_are_joined_and_repeated():
    first, second = nn.Sequential(nn.ReLU()), nn.Sequential(nn.Tanh(), nn.Sigmoid())
    both = first + second
    assert [*both] == [*first, *second] and type(both) is nn.Sequential
    assert [*(first * 3)] == [*(3 * first)] == [first[0]] * 3
    kept = first
    first += second
    first *= 2
    assert first is kept and [*first] == [*both, *both] and list(first._modules) == list("012345")
    assert first(tracejit.ones(1)).tolist() == both(both(tracejit.ones(1))).tolist()
    for wrong, kind, text in ((lambda: first + 1, ValueError, "only objects of Sequential class"),
                              (lambda: first * 1.5, TypeError, "unsupported operand type"),
                              (lambda: first * 0, ValueError, "Non-positive multiplication")):
        with pytest.raises(kind, match=text):
            wrong()


@pytest.mark.parametrize(("index", "module", "kind"), [
    (-3, nn.ReLU(), IndexError), (3, nn.ReLU(), IndexError), (0, "relu", AssertionError)])
def test_nothing_is_inserted_where_it_does_not_fit(index, module, kind):
    model = nn.Sequential(nn.Tanh(), nn.Tanh())
    with pytest.raises(kind):
        model.insert(index, module)
    assert len(model) == 2
    assert isinstance(model.insert(-1, nn.ReLU())[1], nn.ReLU)
    assert isinstance(model.insert(3, nn.ReLU())[3], nn.ReLU)


def test_unflatten_takes_whole_sizes():
    with pytest.raises(TypeError, match="found element of type float at pos 1"):
        nn.Unflatten(1, (2, 5.0))
    assert nn.Unflatten(1, (2, -1))(tracejit.ones(3, 4)).shape == (3, 2, 2)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["ModuleList", "ModuleDict", "ParameterList", "ParameterDict"])
def test_what_a_subclass_has_of_its_own_is_asked_for_contents_alone(name):
    torch = pytest.importorskip("torch")

    def calls(library):
        seen = []
        kind = getattr(library.nn, name)

        class Watched(kind):
            def update(self, *given):
                seen.append("update")
                return kind.update(self, *given)

            def extend(self, given):
                seen.append("extend")
                return kind.extend(self, given)

        module = library.nn.Identity() if "Module" in name else library.ones(1)
        for given in ((), (None,), ({} if "Dict" in name else [],),
                      ({"a": module} if "Dict" in name else [module],)):
            seen.append(len(Watched(*given)))
        return seen

    assert calls(tracejit) == calls(torch)
