"""Where gradients go, hooks on several tensors, saved tensors that may be written: as PyTorch has
them."""

from __future__ import annotations

import pytest

import tracejit


def told(call, *args, **named):
    try:
        return call(*args, **named)
    except (RuntimeError, ValueError, AssertionError) as error:
        return type(error).__name__, str(error)


def leaves(t):
    return [t.full((2, 3), float(k), requires_grad=True) for k in range(1, 5)]


def hooked(t, mode):
    """Which gradients hooks are called with, over backwards of parts of a graph."""
    a, b, c, d = leaves(t)
    y, z = a * b, c * d
    seen = []

    def note(found):
        grads = found if mode == "all" else [found]
        seen.append([None if g is None else g.tolist() for g in grads])

    handle = t.autograd.graph.register_multi_grad_hook((a, y, c), note, mode=mode)
    y.sum().backward(retain_graph=True)
    z.sum().backward(retain_graph=True)
    z.sum().backward(inputs=(c,), retain_graph=True)
    (y.sum() + 2 * z.sum()).backward(retain_graph=True)
    t.autograd.grad(y.sum() * 3, (y,), retain_graph=True)
    handle.remove()
    y.sum().backward()
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        t.autograd.graph.register_multi_grad_hook((a,), note, mode="some")
    return seen


def at_edges(t):
    """Gradients from and to edges, and what is refused."""
    x = t.tensor([2.0, 3.0], requires_grad=True)
    w = x * 3
    y = (w * w).sum()
    edge, start = map(t.autograd.graph.get_gradient_edge, (w, y))
    leaf = t.autograd.graph.get_gradient_edge(x)
    ones = t.ones

    def grad(*args, **named):
        return [g.tolist() for g in t.autograd.grad(*args, retain_graph=True, **named)]

    found = [
        told(grad, *args, **named)
        for args, named in (
            ((y, edge), {}),
            ((y, [edge, x]), {}),
            ((start, x), {}),
            ((edge, x), {}),
            ((edge, leaf), {"grad_outputs": ones(2)}),
            ((edge, x), {"grad_outputs": ones(2)}),
            ((y, edge), {"materialize_grads": True, "allow_unused": True}),
            ((ones(2, requires_grad=True).sum(), edge), {"materialize_grads": True}),
            ((ones(2, requires_grad=True).sum(), edge), {"allow_unused": False}),
        )
    ]
    t.autograd.backward(start, retain_graph=True)
    t.autograd.backward(y, inputs=leaf, retain_graph=True)
    t.autograd.backward(y, inputs=edge)
    refused = told(lambda: t.autograd.graph.get_gradient_edge(ones(1)))
    return found, x.grad.tolist(), edge._fields, edge.node is w.grad_fn, edge.output_nr, refused


def written(t):
    """Gradients of what was overwritten after a node kept it."""
    found = []
    with t.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = t.tensor([2.0, 3.0], requires_grad=True)
        b = a.clone()
        y = (b**3).sum()
        b.zero_()
        y.backward()
        found.append(a.grad.tolist())
        y = (a * a * a).sum()
        with t.no_grad():
            a.mul_(5)
        (first,) = t.autograd.grad(y, a, create_graph=True)
        found += [first.tolist(), t.autograd.grad(first.sum(), a)[0].tolist()]
        b = a.clone()
        c = b.mul(0.1).exp()
        c.mul_(2)
        found.append([round(x, 3) for x in t.autograd.grad(c.sum(), a)[0].tolist()])
        nested = t.autograd.graph.allow_mutation_on_saved_tensors()
        found.append(told(nested.__enter__))
        y = (a * a).sum()
        context.clear()
        found.append(told(y.backward)[0])
        y = (a * a).sum()
    found.append(told(y.backward)[0])
    return found


@pytest.mark.oracle
@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_on_several_tensors_are_called_as_in_pytorch(mode):
    torch = pytest.importorskip("torch")
    assert hooked(tracejit, mode) == hooked(torch, mode)


@pytest.mark.oracle
@pytest.mark.parametrize("program", [at_edges, written])
def test_programs_see_what_they_see_in_pytorch(program):
    torch = pytest.importorskip("torch")
    shown = repr(program(tracejit))
    assert shown == repr(program(torch)).replace("torch.", "tracejit.")


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("inside", [True, False])
def test_hooks_on_several_tensors_in_captured_calls(mode, inside):
    """Registered in the call, or outside before it; the backward is the call's."""

    def step(a, b, scale):
        y, seen = a * b, []
        if inside:
            tracejit.autograd.graph.register_multi_grad_hook(
                (a, y), lambda g: seen.append(g[0] if mode == "all" else g), mode=mode)  # fmt: skip
        (y * scale).sum().backward()
        return seen[0] * 2 if seen else y

    run = tracejit.script(step)
    for scale in (1.0, 2.0, 3.0):
        results = []
        for function in (step, run):
            a, b, *_ = leaves(tracejit)
            called = []
            if not inside:
                tracejit.autograd.graph.register_multi_grad_hook(
                    (a, b), lambda g, called=called: called.append(1), mode=mode)  # fmt: skip
            found = function(a, b, tracejit.tensor(scale))
            results.append((found.tolist(), a.grad.tolist(), b.grad.tolist(), called))
        assert results[0] == results[1]


def test_edges_are_made_and_used_in_captured_calls():
    def between(x):
        w = x * 3
        edge = tracejit.autograd.graph.get_gradient_edge(w)
        y = (w * w).sum()
        del w
        return tracejit.autograd.grad(y, edge)[0]

    run = tracejit.script(between)
    for n in (2, 5, 2):
        x = tracejit.randn(n, requires_grad=True)
        assert run(x).equal(between(x))
    assert run.report().compiles == 1 and not run.report().breaks
