"""Tensors that get another shape in place: what is seen of them, their views and their gradients,
is what PyTorch shows."""

import numpy as np
import pytest

import tracejit


def weights(library, *shape):
    return library.arange(float(np.prod(shape))).reshape(shape)


def of_a_result(library, leaf):
    y = leaf * 2
    y.t_()
    y.mul_(3)
    return y, (y * weights(library, 3, 2)).sum()


def of_a_view(library, leaf):
    y = leaf * 2
    row = y[0]
    row.unsqueeze_(0)
    row.mul_(3)
    return y, row, (y * weights(library, 2, 3)).sum()


def with_a_view_of_it(library, leaf):
    y = leaf * 2
    row = y[0]
    y.transpose_(0, 1)
    row.mul_(5)
    y.mul_(2)
    return y, row, (y * weights(library, 3, 2)).sum()


def with_a_view_of_a_view(library, leaf):
    y = leaf * 2
    row = y[1]
    part = row[1:]
    row.unsqueeze_(0)
    part.mul_(5)
    return y, row, part, (y * weights(library, 2, 3)).sum()


def in_no_grad(library, leaf):
    with library.no_grad():
        other = leaf.clone()
        other.squeeze_().swapaxes_(0, 1).unsqueeze_(-1).squeeze_(-1)
    return other, (leaf * leaf).sum()


def strided(library, leaf):
    y = leaf * 2
    y.as_strided_((2, 2), (3, 1), 1)
    return y, (y * weights(library, 2, 2)).sum()


FUNCTIONS = (of_a_result, of_a_view, with_a_view_of_it, with_a_view_of_a_view, in_no_grad, strided)


def shown(library, function):
    leaf = library.arange(6.0).reshape(2, 3).requires_grad_()
    *seen, loss = function(library, leaf)
    loss.backward()
    return [(x.detach().numpy().tolist(), tuple(x.shape), x.stride(), x.requires_grad)
            for x in seen] + [leaf.grad.numpy().tolist()]


@pytest.mark.oracle
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_and_gradients_are_pytorchs(function):
    torch = pytest.importorskip("torch")
    assert shown(tracejit, function) == shown(torch, function)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_captured_calls_show_the_same(function):
    captured = tracejit.script(lambda leaf: function(tracejit, leaf))
    for _ in range(2):
        assert shown(tracejit, lambda library, leaf: captured(leaf)) == shown(tracejit, function)


def test_the_callers_tensor_changes_and_the_break_says_why():
    @tracejit.script
    def wide(x):
        x.unsqueeze_(0)
        return x + 1

    for ndim in (2, 3):
        x = tracejit.ones(*(2,) * (ndim - 1))
        assert wide(x).shape == x.shape == (1, *(2,) * (ndim - 1))
        assert x._version == 1
    reason = "the function changes the shape of a tensor in place"
    assert [b.reason for b in wide.report().breaks][0] == reason


def test_a_saved_tensor_that_changed_is_noticed():
    x = tracejit.ones(2, 3, requires_grad=True)
    y = x.exp()
    y.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("call, error, text", [
    (lambda x: x.requires_grad_().t_(), RuntimeError, "a leaf Variable that requires grad is"),
    (lambda x: x.requires_grad_()[0].unsqueeze_(0), RuntimeError, "a view of a leaf Variable"),
    (lambda x: x.unsqueeze(0).t_(), RuntimeError, r"t_\(\) expects a tensor with <= 2 dimensions"),
    (lambda x: x.unsqueeze_(7), IndexError, "Dimension out of range"),
    (lambda x: x.requires_grad_().resize_(2), RuntimeError, "cannot resize variables that require"),
    (lambda x: x.resize(4), RuntimeError, r"requested resize to 4 \(4 elements in total\)"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_errors_leave_the_tensor_alone(call, error, text):
    x = tracejit.ones(2, 3)
    with pytest.raises(error, match=text):
        call(x)
    assert x.shape == (2, 3) and x._version == 0


def test_resizing():
    x = tracejit.arange(6.0)
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_((2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.resize_(8).tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    assert x.resize_as_(tracejit.ones(1, 2)).tolist() == [[0, 1]]
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x.resize(2, 1).tolist() == [[0], [1]]


@pytest.mark.parametrize("share, text", [
    (lambda x: x.numpy(), "storage that is not resizable"),
    (lambda x: x[:1], "resize a clone of it"),
])  # fmt: skip
def test_shared_memory_does_not_grow(share, text):
    x = tracejit.zeros(3) + 1
    other = share(x)
    with pytest.raises(RuntimeError, match=text):
        x.resize_(9)
    assert x.shape == (3,) and other[0] == 1


def test_new():
    x = tracejit.ones(2, dtype=tracejit.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new().shape == (0,)
    assert x.new([1, 2]).dtype is tracejit.float64
    assert x.new(tracejit.Size([4])).shape == (4,)
    assert tracejit.script(lambda x: x.new(2, 3).fill_(1) + 1)(x).tolist() == [[2] * 3] * 2


def test_results_are_written_to_empty_tensors_while_a_call_is_recorded():
    def largest(x, norms):
        rows = x.abs().unsqueeze_(0)  # what is known of tensors ends here
        places = norms.new().long()
        tracejit.max(rows, dim=0, out=(norms, places))
        total = tracejit.empty(0)
        tracejit.add(norms, places, out=total)
        return norms, places, total

    captured = tracejit.script(largest)
    for _ in range(3):
        found = captured(-tracejit.ones(3, 2), tracejit.zeros(3, 2))
        plain = largest(-tracejit.ones(3, 2), tracejit.zeros(3, 2))
        assert [x.tolist() for x in found] == [x.tolist() for x in plain]
