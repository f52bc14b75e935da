"""What all optimizers share: groups, errors, closures, zero_grad, the state dict."""

import copy
import pickle

import pytest

import tracejit
from tracejit import nn, optim

KINDS = [
    (optim.SGD, {"momentum": 0.9}),
    (optim.SGD, {"momentum": 0.9, "dampening": 0.5}),
    (optim.Adam, {"amsgrad": True}),
    (optim.AdamW, {}),
    (optim.RMSprop, {"momentum": 0.5}),
    (optim.Adagrad, {}),
]


def model():
    tracejit.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()


def steps(net, optimizer, count, seed=0):
    tracejit.manual_seed(seed)
    for _ in range(count):
        optimizer.zero_grad()
        (net(tracejit.randn(5, 3, dtype=tracejit.float64)) ** 2).sum().backward()
        optimizer.step()
    return nn.utils.parameters_to_vector(net.parameters()).tolist()


def test_groups_take_defaults_and_options():
    p, q, r = (nn.Parameter(tracejit.zeros(1)) for _ in range(3))
    optimizer = optim.SGD([{"params": p}, {"params": [q], "lr": 5.0}], lr=1.0, momentum=0.5)
    optimizer.add_param_group({"params": [r], "momentum": 0.0})
    assert [(g["lr"], g["momentum"]) for g in optimizer.param_groups] == [
        (1.0, 0.5),
        (5.0, 0.5),
        (1.0, 0.0),
    ]
    named = optim.SGD(nn.Linear(1, 1).named_parameters(), lr=1.0)
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda p: optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p, lr=1), TypeError, "Tensors or dicts, but got tracejit.FloatTensor"),
        (
            lambda p: optim.SGD([1.0], lr=1),
            TypeError,
            "can only optimize Tensors, but one of the params is float",
        ),
        (lambda p: optim.SGD([p * 2], lr=1), ValueError, "can't optimize a non-leaf Tensor"),
        (
            lambda p: optim.SGD([{"params": p}, {"params": p}], lr=1),
            ValueError,
            "more than one parameter group",
        ),
        (lambda p: optim.SGD([{"params": {p}}], lr=1), TypeError, "ordered collections"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires"),
        (
            lambda p: optim.Adam([p], betas=(1.0, 0.9)),
            ValueError,
            "Invalid beta parameter at index 0: 1.0",
        ),
        (lambda p: optim.AdamW([p], eps=-1.0), ValueError, "Invalid epsilon value: -1.0"),
        (lambda p: optim.RMSprop([p], alpha=-1.0), ValueError, "Invalid alpha value"),
        (lambda p: optim.Adagrad([p], lr_decay=-1.0), ValueError, "Invalid lr_decay value"),
    ],
)
def test_bad_arguments(make, kind, text):
    with pytest.raises(kind, match=text):
        make(nn.Parameter(tracejit.zeros(1)))


def test_closure_runs_with_gradients_and_its_loss_is_returned():
    p = nn.Parameter(tracejit.tensor([2.0]))
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tracejit.no_grad():
        assert optimizer.step(closure).item() == 4.0
    assert p.tolist() == [1.0]


def test_zero_grad():
    p = nn.Parameter(tracejit.tensor([2.0]))
    optimizer = optim.SGD([p], lr=0.25)
    (p * p).sum().backward()
    kept = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is kept and kept.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_step_writes_in_place_and_keeps_parameters_leaves():
    p = nn.Parameter(tracejit.tensor([2.0]))
    view, optimizer = p.detach(), optim.Adam([p], lr=0.5)
    p.sum().backward()
    optimizer.step()
    assert view.tolist() == [1.5] == p.tolist() and p.is_leaf and p.requires_grad
    state = optimizer.state[p]
    before = {key: id(value) for key, value in state.items()}
    optimizer.step()
    assert {key: id(value) for key, value in state.items()} == before, "state is written in place"
    assert not any(value.requires_grad for value in state.values())


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_loading_a_state_dict_continues(kind, options):
    net = model()
    optimizer = kind(net.parameters(), lr=0.05, **options)
    steps(net, optimizer, 3)
    twin = copy.deepcopy(net)
    fresh = kind(twin.parameters(), lr=9.0, **options)
    fresh.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    expected = steps(net, optimizer, 3, seed=7)
    assert steps(twin, fresh, 3, seed=7) == expected
    assert fresh.param_groups[0]["lr"] == 0.05


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_continue(kind, options, copied):
    net = model()
    optimizer = kind(net.parameters(), lr=0.05, **options)
    steps(net, optimizer, 2)
    twin, twin_optimizer = copied((net, optimizer))
    assert twin_optimizer.param_groups[0]["params"][0] is twin[0].weight
    expected = steps(net, optimizer, 2, seed=5)
    assert steps(twin, twin_optimizer, 2, seed=5) == expected


def test_loading_takes_the_tensors_as_they_are():
    net = model()
    optimizer = optim.Adam(net.parameters(), lr=0.05)
    steps(net, optimizer, 1)
    other = optim.Adam(net.parameters(), lr=0.05)
    other.load_state_dict(optimizer.state_dict())
    first = next(net.parameters())
    assert other.state[first] is not optimizer.state[first]
    assert other.state[first]["exp_avg"] is optimizer.state[first]["exp_avg"]
    assert other.state[first]["step"].dtype is tracejit.float32


def test_loading_a_state_dict_that_does_not_fit():
    p = [nn.Parameter(tracejit.zeros(1)) for _ in range(2)]
    one, two = optim.SGD(p, lr=1.0), optim.SGD([{"params": q} for q in p], lr=1.0)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(optim.SGD(p[:1], lr=1.0).state_dict())


def test_repr_lists_the_groups():
    text = repr(optim.SGD([nn.Parameter(tracejit.zeros(1))], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n") and "    lr: 0.5\n" in text


def test_an_optimizer_around_another_needs_no_init_of_its_own():
    class Around(tracejit.optim.Optimizer):
        def __init__(self, inner):
            self.inner, self.param_groups, self.state = inner, inner.param_groups, {}

        def step(self, closure=None):
            self.inner.step(closure)
            self.state["steps"] = self.state.get("steps", 0) + 1

    p = tracejit.ones(2, requires_grad=True)
    p.grad = tracejit.ones(2)
    around = Around(tracejit.optim.SGD([p], lr=0.5))
    around.step()
    around.zero_grad()
    assert p.tolist() == [0.5, 0.5] and p.grad is None and around.state == {"steps": 1}
