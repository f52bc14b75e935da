"""Optimizers take PyTorch's steps: 20 of them in float64, to 1e-10, and read its state dicts."""

import numpy as np
import pytest

import tracejit
from tracejit import optim

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

OPTIONS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.7, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.8, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adadelta", {"lr": 0.5}),
    ("Adadelta", {"lr": 2.0, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "betas": (0.7, 0.8), "eps": 1e-3, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "betas": (0.7, 0.8), "momentum_decay": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.3, "decoupled_weight_decay": True}),
    ("Rprop", {"lr": 0.05}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 5, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.3, "beta2_decay": -0.5, "eps": (0.1, 0.5), "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1, "d": 1.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "weight_decay": 0.1},
    ),
]
STEPS = 20


def start():
    """The same parameters and data for both libraries; one parameter is 0-dim."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=s) for s in ((4, 3), (3,), ())], rng.normal(size=(STEPS, 8, 4))


def training(library, parameter, name, options, before=None):
    """Run STEPS steps of a small regression; the parameters after each, and the optimizer."""
    arrays, data = start()
    w, b, s = (parameter(library.tensor(a)) for a in arrays)
    groups = [{"params": [w, b]}, {"params": [s], "lr": options["lr"] / 2}]
    optimizer = getattr(library.optim, name)(groups, **options)
    if before is not None:
        before(optimizer)
    trajectory = []
    for batch in data:
        optimizer.zero_grad()
        out = library.tanh(library.tensor(batch) @ w + b) * s
        ((out - 0.5) ** 2).mean().backward()
        optimizer.step()
        trajectory.append([p.detach().numpy().copy() for p in (w, b, s)])
    return trajectory, optimizer


def assert_close(mine, theirs, tolerance=1e-10):
    for step, (ours, expected) in enumerate(zip(mine, theirs)):
        for a, b in zip(ours, expected):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"step {step}")


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda x: str(x))
def test_trajectory(name, options):
    mine, _ = training(tracejit, tracejit.nn.Parameter, name, options)
    theirs, _ = training(torch, torch.nn.Parameter, name, options)
    assert_close(mine, theirs)
    assert np.abs(mine[-1][0] - start()[0][0]).max() > 1e-2, "nothing moved"


def complex_training(library, name, options, wrap=lambda f: f):
    """Steps on complex parameters; the parameters after each."""
    w = library.tensor(np.array([1 + 2j, -0.5 + 1j, 0.3j])).requires_grad_()
    optimizer = getattr(library.optim, name)([w], **options)

    def step():
        optimizer.zero_grad()
        (((w * (1 + 1j) - 2).abs() ** 2).sum() + w[0].imag ** 4).backward()

    def loss():
        step()
        return (((w * (1 + 1j) - 2).abs() ** 2).sum() + w[0].imag ** 4).detach()

    @wrap
    def update():
        if name == "LBFGS":
            optimizer.step(loss)
        else:
            step()
            optimizer.step()

    found = []
    for _ in range(6):
        update()
        found.append([w.detach().numpy().copy()])
    return found


COMPLEX = [row for row in OPTIONS if row[0] != "Adafactor"] + [
    ("LBFGS", {"lr": 0.1, "line_search_fn": "strong_wolfe", "max_iter": 3})]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), COMPLEX, ids=lambda x: str(x))
def test_complex_parameters_are_pairs_of_real_ones(name, options):
    theirs = complex_training(torch, name, options)
    assert_close(complex_training(tracejit, name, options), theirs, 1e-8)


def test_captured_steps_of_complex_parameters():
    options = {"lr": 0.05, "amsgrad": True}
    mine = complex_training(tracejit, "Adam", options, tracejit.script)
    assert_close(mine, complex_training(tracejit, "Adam", options))


def as_mine(value):
    """PyTorch's nested state as tracejit's."""
    if isinstance(value, torch.Tensor):
        return tracejit.tensor(value.numpy())
    if isinstance(value, dict):
        return {key: as_mine(v) for key, v in value.items()}
    return [as_mine(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda x: str(x))
def test_state_dict_has_their_layout(name, options):
    _, mine = training(tracejit, tracejit.nn.Parameter, name, options)
    _, theirs = training(torch, torch.nn.Parameter, name, options)
    ours, expected = mine.state_dict(), theirs.state_dict()
    assert set(ours) == set(expected) == {"state", "param_groups"}
    assert [g["params"] for g in ours["param_groups"]] == [
        g["params"] for g in expected["param_groups"]
    ]
    for a, b in zip(ours["param_groups"], expected["param_groups"]):
        assert set(a) == set(b)
    assert set(ours["state"]) == set(expected["state"])
    for number, kept in expected["state"].items():
        assert list(ours["state"][number]) == list(kept)
        for key, value in kept.items():
            if value is not None:
                got = ours["state"][number][key]
                assert str(got.dtype).split(".")[1] == str(value.dtype).split(".")[1]
                np.testing.assert_allclose(got.numpy(), value.numpy(), rtol=1e-10, atol=1e-12)


def stages(library, name, options):
    """The state when the optimizer is made, after a step of one parameter, and loaded."""
    p, q = (library.nn.Parameter(library.full((2,), k, dtype=library.float32)) for k in (1.0, 2.0))
    optimizer = getattr(library.optim, name)([p, q], **options)
    made = shown(optimizer)
    p.grad = library.ones_like(p)
    optimizer.step()
    other = getattr(library.optim, name)([p, q], **options)
    other.load_state_dict(optimizer.state_dict())
    same = [x is other.state[p][key] for key, x in optimizer.state.get(p, {}).items()]
    return made, shown(optimizer), shown(other), same, repr(other)


def shown(optimizer):
    return {
        number: [(key, str(x.dtype).split(".")[1], [f"{v:.4g}" for v in x.flatten().tolist()])
                 for key, x in kept.items()]
        for number, kept in optimizer.state_dict()["state"].items()
    }  # fmt: skip


@pytest.mark.parametrize("default", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda x: str(x))
def test_state_from_the_beginning(name, options, default):
    found = []
    for library in (tracejit, torch):
        library.set_default_dtype(getattr(library, default))
        try:
            found.append(stages(library, name, options))
        finally:
            library.set_default_dtype(library.float32)
    assert found[0] == found[1]


def test_a_buffer_that_is_none_is_made_at_the_next_step():
    values = []
    for library in (tracejit, torch):
        p = library.nn.Parameter(library.ones(2))
        optimizer = library.optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5)
        saved = optimizer.state_dict()
        saved["state"] = {0: {"momentum_buffer": None}}
        optimizer.load_state_dict(saved)
        assert optimizer.state_dict()["state"] == {0: {"momentum_buffer": None}}
        for _ in range(2):
            p.grad = library.ones(2)
            optimizer.step()
        values.append((p.tolist(), list(optimizer.state[p])))
    assert values[0] == values[1]


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda x: str(x))
def test_continues_from_their_state_dict(name, options):
    _, theirs = training(torch, torch.nn.Parameter, name, options)
    saved = theirs.state_dict()
    mine, _ = training(
        tracejit,
        tracejit.nn.Parameter,
        name,
        options,
        lambda optimizer: optimizer.load_state_dict(as_mine(saved)),
    )
    expected, _ = training(
        torch, torch.nn.Parameter, name, options, lambda optimizer: optimizer.load_state_dict(saved)
    )
    fresh, _ = training(tracejit, tracejit.nn.Parameter, name, options)
    assert_close(mine, expected)
    if saved["state"] and any(v is not None for v in saved["state"][0].values()):
        assert np.abs(fresh[0][0] - mine[0][0]).max() > 1e-8, "the loaded state made no difference"


def test_missing_gradients_are_skipped():
    p, q = tracejit.nn.Parameter(tracejit.ones(2)), tracejit.nn.Parameter(tracejit.ones(2))
    optimizer = optim.AdamW([p, q], lr=0.1, weight_decay=0.5)
    p.sum().backward()
    optimizer.step()
    assert q.tolist() == [1.0, 1.0] and list(optimizer.state) == [p]
