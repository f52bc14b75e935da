"""L-BFGS takes PyTorch's steps, calls the closure as often, and works on captured closures."""

import numpy as np
import pytest

import tracejit

START = np.array([-1.2, 1.0, 0.5])


def valley(x):
    """Rosenbrock's function, and a term for the third coordinate."""
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + (x[2] - x[0]) ** 2


def minimised(library, options, steps, capture=False):
    x = library.tensor(START.tolist(), dtype=library.float64).requires_grad_()
    y = library.ones(2, dtype=library.float64).requires_grad_()
    optimizer = library.optim.LBFGS([x, y], **options)
    value, calls = tracejit.script(valley) if capture else valley, []

    def closure():
        optimizer.zero_grad()
        loss = value(x) + ((y - 3) ** 2).sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    state = optimizer.state[x]
    counts = (len(calls), state["func_evals"], state["n_iter"])
    return losses, [*x.tolist(), *y.tolist()], counts


OPTIONS = [
    {"lr": 0.1, "max_iter": 5},
    {"lr": 0.5, "max_iter": 8, "history_size": 2},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "max_iter": 4, "max_eval": 6, "history_size": 3},
]


@pytest.mark.oracle
@pytest.mark.parametrize("options", OPTIONS)
def test_steps_are_pytorchs(options):
    torch = pytest.importorskip("torch")
    losses, found, counts = minimised(tracejit, options, 6)
    expected, place, wanted = minimised(torch, options, 6)
    assert counts == wanted
    np.testing.assert_allclose(losses, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found, place, rtol=1e-6, atol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("values", [{0.0: 1.5, 1.0: 1.0}, {0.0: 1.5}, {0.0: 2.0, 1.0: 2.5},
                                    {0.0: 1.5, 1.0: 1.0, 2.0: 0.9}])  # fmt: skip
def test_brackets_of_a_loss_that_does_not_fall_as_its_gradient_says(values):
    """The bracket shrinks to one point, which no tolerance of the user's stops."""
    torch, found = pytest.importorskip("torch"), []
    for library in (tracejit, torch):
        w = library.nn.Parameter(library.zeros(1))
        optimizer = library.optim.LBFGS([w], lr=1, max_iter=20, tolerance_change=0,
                                        line_search_fn="strong_wolfe")

        def closure(w=w, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (w.detach() - w).sum() + values.get(float(w.detach()), 2.0)
            loss.backward()
            return loss

        losses = [float(optimizer.step(closure)) for _ in range(3)]
        found.append((losses, w.tolist(), optimizer.state[w]["func_evals"]))
    assert found[0] == found[1]


def test_it_finds_the_minimum_of_a_captured_function():
    losses, found, _ = minimised(tracejit, OPTIONS[2], 8, capture=True)
    np.testing.assert_allclose(found, [1, 1, 1, 3, 3], atol=1e-4)
    assert losses[-1] < 1e-9


def test_errors():
    p = tracejit.nn.Parameter(tracejit.ones(1))
    with pytest.raises(ValueError, match="per-parameter options"):
        tracejit.optim.LBFGS([{"params": [p]}, {"params": [tracejit.nn.Parameter(p)]}])
    with pytest.raises(TypeError, match="closure"):
        tracejit.optim.LBFGS([p]).step()
    search = tracejit.optim.LBFGS([p], line_search_fn="armijo")

    def closure():
        search.zero_grad()
        (p * p).sum().backward()
        return (p * p).sum()

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        search.step(closure)
