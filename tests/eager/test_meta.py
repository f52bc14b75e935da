"""Tensors without values, where no other library is needed to say what is right."""

import pytest

import tracejit as tj

META = tj.device("meta")


def test_a_model_larger_than_memory_has_shapes():
    with META:
        layers = tj.nn.Sequential(*[tj.nn.Linear(1 << 17, 1 << 17) for _ in range(20)])
    assert sum(p.numel() for p in layers.parameters()) == 20 * ((1 << 34) + (1 << 17))
    assert layers(tj.empty(3, 1 << 17, device=META)).shape == (3, 1 << 17)


def test_nothing_reads_what_is_not_there():
    x = tj.empty(4, device=META)
    asks = [x.tolist, x.cpu, lambda: x.untyped_storage().tolist(), lambda: tj.ones(4).copy_(x),
            lambda: x.__dlpack__(), x.nonzero, lambda: tj.ones(4).add_(x), lambda: x[x > 0],
            lambda: x.sum().item(), lambda: bool(x.any()), lambda: tj.equal(x, x),
            lambda: tj.unique(x), lambda: x.untyped_storage()[0], x.numpy]
    for ask in asks:
        with pytest.raises((RuntimeError, TypeError, NotImplementedError),
                           match="meta|no data"):
            ask()


def test_what_depends_on_values_is_named():
    with pytest.raises(NotImplementedError, match="nonzero: the sizes of its result depend"):
        tj.ones(3, device="meta").nonzero()


@pytest.mark.parametrize("capture", [tj.script, tj.trace])
def test_captured_calls_compute_shapes_as_plain_ones_do(capture):
    def forward(net, x):
        y = net(x) * 2
        y.add_(1)
        z = tj.zeros(y.shape, device="meta")
        return y, z.t()[1:], x.shape[0] * 2

    captured = capture(forward)
    nets = [tj.nn.Linear(4, 8), tj.nn.Linear(4, 8, device="meta")]
    for n in (3, 2, 3):
        for net in nets:
            x = tj.empty(n, 4, device=net.weight.device)
            got, want = captured(net, x), forward(net, x)
            assert [repr(t) for t in got[1:]] == [repr(t) for t in want[1:]]
            assert (got[0].shape, got[0].device) == (want[0].shape, want[0].device)
            assert got[0].grad_fn is not None
            got[0].sum().backward()
            assert net.weight.grad.device == net.weight.device
    assert "of the meta device" in str(captured.report())


@pytest.mark.parametrize("capture", [tj.script, tj.trace])
def test_a_branch_on_what_is_not_there_raises(capture):
    @capture
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x

    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
            f(tj.ones(2, device=META))
    assert f(tj.ones(2)).tolist() == [2, 2]


def test_sizes_alone_make_no_break():
    f = tj.script(lambda x: x.shape[0] * 2)
    assert [f(tj.empty(n, 2, device=META)) for n in (3, 5, 0)] == [6, 10, 0]
    assert f.report().breaks == []
