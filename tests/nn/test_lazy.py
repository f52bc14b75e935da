"""Lazy modules become ordinary ones at their first call, as PyTorch's do."""

import copy
import pickle

import pytest

import tracejit
from tracejit import nn

CASES = [
    ("LazyLinear", (3,), {}, (2, 5)),
    ("LazyLinear", (3,), {"bias": False}, (5,)),
    ("LazyConv1d", (4, 2), {}, (2, 3, 5)),
    ("LazyConv2d", (4, 3), {"bias": False, "padding": "same"}, (1, 2, 5, 5)),
    ("LazyConv3d", (4, (1, 2, 2)), {}, (2, 2, 3, 3)),
    ("LazyConvTranspose1d", (4, 2), {"groups": 2}, (2, 4, 3)),
    ("LazyConvTranspose2d", (3, 2), {"stride": 2, "output_padding": 1}, (1, 2, 3, 3)),
    ("LazyConvTranspose3d", (2, 2), {}, (1, 2, 2, 2, 2)),
]


def seen(library, name, args, options, shape):
    """What a program sees of a lazy layer, before and after its first call."""
    layer = getattr(library.nn, name)(*args, **options)
    before = [repr(layer), repr(layer.weight), sorted(layer.state_dict())]
    layer = pickle.loads(pickle.dumps(copy.deepcopy(layer))).double()
    optimizer = library.optim.SGD(layer.parameters(), lr=0.1)
    x = library.ones(*shape, dtype=library.float64)
    layer(x).sum().backward()
    was = [p.detach().clone() for p in layer.parameters()]
    optimizer.step()
    moved = [bool((a != b).any()) for a, b in zip(was, layer.parameters())]
    shapes = [(k, tuple(v.shape), str(v.dtype).partition(".")[2])
              for k, v in layer.state_dict().items()]
    kinds = [type(layer).__name__, type(layer.weight).__name__, layer.weight.requires_grad]
    return before, repr(layer), shapes, kinds, moved, tuple(layer(x).shape)


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_lazy_layer_becomes_its_own(case):
    torch = pytest.importorskip("torch")
    assert seen(tracejit, *case) == seen(torch, *case)


def test_loading_gives_shapes():
    lazy, plain = nn.LazyLinear(3), nn.Linear(4, 3)
    lazy.load_state_dict(plain.state_dict())
    assert tuple(lazy.weight.shape) == (3, 4)
    x = tracejit.rand(2, 4)
    assert lazy(x).tolist() == plain(x).tolist()
    assert repr(lazy) == repr(plain) and type(lazy) is nn.Linear


def test_what_has_no_shape_says_so():
    lazy = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        nn.Linear(4, 3).load_state_dict(lazy.state_dict())
    with pytest.raises(RuntimeError, match="uninitialized"):
        lazy.weight.size()
    assert lazy.has_uninitialized_params()


def test_buffers_and_modules_of_ones_own():
    class Centered(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", nn.UninitializedBuffer())

        def initialize_parameters(self, x):
            if self.has_uninitialized_params():
                self.mean.materialize(x.shape[1:])
                self.mean.fill_(2.0)

        def forward(self, x):
            return x - self.mean

    module = Centered().double()
    assert module.mean.dtype is tracejit.float64
    assert module(tracejit.ones(2, 3, dtype=tracejit.float64)).tolist() == [[-1.0] * 3] * 2
    assert type(module) is Centered and not module._forward_pre_hooks

    class Forgetful(Centered):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="module Forgetful has not been fully initialized"):
        Forgetful()(tracejit.ones(2, 3))


def test_a_captured_lazy_module_settles():
    net = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2))
    compiled = tracejit.script(net)
    x = tracejit.rand(5, 4)
    first = compiled(x)
    for _ in range(3):
        assert tracejit.allclose(compiled(x), first) and tracejit.allclose(net(x), first)
    assert compiled.report().cache_misses == 2
