"""Views share memory, writes through them arrive, and sizes are asked no more than needed."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit
import tracejit.nn.functional as F
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.movement import reshaped_index
from tracejit.core.ops.record import REGISTRY, op_named
from tracejit.core.ops.types import TensorType, float32, int64
from tracejit.jit.ir.graph import Graph

VIEWS = [
    ("reshape", {"shape": (6, 4)}),
    ("permute", {"dims": (2, 0, 1)}),
    ("unsqueeze", {"dim": 1}),
    ("squeeze", {"dims": ()}),
    ("slice", {"dim": 1, "start": 1, "stop": 3, "step": 1}),
    ("slice", {"dim": 2, "start": 0, "stop": 4, "step": 3}),
    ("select", {"dim": 0, "index": 1}),
    ("diagonal", {"offset": 1, "dim1": 1, "dim2": 2}),
    ("diagonal", {"offset": -1, "dim1": 2, "dim2": 0}),
    ("as_strided", {"size": (3, 2), "stride": (5, 2), "offset": 3}),
]


def counted(*shape):
    return Tensor.of_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape).copy())


@pytest.mark.parametrize("name, attributes", VIEWS)
def test_the_inverse_of_a_view_is_a_write_through_it(name, attributes):
    base = counted(2, 3, 4)
    view = op_named(name)(base, **attributes)
    assert np.shares_memory(view.numpy(), base.numpy())
    source = counted(*view.shape) + 100
    whole = REGISTRY[name].view_inverse(base, source, **attributes)
    assert np.array_equal(base.numpy(), counted(2, 3, 4).numpy())
    view.copy_(source)
    assert np.array_equal(base.numpy(), whole.numpy())


def test_every_view_op_has_an_inverse_or_refuses():
    views = {op.name for op in REGISTRY.values() if op.views}
    assert views <= {op.name for op in REGISTRY.values() if op.view_inverse}
    assert {name for name, _ in VIEWS} | {"expand"} <= views
    base = counted(1, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        REGISTRY["expand"].view_inverse(base, counted(2, 3), shape=(2, 3))
    assert REGISTRY["expand"].view_inverse(base, counted(1, 1, 3), shape=(1, 1, 3)).shape == (1, 3)


def test_a_part_at_a_position_that_a_tensor_holds_is_a_view_of_it():
    base, place = counted(2, 3, 4), Tensor.of_array(np.array(2))
    view = op_named("select_at")(base, place, dim=1)
    assert np.shares_memory(view.numpy(), base.numpy())
    whole = REGISTRY["select_at"].view_inverse(base, counted(2, 4) + 100, place, dim=1)
    view.copy_(counted(2, 4) + 100)
    assert np.array_equal(base.numpy(), whole.numpy())


def test_copies_do_not_share_memory():
    x = counted(3, 4)
    for y in (x.flip(0), x.t().contiguous(), x.t().reshape(-1), x.repeat(1, 1), x[[0]], x.tril()):
        assert not np.shares_memory(x.numpy(), y.numpy())
    assert x.contiguous() is x
    assert np.shares_memory(x.numpy(), x[...].numpy()) and x[...] is not x


def graph_input(graph, *hints, kind=float32):
    return graph.input(TensorType(kind, tuple(graph.scope.symbol(h) for h in hints)))


FREE = [
    lambda x: x.sum(),
    lambda x: x.mean(1),
    lambda x: x.reshape(-1),
    lambda x: x.flatten(),
    lambda x: x.transpose(0, 1).reshape(x.shape[1] * x.shape[0]),
    lambda x: x.t().unsqueeze(0).squeeze((0,)),
    lambda x: x[:, None, ::2],
    lambda x: x.flip(1).roll(1, 0).tril(),
    lambda x: x.repeat(2, 3),
    lambda x: x.unsqueeze(1).expand(-1, 5, -1),
    lambda x: x - x.mean(-1, keepdim=True),
    lambda x: x.cumsum(0),
    lambda x: x.var(1, correction=0),
    lambda x: x.norm(dim=1),
]


@pytest.mark.parametrize("number", range(len(FREE)))
def test_no_guard_where_every_size_will_do(number):
    graph = Graph()
    FREE[number](graph_input(graph, 3, 4))
    assert [str(g) for g in graph.scope.guards] == []


GUARDED = [
    (lambda x: x[1:], ["s0 >= 1"]),
    (lambda x: x.view(x.shape[0], -1, 1), ["s0 != 0"]),  # of no rows, -1 could be anything
    (lambda x: x[0], ["s0 > 0"]),
    (lambda x: x.amax(1), ["s1 != 0"]),
    (lambda x: x.squeeze(), ["s0 != 1", "s1 != 1"]),
    (lambda x: x.reshape(2, -1), ["(s0*s1 % 2) == 0", "2*(s0*s1 // 2) == s0*s1"]),
    (lambda x: x.reshape(12), ["s0*s1 == 12"]),
    (lambda x: x.var(1), ["s1 > 1"]),
]


@pytest.mark.parametrize("number", range(len(GUARDED)))
def test_a_guard_names_what_was_asked(number):
    use, guards = GUARDED[number]
    graph = Graph()
    use(graph_input(graph, 3, 4))
    assert [str(g) for g in graph.scope.guards] == guards


def test_shapes_stay_symbolic():
    graph = Graph()
    x = graph_input(graph, 3, 4)
    index = graph_input(graph, 5, kind=int64)
    assert str(x.reshape(-1).shape) == "(s0*s1,)"
    assert str(x[index].shape) == "(s2, s1)"
    assert str(x.repeat(2, 3).shape) == "(2*s0, 3*s1)"
    assert str(x.view(x.shape[0], -1, 1).shape) == "(s0, s1, 1)"
    assert [str(p.shape) for p in (x.reshape(-1, 1) * x.new_ones(6)).chunk(3, dim=1)] == [
        "(s0*s1, 2)"
    ] * 3


@pytest.mark.parametrize("shape, operand", [
    ((6, 4), (2, 3, 4)), ((2, 3, 4), (6, 4)), ((24,), (2, 3, 4)), ((4, 6), (2, 3, 4)),
    ((2, 1, 12), (1, 2, 3, 4)), ((1,), ()), ((), (1, 1)), ((3, 8), (4, 6)),
])  # fmt: skip
def test_the_index_of_a_reshape(shape, operand):
    elements = np.arange(np.prod(shape, dtype=int)).reshape(operand)
    for index in np.ndindex(*shape):
        place = reshaped_index(index, shape, operand)
        assert elements[tuple(place)] == elements.reshape(shape)[index]


def test_a_split_dimension_needs_no_division_elsewhere():
    graph = Graph()
    s = graph.scope.symbol(5)
    place = reshaped_index([graph.scope.symbol(h, n) for h, n in ((1, "i"), (2, "j"), (3, "k"))],
                           (s, 4, 8), (s, 32))
    assert [str(p) for p in place] == ["i", "8*j + k"]


def test_an_empty_tensor_takes_part_in_a_join():
    from tracejit.core.ops.creation import zeros
    from tracejit.core.ops.joining import cat

    given = zeros(0, requires_grad=True)
    joined = cat([zeros(0), given])
    assert joined.requires_grad
    joined.sum().backward()
    assert given.grad.shape == (0,)
    assert cat([zeros(0), zeros(2, 3)]).shape == (2, 3)


def _overlapping_chunks(x):
    """Windows of four rows that overlap by two, of a sequence whose heads were moved forward."""
    x = x.transpose(1, 2).reshape(-1, x.shape[1], x.shape[3])
    x = x.view(x.size(0), x.size(1) // 4, 4, x.size(2))
    size, stride = list(x.size()), list(x.stride())
    size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
    return x.as_strided(size=size, stride=stride)


@pytest.mark.oracle
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("way", [
    lambda x: _overlapping_chunks(x.transpose(0, 1)),
    lambda x: x.permute(3, 0, 2, 1).as_strided((4, 3), (5, 2), 1),
    lambda x: x[2:].permute(3, 1, 0, 2).as_strided((4, 3), (5, 2)),
])  # fmt: skip
def test_strided_views_of_permuted_tensors_read_their_memory(way, captured):
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).standard_normal((8, 2, 2, 3)).astype(np.float32)

    def found(library, f):
        x = library.tensor(values, requires_grad=True)
        view = f(x * 1)
        (view * view).sum().backward()
        return view.detach().numpy(), x.grad.numpy()

    f = tracejit.script(way) if captured else way
    for _ in range(2):
        for ours, theirs in zip(found(tracejit, f), found(torch, way)):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_strided_views_do_not_reach_around_their_tensor():
    x = tracejit.ones(3, 4).t()[1:]
    with pytest.raises(RuntimeError, match="expected a tensor without gaps"):
        x.as_strided((2,), (1,))


@pytest.mark.parametrize("lay", [lambda x: x, lambda x: x.transpose(-1, -2)], ids=["", "moved"])
def test_too_many_dimensions_are_told_in_one_way(lay):
    x = lay(tracejit.ones((1,) * 62 + (2, 3)))
    with pytest.raises(ValueError, match="maximum supported dimension"):
        x.unsqueeze(0)


@pytest.mark.parametrize("moved", [
    lambda x: x[..., ::2].ravel(),
    lambda x: F.pixel_shuffle(x, 1), lambda x: F.pixel_shuffle(x.view(1, 16, 1, 1), 2),
    lambda x: F.pixel_unshuffle(x, 1), lambda x: F.pixel_unshuffle(x, 2),
    lambda x: F.channel_shuffle(x, 1), lambda x: F.channel_shuffle(x, 4),
])  # fmt: skip
def test_elements_in_another_order_are_copies_though_they_could_be_views(moved):
    for call in (moved, tracejit.script(moved, mode="graph")):
        x = tracejit.zeros(1, 4, 2, 2)
        call(x).add_(1)
        assert x.sum() == 0


def test_ravel_of_contiguous_elements_is_a_view():
    x = tracejit.zeros(3)
    flat = x.ravel()
    flat.add_(1)
    assert flat is not x and x.sum() == 3


@pytest.mark.parametrize("count", [2, 3, 150])
def test_many_pieces_are_one_kernel(count):
    pieces = [tracejit.arange(3.0) + k for k in range(count)]
    f, g = tracejit.script(lambda *xs: tracejit.stack(xs) * 2), tracejit.script(
        lambda *xs: tracejit.cat(xs, 0) * 2)
    assert tracejit.equal(f(*pieces), tracejit.stack(pieces) * 2)
    assert tracejit.equal(g(*pieces), tracejit.cat(pieces) * 2)
    assert f.report().breaks == g.report().breaks == []
