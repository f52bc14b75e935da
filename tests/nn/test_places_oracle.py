"""Layers and their helpers under the places where PyTorch has them."""

from importlib import import_module
from inspect import isclass

import pytest

import tracejit

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

# Private to PyTorch's own files: no program names it.
OWN = {"_ConvTransposeMixin"}
# Not here at all.
ABSENT = {"Container", "LinearCrossEntropyLoss"}


def places(library, name):
    return import_module(f"{library.__name__}.nn.modules.{name}")


@pytest.mark.parametrize("name", sorted(tracejit.nn.modules.PLACES))
def test_a_place_has_the_layers_that_pytorch_has_there(name):
    mine, theirs = places(tracejit, name), places(torch, name)
    for key, found in vars(theirs).items():
        layer = isclass(found) and issubclass(found, torch.nn.Module)
        if not layer or found.__module__ != theirs.__name__ or key in OWN | ABSENT or "Lazy" in key:
            continue
        bases = {base.__name__ for base in found.__mro__ if base.__module__ == theirs.__name__}
        assert bases <= {base.__name__ for base in getattr(mine, key).__mro__} | OWN, key


def test_every_layer_is_in_modules():
    for name, found in vars(torch.nn.modules).items():
        layer = isclass(found) and issubclass(found, torch.nn.Module) and name not in ABSENT
        if layer:
            assert getattr(tracejit.nn.modules, name) is getattr(tracejit.nn, name)
    assert set(tracejit.nn.modules.__all__) <= set(torch.nn.modules.__all__) | {"NLLLoss2d"}


CALLS = """
u._single(3), u._pair([1, 2]), u._triple(1), u._quadruple((1, 2))
u._reverse_repeat_tuple((1, 2), 2)
u._list_with_default([None, 3], [5, 6, 7]), u._list_with_default(3, [1])
u._list_with_default([1, 2], [5, 6])
consumed({'module.a': 1, 'b': 2, 'module.module.c': 3}, 'module.')
p('module')._addindent('a\\nb\\n\\nc', 2), p('module')._addindent('a', 2)
p('transformer')._get_activation_fn('relu').__name__
p('transformer')._get_activation_fn('tanh')
len(p('transformer')._get_clones(t.nn.Linear(1, 1), 3))
t.nn.factory_kwargs({'device': 'cpu', 'factory_kwargs': {'dtype': None}}), t.nn.factory_kwargs(None)
t.nn.factory_kwargs({'size': 1})
t.nn.factory_kwargs({'device': 'cpu', 'factory_kwargs': {'device': None}})
t.nn.init._no_grad_fill_(t.ones(1, requires_grad=True), 2), t.nn.init._no_grad_zero_(t.ones(2))
t.nn.init._no_grad_uniform_(t.ones(4), 2, 2), t.nn.init._no_grad_normal_(t.ones(2), 3, 0)
t.nn.init._no_grad_trunc_normal_(t.ones(9), 0.0, 1.0, -1.0, 1.0).abs().max() <= 1
t.nn.common_types._size_2_t, t.nn.common_types._ratio_any_t, t.nn.common_types._size_any_opt_t
[t.nn._reduction.get_enum(r) for r in ('none', 'mean', 'sum')], t.nn._reduction.get_enum('max')
[t.nn._reduction.legacy_get_enum(a, r, False) for a in (None, 0, 1) for r in (None, False, True)]
t.nn.Module.call_super_init, t.nn.Module.T_destination
t.nn.Linear(2, 1)._call_impl(t.ones(3, 2)).shape, t.nn.Flatten()._wrapped_call_impl(t.ones(1, 2))
t.nn.Module(1)
t.nn.Module(a=1)
t.nn.Conv2d(1, 1, (3, 5), padding=(1, 2))._reversed_padding_repeated_twice
t.nn.Conv2d(1, 1, (3, 5), padding='same', dilation=2)._reversed_padding_repeated_twice
p('conv')._ConvNd(2, 4, (3,), (1,), (0,), (1,), False, (0,), 2, True, 'zeros')
p('conv')._ConvTransposeNd(2, 4, (3,), (1,), (0,), (1,), True, (0,), 1, False, 'reflect')
p('module')._IncompatibleKeys(['a'], [])
called(t.nn.Linear(2, 1), {'weight': t.ones(1, 2), 'bias': t.ones(1)}, t.ones(2))
""".strip().splitlines()


def shown(library, call):
    def consumed(state, prefix):
        u.consume_prefix_in_state_dict_if_present(state, prefix)
        return state

    def p(name):
        return places(library, name)

    def called(*args):
        with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call`"):
            return library.nn.utils.stateless.functional_call(*args)

    u = p("utils")
    try:
        names = {"t": library, "u": u, "consumed": consumed, "p": p, "called": called}
        text = repr(eval(call, names))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return text.replace("tracejit.", "torch.").replace("eager.tensor.", "")


@pytest.mark.parametrize("call", CALLS)
def test_a_helper_does_what_pytorch_s_does(call):
    assert shown(tracejit, call) == shown(torch, call)


def test_the_versions_of_a_state_dict_lose_the_prefix_too():
    for library in (tracejit, torch):
        holder = library.nn.Module()
        holder.module = library.nn.Sequential(library.nn.BatchNorm1d(1))
        state = holder.state_dict()
        places(library, "utils").consume_prefix_in_state_dict_if_present(state, "module.")
        assert sorted(state._metadata) == ["", "0"]
        assert library.nn.Sequential(library.nn.BatchNorm1d(1)).load_state_dict(state)


def test_a_convolution_with_numbers_of_its_own():
    """As programs derive layers from `_ConvNd`, with PyTorch's order of arguments."""

    def layer(library):
        class Standardized(places(library, "conv")._ConvNd):
            def __init__(self, in_channels, out_channels, kernel_size):
                pair = places(library, "utils")._pair
                super().__init__(in_channels, out_channels, pair(kernel_size), pair(1), pair(1),
                                 pair(1), False, pair(0), 1, True, "circular")

            def forward(self, x):
                x = library.nn.functional.pad(x, self._reversed_padding_repeated_twice, "circular")
                weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
                return library.nn.functional.conv2d(x, weight, self.bias)

        return Standardized(2, 3, 3)

    mine, theirs = layer(tracejit), layer(torch)
    assert repr(mine) == repr(theirs)
    mine.load_state_dict({k: tracejit.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = torch.randn(1, 2, 5, 5)
    want = theirs(x).detach().numpy()
    for module in (mine, tracejit.script(mine)):
        found = module(tracejit.tensor(x.numpy())).detach().numpy()
        assert abs(found - want).max() < 1e-5


def test_the_next_class_in_order_is_initialised_where_a_module_says_so():
    def seen(library):
        class Named:
            def __init__(self, name):
                self.name = name

        class Layer(library.nn.Module, Named):
            call_super_init = True

        return Layer(name="a").name

    assert seen(tracejit) == seen(torch) == "a"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "groups": 2}])
def test_gradients_of_convolutions_by_themselves(count, options):
    sizes = (2, 4, *(5, 6, 7)[:count])
    weight_sizes = (6, 4 // options.get("groups", 1), *(3,) * count)
    x, weight = torch.randn(sizes), torch.randn(weight_sizes)
    grad = torch.randn_like(getattr(torch.nn.functional, f"conv{count}d")(x, weight, **options))

    def gradients(library, x, weight, grad):
        place = import_module(f"{library.__name__}.nn.grad")
        of_input = getattr(place, f"conv{count}d_input")
        of_weight = getattr(place, f"conv{count}d_weight")
        return (of_input(sizes, weight, grad, **options),
                of_weight(x, weight_sizes, grad, **options))  # fmt: skip

    want = gradients(torch, x, weight, grad)
    mine = [tracejit.tensor(t.numpy()) for t in (x, weight, grad)]
    for found in (gradients(tracejit, *mine), tracejit.script(gradients)(tracejit, *mine)):
        for a, b in zip(found, want):
            assert abs(a.numpy() - b.numpy()).max() < 1e-4
