"""Copies of views, questions about tensors, and products of reflections: names of PyTorch's that
are written with others."""

import pytest

import tracejit

x = tracejit.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(("name", "arguments"), [
    ("permute", (1, 0)), ("t", ()), ("expand", (2, 2, 3)), ("select", (0, 1)), ("view", (3, 2)),
    ("diagonal", ()), ("narrow", (1, 1, 2)), ("squeeze", ()), ("unsqueeze", (0,)), ("alias", ()),
    ("transpose", (0, 1)), ("detach", ()), ("unfold", (1, 2, 1)),
])  # fmt: skip
def test_a_copy_of_a_view_is_no_view(name, arguments):
    if name in ("permute", "expand", "view"):
        arguments = (arguments,)
    copied = getattr(tracejit, f"{name}_copy")(x, *arguments)
    shown = x if name == "alias" else getattr(x, name)(*arguments)
    assert tracejit.equal(copied, shown) and copied.data_ptr() != shown.data_ptr()


def test_copies_of_several_views():
    for rows in (tracejit.split_copy(x, 1), tracejit.unbind_copy(x),
                 tracejit.split_with_sizes_copy(x, (1, 1))):  # fmt: skip
        assert all(tracejit.equal(a.reshape(3), b) for a, b in zip(rows, x))
    assert tracejit.slice_copy(x, 1, 0, None, 2).tolist() == [[0, 2], [3, 5]]


def test_questions():
    assert tracejit.is_nonzero(tracejit.tensor([2])) and tracejit.is_signed(x)
    assert not tracejit.is_signed(tracejit.tensor([1], dtype=tracejit.uint8))
    assert tracejit.is_same_size(x, x + 1) and not tracejit.is_same_size(x, x[0])
    assert tracejit.get_device(x) == -1 and tracejit.typename(x) == x.type()
    assert tracejit.typename([]) == "list"
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        tracejit.is_nonzero(x)


def test_reflections():
    v, tau = tracejit.tensor([[9.0], [1.0], [2.0]]), tracejit.tensor([1 / 3])
    q = tracejit.linalg.householder_product(v, tau)
    assert tracejit.allclose(q.mT @ q, tracejit.ones(1, 1))
    other = tracejit.eye(3)
    whole = tracejit.ormqr(v, tau, other)
    assert tracejit.allclose(whole[:, :1], q)
    turned = tracejit.ormqr(v, tau, other, left=False, transpose=True)
    assert tracejit.allclose(turned, whole.mT)
    with pytest.raises(RuntimeError, match="must be equal to"):
        tracejit.ormqr(v, tau, tracejit.eye(4))


def test_principal_components():
    left, values, right = tracejit.pca_lowrank(x, q=1)
    assert tracejit.allclose((left * values) @ right.mT, x - x.mean(0), atol=1e-5)
    with pytest.raises(ValueError, match="not greater than"):
        tracejit.svd_lowrank(x, q=3)


def test_ignored_targets_have_no_gradient():
    scores = tracejit.zeros(2, 3, requires_grad=True)
    loss = tracejit.nn.functional.cross_entropy(scores, tracejit.tensor([-100, -100]))
    loss.backward()
    assert loss.isnan() and scores.grad.tolist() == [[0.0] * 3] * 2
