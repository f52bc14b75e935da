"""Programs that take derivatives of gradients: what detaches, Functions, hooks, grad modes."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_list import programs_in


def leaf(*values, dtype=tj.float32):
    return tj.tensor(values, dtype=dtype, requires_grad=True)


def tried(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except RuntimeError as error:
        return str(error)[:60]


def twice(f, x):
    """First derivative, whether it has a history, second derivative."""
    (g,) = tj.autograd.grad(f(x).sum(), x, create_graph=True)
    if not g.requires_grad:
        return [g, False]
    return [g.detach(), True, *tj.autograd.grad((g * g).sum(), x)]


def detach_and_a_second_derivative(jit):
    f = jit(lambda x: x * x.detach())
    return [twice(f, leaf(1.0, 2.0, -3.0)) for _ in range(3)]


def detach_of_a_result_and_a_second_derivative(jit):
    @jit
    def f(x):
        h = x.sin() * x
        return h * h.detach() + x**3 + x * x.data

    return [twice(f, leaf(1.0, 2.0, -3.0)) for _ in range(3)]


def straight_through_rounding_twice(jit):
    @jit
    def f(x):
        q = x + (x.round() - x).detach()
        return q**3 + q * x.detach()

    return [twice(f, leaf(*values)) for values in ([1.2, 2.7], [-3.4, 0.1, 5.0])]


class Exp(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


class Scaled(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, rows):
        ctx.save_for_backward(x)
        ctx.scale, ctx.rows = scale, rows
        return x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with tj.no_grad():
            slope = x.cos()
        return grad * x * (2 * ctx.scale + ctx.rows) + grad * slope, None, None


def functions_and_second_derivatives(jit):
    f = jit(lambda x, scale: Exp.apply(x.sin()) * x + Scaled.apply(Exp.apply(x), scale, len(x)))
    calls = ((0.5, (0.5, 1.0)), (0.5, (0.1, 0.2, 0.3)), (1.5, (1.0, 0.5)))
    return [twice(lambda x, scale=scale: f(x, scale), leaf(*values)) for scale, values in calls]


class Once(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @tj.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


def functions_that_cannot_be_differentiated_twice(jit):
    f = jit(lambda x: Once.apply(x))
    out = []
    for _ in range(3):
        x, v = leaf(1.0, 2.0), leaf(1.0, 1.0)
        (g,) = tj.autograd.grad(f(x), x, v, create_graph=True)
        out += [g.detach(), g.requires_grad, tried(tj.autograd.grad, g.sum(), v)]
    return out


def hooks_see_whether_gradients_have_a_history(jit):
    @jit
    def f(x):
        h = x * x
        h.register_hook(lambda g: g * (5 if tj.is_grad_enabled() else 2))
        k = h * 2
        k.register_hook(lambda g: g.detach() * 3)
        return k * h

    out = []
    for k in range(4):
        x = leaf(1.0, 2.0)
        out += tj.autograd.grad(f(x).sum(), x) if k % 2 else twice(f, x)
    return out


def gradient_penalty_with_a_target(jit):
    w = leaf(0.5, -1.0)

    @jit
    def f(x):
        h = (x * w).tanh()
        return ((h - h.detach() * 0.5) ** 2).sum()

    out = []
    for k in range(3):
        w.grad = None
        x = leaf(1.0 + k, 2.0)
        (g,) = tj.autograd.grad(f(x), x, create_graph=True)
        (g.norm() - 1).pow(2).backward()
        out += [g.detach(), w.grad, x.grad]
    return out


def third_derivatives_with_writes_to_parts(jit):
    @jit
    def f(x, v):
        y = x * 2
        y[0] = v * v
        y[:, 1:].mul_(x[:, 1:])
        y.t()[0].add_(v[0])
        return (y**2).sum() + y.detach().exp().mul(y).sum()

    out = []
    for n in (2, 3, 1):
        x = (tj.arange(2.0 * n).view(n, 2) / 4).requires_grad_()
        v = leaf(0.5, -0.5)
        a, b = tj.autograd.grad(f(x, v), [x, v], create_graph=True)
        c, d = tj.autograd.grad((a * a).sum() + b.sum(), [x, v], create_graph=True)
        out += [a.detach(), b.detach(), c.detach(), d.detach()]
        out += tj.autograd.grad(c.sum() + d.sum(), [x, v], allow_unused=True)
    return out


def jacobian_of_a_captured_function(jit):
    f = jit(lambda x: x**3 + x.detach() * x)
    return [tj.func.jacrev(f)(tj.arange(3.0) + k) for k in range(3)]


class Pair(tj.autograd.Function):
    """Says which of its results somebody used."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        if b is None:
            return a * 100
        if a is None:
            return b * 1000
        return a * 2 + b * 3


class Zeros(tj.autograd.Function):
    """Looks at the zeros it gets for a result that nobody used."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return tj.where(b == 0, a * 10, a) + b.exp()


class Slopes(tj.autograd.Function):
    """A gradient that does not depend on what arrives."""

    @staticmethod
    def forward(ctx, x):
        return (x > 0).float()

    @staticmethod
    def backward(ctx, grad):
        return tj.ones_like(grad) * 0.5


def functions_of_which_some_results_are_used(jit):
    def hooked(x):
        a, b = x * 2, x * 3
        a.register_hook(lambda g: tj.ones_like(g))
        return a + 0, b

    ways = (Pair.apply, Zeros.apply, lambda x: (Slopes.apply(x * 2), x * 3), hooked)
    out = []
    for way in ways:
        f = jit(way)
        for use in (lambda a, b: a + b, lambda a, b: a, lambda a, b: b, lambda a, b: b * 2):
            x = leaf(1.0, -2.0)
            out += tj.autograd.grad(use(*f(x)).sum(), x)
    return out


def gradients_of_another_dtype(jit):
    f = jit(lambda x: x * x * 3)
    out = []
    for dtype in (tj.float32, tj.float64, tj.float16, tj.float64):
        x, v = leaf(1.0, 2.0, 3.0), tj.tensor([1.0, 0.5, 2.0], dtype=dtype, requires_grad=True)
        out += tj.autograd.grad(f(x), x, v.detach())
        (g,) = tj.autograd.grad(f(x), x, v, create_graph=True)
        out += [g.detach(), *tj.autograd.grad(g.sum(), [x, v])]
    return out


def detach_between_iterations_twice(jit):
    w = leaf(0.5, -0.5)

    @jit
    def f(xs):
        h = tj.zeros(2)
        total = tj.zeros(())
        for x in xs:
            h = (h.detach() * 0.5 + x * w + h).tanh()
            total = total + (h * h).sum()
        return total

    out = []
    for n in (3, 1, 5, 3):
        y = f(tj.arange(2.0 * n).view(n, 2) / 10)
        (g,) = tj.autograd.grad(y, w, create_graph=True)
        out += [y.detach(), g.detach(), *tj.autograd.grad((g * g).sum(), w)]
    return out


def detach_in_a_side_twice(jit):
    w = leaf(0.5, 1.5)

    @jit
    def f(x):
        y = x * w * w
        d = y.detach()
        z = y * y * d if y.max() > 1 else y * y.detach()
        return (z * w).sum()

    out = []
    for s in (1.0, -1.0, 3.0, -3.0):
        (g,) = tj.autograd.grad(f(tj.tensor([s, s * 0.5])), w, create_graph=True)
        out += [g.detach(), *tj.autograd.grad(g.sum(), w)]
    return out


def second_derivative_where_a_branch_is_decided(jit):
    w = leaf(0.5, 1.5)

    @jit
    def f(x):
        y = x * w * w if x.sum() > 0 else x * 3
        z = y * y if y.max() > 1 else y * 3
        while z.norm() > 2:
            z = z * w * 0.5
        return (z * w).sum()

    out = []
    for s in (1.0, -1.0, 3.0, 1.0):
        (g,) = tj.autograd.grad(f(tj.tensor([s, s * 0.5])), w, create_graph=True)
        out += [g.detach(), g.requires_grad]
        out += tj.autograd.grad(g.sum(), w) if g.requires_grad else ()
    return out


def views_in_branches_and_loops_twice(jit):
    def program(also):
        w = (tj.arange(4.0).view(2, 2) / 5).requires_grad_()

        @jit
        def f(xs):
            turned, row = w.t(), w[0]
            h = tj.zeros(2)
            for x in xs:
                h = (x @ turned + h * row).tanh()
            if h.sum() > 0:
                h = h * row
            return also((h * h).sum())

        out = []
        for n in (3, 2, 5):
            xs = tj.arange(2.0 * n).view(n, 2) / 7
            (g,) = tj.autograd.grad(f(xs), w, create_graph=True)
            out += [g.detach(), *tj.autograd.grad((g * g).sum(), w)]
        return out

    return [program(also) for also in (lambda y: y, lambda y: y if len(str(y.item())) > 1 else -y)]


def inputs_with_hooks_twice(jit):
    f = jit(lambda x: (x**3 * x.detach()).sum())
    seen = []
    for _ in range(3):
        x = leaf(1.0, 2.0)
        x.register_hook(lambda g: seen.append(g.detach().clone()) or g * 2)
        y = x * 3
        y.register_hook(lambda g: seen.append(g.detach().clone()) or g * 5)
        z = f(y)
        (g,) = tj.autograd.grad(z, x, create_graph=True)
        g.sum().backward()
        seen.append(x.grad)
    return seen


class Noted(tj.autograd.Function):
    """Keeps its input as a plain attribute: nobody looks whether that was written."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.x = x
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        return None, grad * ctx.x


def attribute_of_a_context_is_written_later(jit):
    w = leaf(3.0, 4.0)
    f = jit(lambda x: Noted.apply(x, w).sum())
    out = []
    for k in range(4):
        x = tj.ones(2) + k
        y = f(x)
        if k % 2:
            x.mul_(10)
        out += tj.autograd.grad(y, w)
    return out


PROGRAMS = programs_in(globals())
