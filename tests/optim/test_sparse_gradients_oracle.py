"""Sparse gradients of embeddings: what they are, how they add up, and what optimizers make of them,
as in PyTorch, plainly and captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit

pytestmark = pytest.mark.oracle


def table(t: Any) -> Any:
    return t.arange(12.0).reshape(6, 2).requires_grad_()


def shown(x: Any) -> Any:
    """What there is to see of a gradient, but how often a position is there before it is coalesced:
    PyTorch adds up some of them where it adds two gradients."""
    if x is None or not x.is_sparse:
        return None if x is None else x.tolist()
    kind = (x.is_coalesced(), x.sparse_dim(), x.dense_dim(), tuple(x.shape), x.type())
    once = x.coalesce()
    parts = once._nnz(), once.indices().tolist(), once.values().tolist()
    return (*kind[:-1], kind[-1].replace("torch", "tracejit"), parts, x.to_dense().tolist())


def gradients(t: Any) -> list:
    """Gradients of tables by several functions, and how they add up."""
    f, w, found = t.nn.functional, table(t), []
    at, factors = t.tensor([[1, 3], [1, 5]]), t.arange(8.0).reshape(2, 2, 2)

    def after(run: Any, clear: bool = True) -> None:
        if clear:
            w.grad = None
        try:
            run()
        except (RuntimeError, ValueError) as error:
            found.append(str(error).replace("torch", "tracejit"))
        found.append(shown(w.grad))

    def embedded() -> None:
        (f.embedding(at, w, sparse=True) * factors).sum().backward()

    after(embedded)
    found += [w.grad._nnz(), w.grad._indices().tolist(), w.grad._values().tolist()]
    after(embedded, clear=False)
    first = w.grad
    after(embedded, clear=False)
    found.append(w.grad is first)
    w.grad = w.grad.coalesce()
    found.append(shown(w.grad))
    after((w * 2).sum().backward, clear=False)
    after(embedded, clear=False)
    after((f.embedding(at, w, padding_idx=1, sparse=True) * factors).sum().backward)
    after((f.embedding(at, w, padding_idx=-1, sparse=True) * factors).sum().backward)
    after(f.embedding(at, w, scale_grad_by_freq=True, sparse=True).sum().backward)
    after(f.embedding(at, w * 2, sparse=True).sum().backward)
    after(f.embedding(at, w / 2 + w, sparse=True).sum().backward)
    after((f.embedding(at, w, sparse=True).sum() + (w * w).sum()).backward)
    after((f.embedding(at, w, sparse=True) + f.embedding(at + 0, w, sparse=True)).sum().backward)
    flat, starts = at.reshape(-1), t.tensor([0, 1])
    for mode in ("sum", "mean", "max"):
        after(lambda mode=mode: f.embedding_bag(at, w, mode=mode, sparse=True).sum().backward())
    after(f.embedding_bag(flat, w, starts, mode="sum", sparse=True,
                          per_sample_weights=t.arange(4.0)).sum().backward)  # fmt: skip
    after(f.embedding_bag(flat, w, starts, sparse=True, padding_idx=1).sum().backward)
    handle = w.register_hook(lambda g: g * 3)
    after(embedded)
    handle.remove()
    handle = w.register_hook(lambda g: g.to_dense())
    after(embedded)
    handle.remove()
    (grad,) = t.autograd.grad(f.embedding(at, w, sparse=True).sum(), w)
    found += [shown(grad), shown(-grad.coalesce()), shown(grad * 2), shown(grad / 4)]
    w.grad = grad
    t.optim.SGD([w]).zero_grad(set_to_none=False)
    return [*found, shown(w.grad)]


def test_sparse_gradients_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for mine, theirs in zip(gradients(tracejit), gradients(torch), strict=True):
        assert mine == theirs


def test_second_derivatives_go_through_the_rows_of_a_gradient() -> None:
    w, at = table(tracejit), tracejit.tensor([1, 3, 1])
    y = tracejit.nn.functional.embedding(at, w, sparse=True)
    (grad,) = tracejit.autograd.grad((y**3).sum(), w, create_graph=True)
    assert grad.is_sparse and grad.requires_grad
    (second,) = tracejit.autograd.grad(grad.to_dense().sum(), w)
    dense = tracejit.zeros(6, 2).index_add(0, at, 6 * y.detach())
    assert second.is_sparse and second.to_dense().equal(dense)


def test_rows_of_a_gradient_that_the_caller_gave_are_copied() -> None:
    w, given = table(tracejit), tracejit.ones(3, 2)
    tracejit.nn.functional.embedding(tracejit.tensor([1, 3, 1]), w, sparse=True).backward(given)
    given.zero_()
    assert w.grad.to_dense().sum() == 6


OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1}),
    ("SparseAdam", {"lr": 0.1}),
    ("SparseAdam", {"lr": 0.1, "maximize": True, "betas": (0.8, 0.9)}),
    *((name, {}) for name in ("Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam",
                              "Rprop", "ASGD", "Adafactor", "Muon")),
]  # fmt: skip
KINDS = ["plain", "step", "model"]


def trained(t: Any, name: str, options: dict, bag: bool, kind: str) -> Any:
    rng = np.random.default_rng(0)
    start = t.from_numpy(rng.standard_normal((7, 3)).astype(np.float32))
    made = t.nn.EmbeddingBag if bag else t.nn.Embedding
    layer = made(7, 3, sparse=True, _weight=start.clone())
    optimizer = getattr(t.optim, name)(layer.parameters(), **options)

    def loss_of(at: Any) -> Any:
        return (layer(at) ** 2).sum() + layer(at[:1]).sum()

    run = tracejit.script(loss_of) if kind == "model" else loss_of

    def step(at: Any) -> Any:
        optimizer.zero_grad()
        loss = run(at)
        loss.backward()
        optimizer.step()
        return loss

    call = tracejit.script(step) if kind == "step" else step
    losses = []
    for k in range(6):
        at = t.from_numpy(rng.integers(0, 7, (2, 3 + k % 2)))
        losses.append(call(at).item())
    captured = {"plain": None, "step": call, "model": run}[kind]
    state = optimizer.state_dict()["state"].get(0, {})
    return losses, layer.weight.detach().numpy(), shown(layer.weight.grad), sorted(state), captured


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers_step_as_in_pytorch(name: str, options: dict, bag: bool, kind: str) -> None:
    torch = pytest.importorskip("torch")
    try:
        losses, weight, grad, state, _ = trained(torch, name, options, bag, "plain")
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as mine:
            trained(tracejit, name, options, bag, kind)
        assert str(mine.value) == str(error)
        return
    *found, captured = trained(tracejit, name, options, bag, kind)
    np.testing.assert_allclose(found[0], losses, rtol=1e-5)
    np.testing.assert_allclose(found[1], weight, rtol=1e-4, atol=1e-6)
    assert found[2][0] == grad[0] and found[3] == state
    np.testing.assert_allclose(found[2][-1], grad[-1], rtol=1e-4, atol=1e-6)
    if kind == "step":
        assert captured.report().compiles == 1 and not captured.report().breaks
    elif kind == "model":
        assert "gives a sparse gradient" in str(captured.report().breaks[0])


def test_dense_gradients_are_refused_by_sparse_adam() -> None:
    optimizer = tracejit.optim.SparseAdam([w := table(tracejit)])
    w.sum().backward()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()


def test_a_step_writes_the_rows_that_were_read_in_the_memory_there_is() -> None:
    layer = tracejit.nn.Embedding(1000, 4, sparse=True)
    before, version = layer.weight.data_ptr(), layer.weight._version
    kept = layer.weight.detach().clone()
    layer(tracejit.tensor([3, 7, 3])).sum().backward()
    tracejit.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer.weight.data_ptr() == before and layer.weight._version == version + 1
    changed = (layer.weight != kept).any(1).nonzero().flatten()
    assert changed.tolist() == [3, 7]


def test_a_leaf_is_not_written_on_the_tape() -> None:
    w = table(tracejit)
    tracejit.nn.functional.embedding(tracejit.tensor([1]), w, sparse=True).sum().backward()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        w.add_(w.grad)
    x = tracejit.zeros(6, 2) + w
    x.add_(w.grad, alpha=2)
    x.sum().backward()
    assert x.tolist()[1] == [4.0, 5.0] and w.grad.tolist()[1] == [2.0, 2.0]


# -- captured --------------------------------------------------------------------------------------
def accumulated(layer: Any, at: Any, flag: Any) -> Any:
    layer(at).sum().backward()
    return layer.weight.grad


def in_a_branch(layer: Any, at: Any, flag: Any) -> Any:
    if flag.sum() > 0:
        y = (layer(at) * 2).sum()
    else:
        y = (layer(at + 1) * 3).sum()
    y.backward()
    return y


def in_a_loop(layer: Any, at: Any, flag: Any) -> Any:
    total = tracejit.zeros(())
    for row in at.repeat(12):
        total = total + layer(row).pow(2).sum()
    total.backward()
    return total


def returned(layer: Any, at: Any, flag: Any) -> Any:
    return tracejit.autograd.grad(layer(at).pow(2).sum(), layer.weight)[0] * 2


def coalesced(layer: Any, at: Any, flag: Any) -> Any:
    grad = tracejit.autograd.grad(layer(at).pow(2).sum(), layer.weight)[0].coalesce()
    return grad.values() * 2


def read(layer: Any, at: Any, flag: Any) -> Any:
    grad = layer.weight.grad
    if grad is None:
        return at
    return grad._values() * 2 if grad.is_sparse else grad * 3


def with_a_function(layer: Any, at: Any, flag: Any) -> Any:
    class Twice(tracejit.autograd.Function):
        @staticmethod
        def forward(ctx: Any, w: Any, at: Any) -> Any:
            ctx.at = at
            return w[at] * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return tracejit.sparse_coo_tensor(ctx.at.unsqueeze(0), grad * 2, (5, 2)), None

    y = Twice.apply(layer.weight, at).sum()
    y.backward()
    return y


PROGRAMS = [accumulated, in_a_branch, in_a_loop, returned, coalesced, read, with_a_function]


@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("clear", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_captured_programs_give_what_plain_ones_give(program: Any, clear: bool, mode: str) -> None:
    def run(function: Any) -> list:
        start = tracejit.arange(10.0).reshape(5, 2)
        layer, seen = tracejit.nn.Embedding(5, 2, sparse=True, _weight=start), []
        for k in range(5):
            if clear:
                layer.weight.grad = None
            flag = tracejit.tensor([1.0 - 2 * (k % 2)])
            found = function(layer, tracejit.tensor([k % 3, 1, 3][: 2 + k // 2]), flag)
            seen += [shown(found), shown(layer.weight.grad), found is layer.weight.grad]
            if k == 2:  # what is there now is dense
                layer.weight.grad = None
                layer.weight.sum().backward()
        return seen

    assert run(tracejit.script(program, mode=mode)) == run(program)
