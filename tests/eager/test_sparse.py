"""Sparse tensors: what they show, products with gradients, and a graph network, as PyTorch has
them, plainly and captured."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import tracejit

SHOWN = """
x
twice
twice.coalesce()
x.to_dense()
twice.to_dense()
x.coalesce().indices()
x.coalesce().values()
x.values()
x.indices()
x._indices()
x._values()
x._nnz()
x.is_coalesced()
x.is_sparse
x.t()
x.T
x.transpose(0, 1)
x.shape
x.size(0)
x.dim()
x.numel()
len(x)
x.dtype
x.device
x.layout
x.layout == t.sparse_coo, x.layout == t.sparse_csr, t.sparse_csr
(t.sparse_csc, t.sparse_bsr, t.sparse_bsc, t.jagged, t._mkldnn)
x.double()
x.cpu() is x
x.requires_grad
x.detach()
x * 2
2 * x
x / 2
x.sum()
x.numpy()
dense.to_sparse()
dense.to_sparse().is_coalesced()
t.spmm(x, dense)
t.sparse.mm(x, dense)
t.mm(x, dense)
t.matmul(x, dense)
x @ dense
x.mm(dense)
x @ dense[:, 0]
t.mv(x, dense[:, 0])
dense @ x
t.spmm(dense, x)
t.spmm(dense.t(), dense)
t.addmm(t.ones(2, 2), x, dense)
t.sparse.addmm(t.ones(2, 2), x, dense, beta=2, alpha=3)
t.sparse.sum(x)
t.spmm(x, dense[:, 0])
t.spmm(x, dense.double())
t.spmm(x, t.ones(2, 2))
t.sparse_coo_tensor(places, elements)
t.sparse_coo_tensor(places, elements, (3,))
t.sparse_coo_tensor(places, elements[:2], (2, 3))
t.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2], (2, 2))
t.sparse.FloatTensor(places, elements, t.Size([2, 3]))
rows
rows.coalesce()
rows.to_dense()
rows.sparse_dim(), rows.dense_dim(), rows._nnz(), rows.shape, len(rows), rows.type()
rows[1]
rows.t()
-rows
rows * dense
dense * rows
rows * t.ones(2)
rows / t.tensor(2.0)
rows / dense
dense + rows
dense - rows
dense.double() + rows
dense.add(rows, alpha=3)
dense.add_(rows, alpha=3)
dense.sub_(rows)
dense[:2] + rows
rows + dense
rows.add_(dense)
rows + 1
(rows.coalesce() + rows.coalesce()).to_dense(), (rows - 3 * rows).to_dense()
rows.coalesce() + rows.coalesce(), (rows.coalesce() + rows.coalesce()).is_coalesced()
rows + x
rows.coalesce().pow(2), rows.coalesce() ** 3, rows.abs(), rows.sqrt()
rows.mul_(2), rows.div_(4), rows.neg_()
rows.norm(), rows.coalesce().norm(1)
rows.zero_()._nnz(), rows.to_dense()
rows.half()
rows.requires_grad_().requires_grad, rows.is_leaf, rows.grad_fn
dense.sparse_mask(rows)
dense.sparse_mask(rows.coalesce())
rows.coalesce().sparse_mask(rows.coalesce())
dense.sparse_mask(x)
dense.to_sparse(1)
dense.to_sparse(3)
dense.to_sparse(0)
dense.to_dense() is dense, dense.sparse_dim(), dense.dense_dim()
dense.coalesce()
dense.indices()
t.sparse_coo_tensor([[1]], [[1.0, 2.0]])
t.sparse_coo_tensor([[1, 2]], t.ones(2, 2), (6, 3))
t.sparse_coo_tensor([[1, 2]], t.ones(2, 2), (6,))
t.sparse_coo_tensor(size=(2, 3)).to_dense()
t.sparse.softmax(x, 1)
t.sparse.softmax(x, 0)
t.sparse.softmax(rows.coalesce(), 0)
t.sparse.softmax(rows.coalesce(), 1)
t.sparse.log_softmax(x, -1, dtype=t.float64)
dense.to_sparse_coo()
""".strip().split("\n")


def shown(library: Any, text: str) -> tuple[str, str]:
    places = library.tensor([[0, 1, 1], [2, 0, 2]])
    elements = library.tensor([3.0, 4.0, 5.0])
    given = {
        "t": library, "places": places, "elements": elements,
        "x": library.sparse_coo_tensor(places, elements, (2, 3)),
        "twice": library.sparse_coo_tensor(places * 0, elements, (2, 3)),
        "dense": library.arange(6.0).reshape(3, 2),
        "rows": library.sparse_coo_tensor(
            library.tensor([[2, 0, 2]]), library.arange(6.0).reshape(3, 2), (3, 2)),
    }  # fmt: skip
    try:
        return "", repr(eval(text, given)).replace("torch.", "tracejit.")
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:torch.sparse")
@pytest.mark.parametrize("text", SHOWN)
def test_what_is_shown_is_what_pytorch_shows(text: str) -> None:
    torch = pytest.importorskip("torch")
    assert shown(tracejit, text) == shown(torch, text)


def positions(*columns: tuple[int, int]) -> Any:
    return tracejit.tensor(list(zip(*columns)))


@pytest.mark.parametrize("columns", [((0, 3), (1, 0)), ((-1, 0), (0, 0)), ((2, 0), (0, 0))])
def test_positions_out_of_range_are_errors_where_they_are_used(columns: tuple) -> None:
    x = tracejit.sparse_coo_tensor(positions(*columns), tracejit.ones(2), (2, 3))
    with pytest.raises(RuntimeError, match="found (negative )?index"):
        x @ tracejit.ones(3, 1)


def test_what_takes_no_sparse_tensors_says_so() -> None:
    x = tracejit.eye(2).to_sparse()
    with pytest.raises(NotImplementedError, match="to_dense"):
        tracejit.exp(x)
    with pytest.raises(NotImplementedError, match="let values require it"):
        tracejit.sparse_coo_tensor([[0], [0]], [1.0], (1, 1), requires_grad=True)


def test_gradients_of_elements_and_dense_matrices_to_second_order() -> None:
    places = positions((0, 2), (1, 0), (1, 0), (1, 2))
    rng = np.random.default_rng(0)
    values, dense = (
        tracejit.from_numpy(rng.standard_normal(shape)).requires_grad_()
        for shape in ((4,), (3, 2))
    )

    def product(values: Any, dense: Any) -> Any:
        x = tracejit.sparse_coo_tensor(places, values, (2, 3))
        return x @ dense, (dense.t() @ x.t()).sum() + x.coalesce().to_dense().square().sum()

    assert tracejit.autograd.gradcheck(product, (values, dense))
    assert tracejit.autograd.gradgradcheck(product, (values, dense))


def test_gradients_of_softmax() -> None:
    places = positions((0, 2), (1, 0), (1, 2), (0, 1))
    values = tracejit.randn(4, dtype=tracejit.float64, requires_grad=True)

    def function(values: Any) -> Any:
        x = tracejit.sparse_coo_tensor(places, values, (2, 3))
        return tracejit.sparse.softmax(x, 1).values(), tracejit.sparse.log_softmax(x, 0).values()

    assert tracejit.autograd.gradcheck(function, values, check_forward_ad=True)
    assert tracejit.autograd.gradgradcheck(function, values)


def test_autocast_lowers_both_factors() -> None:
    x = tracejit.eye(2).to_sparse()
    with tracejit.autocast("cpu", dtype=tracejit.bfloat16):
        found = tracejit.spmm(x, tracejit.ones(2, 2))
    assert found.dtype is tracejit.bfloat16 and found.sum().item() == 4


# -- captured --------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_captured_products_follow_what_the_tensor_holds(mode: str) -> None:
    @tracejit.script(mode=mode)
    def multiplied(x: Any, dense: Any) -> Any:
        return (x.t() @ tracejit.spmm(x, dense)).sum(0)

    for places in (positions((0, 1), (1, 1)), positions((0, 0), (1, 1), (1, 0), (1, 0))):
        count = places.shape[1]
        x = tracejit.sparse_coo_tensor(places, tracejit.arange(1.0, count + 1), (2, 2))
        dense = tracejit.randn(2, 3)

        def agrees(x: Any = x, dense: Any = dense) -> None:
            whole = x.to_dense()
            want = (whole.t() @ (whole @ dense)).sum(0)
            assert tracejit.allclose(multiplied(x, dense), want, atol=1e-5)

        agrees()
        x.elements.mul_(2)
        agrees()
        x.elements = x.elements + 1
        agrees()
    assert multiplied.report().compiles == 1 and not multiplied.report().breaks
    outside = tracejit.sparse_coo_tensor(positions((0, 5)), tracejit.ones(1), (2, 2))
    with pytest.raises(RuntimeError, match="found index 5"):
        multiplied(outside, dense)


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_sparse_tensors_made_in_captured_functions(mode: str) -> None:
    @tracejit.script(mode=mode)
    def squared(dense: Any) -> Any:
        return dense.to_sparse() @ dense  # how many elements there are depends on values

    @tracejit.script(mode=mode)
    def returned(dense: Any) -> Any:
        return dense.to_sparse()

    for dense in (tracejit.eye(3), 2 * tracejit.eye(3), tracejit.ones(4, 4), tracejit.eye(3)):
        assert tracejit.equal(squared(dense), dense @ dense)
        found = returned(dense)
        assert tracejit.equal(found.to_dense(), dense)
        assert found.shape == dense.shape


# -- a graph network, as T. Kipf's pygcn writes it -------------------------------------------------
def network(t: Any) -> Any:
    nn, functional = t.nn, t.nn.functional

    class GraphConvolution(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(t.FloatTensor(inputs, outputs))
            self.bias = nn.Parameter(t.FloatTensor(outputs))
            reach = 1.0 / math.sqrt(self.weight.size(1))
            self.weight.data.uniform_(-reach, reach)
            self.bias.data.uniform_(-reach, reach)

        def forward(self, input: Any, adj: Any) -> Any:
            support = t.mm(input, self.weight)
            output = t.spmm(adj, support)
            return output + self.bias

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gc1, self.gc2 = GraphConvolution(5, 4), GraphConvolution(4, 3)

        def forward(self, x: Any, adj: Any) -> Any:
            x = functional.relu(self.gc1(x, adj))
            x = functional.dropout(x, 0.0, training=self.training)
            return functional.log_softmax(self.gc2(x, adj), dim=1)

    return Network()


def trained(t: Any, start: dict[str, np.ndarray], captured: bool = False) -> list[float]:
    model = network(t)
    model.load_state_dict({name: t.from_numpy(x.copy()) for name, x in start.items()})
    rng = np.random.default_rng(1)
    edges = (rng.random((12, 12)) < 0.2) | np.eye(12, dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adj = t.sparse.FloatTensor(
            t.from_numpy(np.vstack(np.nonzero(edges)).astype(np.int64)),
            t.from_numpy(np.full(edges.sum(), 0.3, np.float32)), t.Size(edges.shape),
        )  # fmt: skip
    x = t.from_numpy(rng.standard_normal((12, 5)).astype(np.float32))
    labels = t.from_numpy(rng.integers(0, 3, 12))
    optimizer = t.optim.Adam(model.parameters(), lr=0.1, weight_decay=5e-4)

    def step(x: Any, adj: Any) -> Any:
        model.train()
        optimizer.zero_grad()
        loss = t.nn.functional.nll_loss(model(x, adj)[:8], labels[:8])
        loss.backward()
        optimizer.step()
        return loss

    run = tracejit.script(step) if captured else step
    losses = [run(x, adj).item() for _ in range(5)]
    if captured:
        assert not run.report().breaks and run.report().compiles <= 3
    return losses


@pytest.mark.oracle
@pytest.mark.parametrize("captured", [False, True])
def test_a_graph_network_trains_as_in_pytorch(captured: bool) -> None:
    torch = pytest.importorskip("torch")
    start = {name: x.numpy() for name, x in network(torch).state_dict().items()}
    np.testing.assert_allclose(
        trained(tracejit, start, captured), trained(torch, start), rtol=1e-4
    )
