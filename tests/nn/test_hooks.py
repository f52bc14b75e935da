"""Hooks of modules: order, replacement, removal, gradients."""

import pytest

import tracejit
from tracejit import nn


class Add(nn.Module):
    def forward(self, x, y=0, *, z=0):
        return x + y + z


def test_order_and_replacement():
    module, seen = Add(), []
    module.register_forward_pre_hook(
        lambda m, args: seen.append("pre") or (args[0] * 10, *args[1:])
    )
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {**kwargs, "z": 5}), with_kwargs=True
    )
    module.register_forward_hook(
        lambda m, args, out: seen.append(("hook", args[0].item())) or out * 2
    )
    module.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    module.register_forward_hook(lambda m, args, out: seen.append("first"), prepend=True)
    assert module(tracejit.tensor(1.0), 2).item() == 2 * (10 + 2 + 5)
    assert seen == ["pre", "first", ("hook", 10.0), {"z": 5}]


def test_single_replacement_becomes_the_arguments():
    module = Add()
    module.register_forward_pre_hook(lambda m, args: tracejit.tensor(7.0))
    assert module(tracejit.tensor(1.0)).item() == 7.0


def test_removal():
    module = Add()
    handle = module.register_forward_hook(lambda m, args, out: out * 2)
    with handle:
        assert module(tracejit.tensor(1.0)).item() == 2.0
    assert module(tracejit.tensor(1.0)).item() == 1.0
    handle.remove()
    assert not module._forward_hooks


def test_tables_hold_the_hooks_themselves():
    """Programs look for their own hook among `_forward_pre_hooks.values()`, put some there, and
    take them out by number."""
    module, seen = Add(), []

    def hook(module, args):
        seen.append("pre")

    def named(module, args, kwargs, out):
        seen.append(kwargs)

    module.register_forward_pre_hook(hook)
    handle = module.register_forward_hook(named, with_kwargs=True, always_call=True)
    assert list(module._forward_pre_hooks.values()) == [hook]
    assert list(module._forward_hooks.values()) == [named]
    module._forward_pre_hooks[-1] = hook
    module(tracejit.tensor(1.0), z=2)
    assert seen == ["pre", "pre", {"z": 2}]
    for number, found in list(module._forward_pre_hooks.items()):
        if found is hook:
            del module._forward_pre_hooks[number]
    handle.remove()
    module(tracejit.tensor(1.0))
    assert len(seen) == 3
    assert not module._forward_hooks_with_kwargs and not module._forward_hooks_always_called


def test_hook_put_in_by_the_holder_of_a_handle():
    hooks, also = {}, {}
    handle = tracejit.utils.hooks.RemovableHandle(hooks, extra_dict=also)
    hooks[handle.id], also[handle.id] = "hook", True
    handle.remove()
    assert not hooks and not also


def test_always_call():
    module, seen = Add(), []
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("not reached"))
    with pytest.raises(TypeError):
        module("text")
    assert seen == [None]


def test_bad_pre_hook():
    module = Add()
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        module(1)


def test_backward_hook_sees_and_replaces_gradients():
    layer, seen = nn.Linear(2, 1, bias=False), []
    with tracejit.no_grad():
        layer.weight.copy_(tracejit.tensor([[2.0, 3.0]]))

    def hook(module, grad_input, grad_output):
        seen.append((module, grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    layer.register_full_backward_hook(hook)
    x = tracejit.ones(1, 2, requires_grad=True)
    (layer(x) * 4).sum().backward()
    assert seen == [(layer, [[8.0, 12.0]], [[4.0]])]
    assert x.grad.tolist() == [[80.0, 120.0]]
    assert layer.weight.grad.tolist() == [[4.0, 4.0]], "parameters get their own gradients"


def test_backward_hook_without_differentiable_inputs():
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    layer(tracejit.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_backward_pre_hook():
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 100,))
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].tolist()))
    layer(tracejit.ones(1, 2)).sum().backward()
    assert seen == [[[100.0]]] and layer.weight.grad.tolist() == [[100.0, 100.0]]


def test_backward_hook_with_several_values():
    class Pair(nn.Module):
        def forward(self, x, scale, y):
            return x * scale, "text", x + y

    module, seen = Pair(), []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x, y = tracejit.tensor(1.0, requires_grad=True), tracejit.tensor(2.0, requires_grad=True)
    first, text, second = module(x, 3, y)
    (first + second).backward()
    ((grad_input, grad_output),) = seen
    assert text == "text" and grad_input[1] is None and grad_output[1] is None
    assert [grad_input[0].item(), grad_input[2].item(), x.grad.item()] == [4.0, 1.0, 4.0]
    module.register_full_backward_hook(lambda m, gi, go: (gi[0],))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 1, but expected 3"):
        module(x, 3, y)[0].backward()


def test_backward_hooks_of_the_older_form():
    """They see what the last operation gives its operands."""

    class Sum(nn.Module):
        def forward(self, x, y):
            return {"first": [x * 2 + y]}

    for script in (lambda m: m, lambda m: tracejit.script(m, mode="graph")):
        module, seen = Sum(), []

        def hook(module, grad_input, grad_output, seen=seen):
            seen.append(([g.tolist() for g in grad_input], grad_output[0].tolist()))
            return (grad_input[0] * 10, grad_input[1])

        handle = module.register_backward_hook(hook)
        called = script(module)
        for _ in range(2):
            x, y = (tracejit.ones(2, requires_grad=True) for _ in range(2))
            called(x, y)["first"][0].sum().backward()
            assert seen.pop() == ([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0]) and not seen
            assert (x.grad.tolist(), y.grad.tolist()) == ([20.0, 20.0], [1.0, 1.0])
    text = "Cannot use both regular backward hooks and full backward hooks on a single Module"
    with pytest.raises(RuntimeError, match=text):
        module.register_full_backward_hook(hook)
    handle.remove()
    other = nn.Linear(1, 1)
    other.register_full_backward_hook(hook)
    with pytest.raises(RuntimeError, match=text):
        other.register_backward_hook(hook)
