"""Hooks that all modules call: as in PyTorch, and in captured calls, which must not miss one."""

import warnings
from contextlib import ExitStack

import pytest

import tracejit
from tracejit.nn.modules import module as places


@pytest.fixture(autouse=True)
def kinds():
    """Hooks of both forms may be registered in each test."""
    from tracejit.nn import module_global_hooks

    module_global_hooks._full.clear()
    yield
    module_global_hooks._full.clear()
    assert not module_global_hooks.everywhere


def network(t):
    net = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.ReLU())
    with t.no_grad():
        for p in net.parameters():
            p.copy_(t.arange(float(p.numel())).reshape(p.shape) / 8)
    return net


def name(m):
    return type(m).__name__


def rounded(x):
    return [round(v, 5) for v in x.detach().flatten().tolist()]


def forward_hooks(t, on, seen):
    net = network(t)
    on(t.nn.modules.module.register_module_forward_pre_hook(
        lambda m, args: seen.append((name(m), "before")) or (args[0] + 1 if name(m) == "ReLU"
                                                             else None)))
    on(t.nn.modules.module.register_module_forward_hook(
        lambda m, args, out: seen.append((name(m), rounded(args[0]))) or out * 2))
    on(t.nn.modules.module.register_module_forward_hook(
        lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True))
    net[0].register_forward_hook(lambda m, args, out: seen.append("own"))
    return rounded(net(t.ones(1, 2)))


def backward_hooks(t, on, seen):
    net = network(t)
    net[1].register_full_backward_hook(lambda m, i, o: seen.append("own"))
    on(t.nn.modules.module.register_module_full_backward_hook(
        lambda m, given, came: seen.append((name(m), rounded(came[0])))
        or tuple(None if g is None else g * 2 for g in given)))
    on(t.nn.modules.module.register_module_full_backward_pre_hook(
        lambda m, came: seen.append(name(m)) or (came[0] * 3,)))
    x = t.ones(1, 2, requires_grad=True)
    net(x).sum().backward()
    return rounded(x.grad), rounded(net[0].weight.grad)


def older_backward_hooks(t, on, seen):
    net = network(t)
    on(t.nn.modules.module.register_module_backward_hook(
        lambda m, given, came: seen.append((name(m), rounded(came[0])))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net[1](t.ones(1, 2, requires_grad=True) * 2).sum().backward()
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        t.nn.modules.module.register_module_full_backward_hook(print)


def removed_before_the_backward(t, on, seen):
    x = t.ones(1, 2, requires_grad=True)
    handle = t.nn.modules.module.register_module_full_backward_hook(
        lambda m, given, came: seen.append(name(m)))
    y = network(t)(x)
    handle.remove()
    y.sum().backward()


def after_errors(t, on, seen):
    on(t.nn.modules.module.register_module_forward_hook(
        lambda m, args, out: seen.append((name(m), out)), always_call=True))
    on(t.nn.modules.module.register_module_forward_hook(
        lambda m, args, out: seen.append("not reached")))
    with pytest.raises((RuntimeError, ValueError)):
        network(t)(t.ones(1, 3))


def registrations(t, on, seen):
    m = t.nn.modules.module
    on(m.register_module_parameter_registration_hook(
        lambda m, n, p: seen.append((name(m), n, tuple(p.shape) if p is not None else None))))
    on(m.register_module_buffer_registration_hook(
        lambda m, n, b: seen.append((name(m), n)) or b + 1))
    on(m.register_module_module_registration_hook(
        lambda m, n, child: seen.append((name(m), n, name(child)))
        or (t.nn.Sigmoid() if name(child) == "ReLU" else None)))
    net = network(t)
    net.register_buffer("mean", t.zeros(1))
    net.scale = t.nn.Parameter(t.ones(3))
    net.more = t.nn.Dropout()
    net.mean = t.ones(1)
    t.nn.Linear(1, 1, bias=False)
    return repr(net[1]), net.mean.tolist()


PROGRAMS = [forward_hooks, backward_hooks, older_backward_hooks, removed_before_the_backward,
            after_errors, registrations]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program):
    torch = pytest.importorskip("torch")
    found = []
    for t in (tracejit, torch):
        seen = []
        t.nn.modules.module._global_is_full_backward_hook = None
        with ExitStack() as stack:
            found.append((program(t, stack.enter_context, seen), seen))
    assert found[0] == found[1]


@pytest.mark.parametrize("jit", [tracejit.trace, tracejit.script])
def test_a_hook_between_calls_is_not_missed(jit):
    net = network(tracejit)
    captured = jit(lambda x: net(x) * 1)
    x = tracejit.ones(1, 2)
    plain = captured(x).tolist()
    for _ in range(9):  # guards of calls that came often are looked at in a shorter way
        assert captured(x).tolist() == plain
    factor = tracejit.ones(1) * 2
    with places.register_module_forward_hook(lambda m, args, out: out * factor):
        expected = net(x).tolist()
        assert expected != plain
        assert captured(x).tolist() == captured(x).tolist() == expected
        factor.fill_(3)
        assert captured(x).tolist() == net(x).tolist() != expected
    assert captured(x).tolist() == plain
    with places.register_module_forward_pre_hook(lambda m, args: (args[0] + 1,)):
        assert captured(x).tolist() == net(x).tolist() != plain
    assert captured(x).tolist() == plain
    assert not captured.report().breaks


@pytest.mark.parametrize("jit", [tracejit.trace, tracejit.script])
def test_what_a_hook_reads_and_changes(jit):
    net, counts, settings = network(tracejit), {}, {"scale": 1.0}

    def hook(m, args, out):
        counts[name(m)] = counts.get(name(m), 0) + 1
        return out * settings["scale"]

    captured = jit(lambda x: net(x) * 1)
    x = tracejit.ones(1, 2)
    with places.register_module_forward_hook(hook):
        for scale in (1.0, 2.0, 3.0, 3.0):
            settings["scale"] = scale
            before = dict(counts)
            expected = net(x).tolist()
            counts.clear()
            counts.update(before)
            assert captured(x)[0].tolist() == pytest.approx(expected[0])
    assert counts == {"Linear": 4, "ReLU": 4, "Sequential": 4}


@pytest.mark.parametrize("jit", [tracejit.trace, tracejit.script])
def test_backward_hooks_of_captured_steps(jit):
    net, seen = network(tracejit), []

    def step(x):
        x = x.detach().requires_grad_()
        net(x).sum().backward()
        return x.grad

    captured = jit(step)
    for _ in range(3):
        plain = captured(tracejit.ones(1, 2))
    with places.register_module_full_backward_hook(
        lambda m, given, came: tuple(None if g is None else g / 2 for g in given)
    ):
        for _ in range(3):
            assert captured(tracejit.ones(1, 2)).tolist() == step(tracejit.ones(1, 2)).tolist()
            assert captured(tracejit.ones(1, 2))[0, 0] < plain[0, 0]
    with places.register_module_full_backward_pre_hook(lambda m, came: seen.append(name(m))):
        for _ in range(3):
            assert captured(tracejit.ones(1, 2)).tolist() == plain.tolist()
    assert seen == ["Sequential", "ReLU", "Linear"] * 3


def test_registered_in_a_captured_call():
    net, seen = network(tracejit), []

    @tracejit.script
    def call(x):
        with places.register_module_forward_hook(lambda m, args, out: seen.append(name(m))):
            return net(x)

    for k in range(3):
        call(tracejit.ones(1, 2))
        assert seen == ["Linear", "ReLU", "Sequential"] * (k + 1)
    reasons = [b.reason for b in call.report().breaks]
    assert "the function registers a hook of all modules" in reasons
