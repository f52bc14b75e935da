"""Programs on what histories keep and free: backwards one after the other, writes in between, and
gradients as they lie in memory."""

from __future__ import annotations

import random

import tracejit as tj
from tests.capture.program_list import programs_in

F = tj.nn.functional


def leaf(*values):
    return tj.tensor(values, requires_grad=True)


def tried(f, *args, **kwargs):
    """What a call gives, or that it raises."""
    try:
        return f(*args, **kwargs)
    except RuntimeError:
        return "RuntimeError"


def told(*tensors):
    return [[t.detach().clone(), t._version, t.requires_grad, t.is_leaf, t.grad_fn is None,
             t.grad if t.is_leaf else None] for t in tensors]


class Cube(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


def penalty_after_the_loss_was_freed(jit):
    w = leaf(1.0, 2.0)
    f = jit(lambda x: (x * w).tanh().sum())
    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        loss = f(x)
        (g,) = tj.autograd.grad(loss, w, create_graph=True)
        penalty = (g * g).sum()
        loss.backward()
        out += [tried(penalty.backward), *told(x, w)]
        loss = f(x)
        (g,) = tj.autograd.grad(loss, w, create_graph=True)
        out += [tried((g * g).sum().backward), tried(loss.backward), w.grad.clone()]
    return out


def graph_of_gradients_without_the_graph(jit):
    w = leaf(1.0, 2.0)
    f = jit(lambda x: (x * w).tanh().sum())
    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        loss = f(x)
        (g,) = tj.autograd.grad(loss, w, create_graph=True, retain_graph=False)
        out += [g.detach(), tried(lambda g=g, x=x: tj.autograd.grad(g.sum(), x))]
        out.append(tried(lambda y=loss: tj.autograd.grad(y, w)))
    return out


def weights_moved_between_derivatives(jit):
    w, v = leaf(1.0, 2.0), leaf(0.5, -0.5)

    @jit
    def f(x):
        return ((x * w).tanh() * v).sum()

    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        for moved, to in ((w, x), (w, v), (v, w), (v, x)):
            loss = f(x)
            (g,) = tj.autograd.grad(loss, to, create_graph=True)
            with tj.no_grad():
                moved.add_(0.25)
            out += [g.detach(), tried(lambda g=g, x=x: tj.autograd.grad(g.sum(), x))]
            out.append(tried(lambda y=loss, to=to: tj.autograd.grad(y, to, create_graph=True)))
    return out


def backwards_in_any_order(jit):
    """Of the functions in this file, with an order drawn anew for each."""
    chosen = random.Random(5)
    out = []
    for function in (_tanh, _chain, _cubes, _sides, _two, _views):
        f = jit(function)
        w, v = leaf(0.3, 0.7), leaf(0.5, -0.2)
        for k in range(6):
            x = (tj.ones(2) * (1 + k)).requires_grad_()
            ys = f(x, w, v)
            _ask(chosen, [x, w, v], [*ys], out)
            w.grad = v.grad = None
    return out


def _ask(chosen, leaves, ys, out):
    known = [*ys]
    for _ in range(6):
        y, xs = chosen.choice(known), chosen.sample([*leaves, *ys], 2)
        how = chosen.choice(
            [{}, {"retain_graph": True}, {"create_graph": True}, {"create_graph": True},
             {"create_graph": True, "retain_graph": False}])
        try:
            if chosen.random() < 0.3:
                (y * y).sum().backward(**how)
                out.append([t.grad if t.grad is None else t.grad.detach() for t in leaves])
                for t in leaves:
                    t.grad = None
                continue
            found = tj.autograd.grad((y * y).sum(), xs, allow_unused=True, **how)
            out.append([g if g is None else g.detach() for g in found])
            known += [g for g in found if g is not None and g.requires_grad]
        except RuntimeError:
            out.append("RuntimeError")
            return


def _tanh(x, w, v):
    return (((x * w).tanh() * v).sum(),)


def _chain(x, w, v):
    h = (x * w).tanh()
    return h, (h * v).exp().sum()


def _cubes(x, w, v):
    h = Cube.apply(x * w)
    return h, (h + v).sum(), (h * v).sin().sum()


def _sides(x, w, v):
    if x.sum() > 3:
        y = (x * w).sin()
    else:
        y = (x * v).exp()
    return y, (y * w).sum()


def _two(x, w, v):
    h = x * w
    a, b = h.exp(), h * v
    return a, b, (a * b).sum()


def _views(x, w, v):
    h = (x * w).view(2, 1)
    product = h @ v.view(1, 2)
    product[0] = product[1] * w
    return h, product.sum()


def written_through_data_before_the_backward(jit):
    w, b = leaf(1.0, 2.0), leaf(3.0, 4.0)

    @jit
    def f(x):
        return ((x * w).sin() + b).exp()

    @jit
    def halve():
        w.data.div_(2)

    out = []
    for k in range(4):
        x = (tj.arange(2.0) * 0.1 - k).requires_grad_()
        y = f(x)
        w.data.mul_(2)
        b.data.add_(1)
        y.sum().backward()
        out += told(w, b, x)
        y = f(x)
        halve()
        (g,) = tj.autograd.grad(y.sum(), x, create_graph=True)
        out += [g.detach(), *tj.autograd.grad(g.sum(), [x, w])]
        w.grad = b.grad = None
    return out


def written_through_numpy_before_the_backward(jit):
    w = leaf(1.0, 2.0)
    array = w.detach().numpy()

    @jit
    def f(x):
        return ((x * w).sin()).exp().sum()

    out = []
    for k in range(4):
        x = (tj.arange(2.0) * 0.1 - k).requires_grad_()
        y = f(x)
        array *= 2
        y.backward()
        out += told(x, w)
        array /= 2
    return out


def saved_elsewhere_and_moved(jit):
    w = leaf(0.4, 0.9)

    @jit
    def f(x):
        u = w * 2
        return u.sin().sum(), (x * w).sum()

    out = []
    for k in range(4):
        x = (tj.ones(2) + k).requires_grad_()
        one, other = f(x)
        with tj.no_grad():
            w.add_(0.5)
        out += [tried(one.backward), tried(other.backward), *told(w)]
        w.grad = None
    return out


def gradients_as_they_lie_in_memory(jit):
    w = (tj.arange(6.0).view(2, 3) * 0.1).requires_grad_()

    def transposed(x):
        return x.transpose(0, 1), w.reshape(3, 2), w + 0

    def parts(x):
        return x[:, 1:], w[0], *x.split(1), *w.unbind(1)

    def sums(x):
        return w.sum(0), w.sum(), x.sum(1, keepdim=True)

    def several(x):
        return x + w, x - w, w.view(6)

    def chain(x):
        h = x + w
        return h, h.t(), h.t().sum(0)

    def joined(x):
        return tj.stack([x, w]), tj.cat([x, w], 1)

    out = []
    for function in (transposed, parts, sums, several, chain, joined):
        f = jit(function)
        for k in range(3):
            x = (tj.arange(6.0).view(2, 3) - k).requires_grad_()
            ys = f(x)
            for y in ys:
                g = tj.ones_like(y)
                out += [g, *tj.autograd.grad(y, [x, w], g, allow_unused=True, retain_graph=True)]
            total = sum(y.sum() for y in ys)
            out += tj.autograd.grad(total, [x, w], allow_unused=True, retain_graph=True)
            total.backward()
            out += [x.grad, w.grad]
            w.grad = None
    return out


def gradient_that_is_the_one_given(jit):
    w = leaf(1.0, 2.0)

    @jit
    def f(x):
        return x + w, x - 1

    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        y, z = f(x)
        g = tj.ones(2)
        gx, gw = tj.autograd.grad(y, [x, w], g)
        gx.mul_(3)
        out += [g, gx, gw]
        y, z = f(x)
        g = tj.ones(2)
        y.backward(g)
        g.mul_(5)
        x.grad.add_(1)
        out += [g, x.grad, w.grad]
        w.grad = None
    return out


def hooks_see_gradients_as_they_lie(jit):
    w = (tj.arange(6.0).view(2, 3) * 0.1).requires_grad_()
    seen = []
    w.register_hook(seen.append)

    @jit
    def f(x):
        return x + w, w.t(), w.sum()

    for k in range(3):
        x = (tj.arange(6.0).view(2, 3) - k).requires_grad_()
        x.register_hook(seen.append)
        for part in f(x):
            part.sum().backward()
        a, b, c = f(x)
        (a.sum() + b[0].sum() + c).backward()
        seen += [w.grad.clone(), x.grad]
    return seen


class Doubled(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def function_that_marks_what_it_wrote(jit):
    w = leaf(1.0, 2.0)

    @jit
    def f(x):
        h = x * w
        doubled = Doubled.apply(h)
        return h, doubled, doubled.sin().sum()

    @jit
    def of_an_argument(x):
        return (Doubled.apply(x) * w).sum()

    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        h, doubled, loss = f(x)
        out += [h is doubled, *told(h, doubled, loss)]
        loss.backward()
        given = tj.ones(2) + k
        loss = of_an_argument(given)
        out += told(x, w, given, loss)
        loss.backward()
        out += told(w)
    return out


class Product(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        product = x * y
        ctx.save_for_backward(x, y, product)
        return product, x + y

    @staticmethod
    def backward(ctx, grad, other):
        x, y, _ = ctx.saved_tensors
        return grad * y + other, grad * x + other


def result_that_a_function_saved_is_written(jit):
    w, v = leaf(0.3, 0.7), leaf(0.5, -0.2)

    @jit
    def f(x):
        a, b = Product.apply(x * w, v)
        return a, b, a * b

    out = []
    for k in range(3):
        for number in range(3):
            ys = f((tj.ones(2) + k).requires_grad_())
            with tj.no_grad():
                ys[0].mul_(2)
            out += [tried(ys[number].sum().backward), w.grad, v.grad]
            w.grad = v.grad = None
    return out


def results_among_the_inputs_of_a_backward(jit):
    w = leaf(1.0, 2.0)

    @jit
    def f(x):
        h = x * w
        return h, h.exp(), h + 1

    @jit
    def inside(x):
        h = x * w
        (h * h).sum().backward(inputs=[h, w])
        return h.grad * 2

    out = []
    for k in range(3):
        x = (tj.ones(2) * 0.1 * k).requires_grad_()
        h, y, z = f(x)
        (y * z).sum().backward(inputs=[h, x], retain_graph=True)
        out += [h.retains_grad, h.grad.clone(), x.grad, w.grad]
        z.sum().backward(inputs=[h])
        out += [h.grad, tried((y * y).sum().backward, inputs=[h]), h.grad]
        out += [tried(y.sum().backward), w.grad, inside(tj.ones(2) + k), w.grad.clone()]
        w.grad = None
    return out


def retained_gradients_of_views_that_are_written(jit):
    @jit
    def f(x):
        y = x * 2
        return y, y[:1]

    out = []
    for k in range(3):
        for of_view, through_view in ((True, True), (True, False), (False, True)):
            x = leaf(1.0 + k, 2.0)
            y, view = f(x)
            (view if of_view else y).retain_grad()
            (view if through_view else y).mul_(3)
            out += [y.retains_grad, view.retains_grad]
            (view * view).sum().backward()
            kept = view if of_view else y
            out += [kept.retains_grad, kept.grad if kept.retains_grad else None, x.grad]
    return out


def ways_that_need_nothing_of_what_was_freed(jit):
    w, v = leaf(0.3, 0.7), leaf(0.5, -0.2)

    @jit
    def f(x):
        h = x * w
        return h.exp(), h + v

    out = []
    for k in range(3):
        x = (tj.ones(2) + k).requires_grad_()
        a, b = f(x)
        a.sum().backward()
        out += [w.grad, *tj.autograd.grad((b * b).sum(), [v], create_graph=True)]
        out += [tried(tj.autograd.grad, b.sum(), [x])]
        b.sum().backward(inputs=[v])
        out += [v.grad]
        w.grad = v.grad = None
    return out


def part_of_a_call_after_the_rest_is_freed(jit):
    @jit
    def f(x):
        c = tj.view_as_complex(x * 1)
        c.mul_(2)
        return c.real, c.imag, c.abs()

    out = []
    for _ in range(2):
        x = tj.ones(3, 2, requires_grad=True)
        for y in reversed(f(x)):
            out += [tried(y.sum().backward), x.grad.clone()]
    return out


def detached_beside_what_is_computed_again(jit):
    @jit
    def f(x):
        return F.mse_loss(x, x.detach()), F.smooth_l1_loss(x, x * 2)

    out = []
    for _ in range(2):
        x = tj.arange(1.0, 5.0).requires_grad_()
        first, second = f(x)
        x.data.mul_(2)
        first.backward()
        out.append(x.grad.clone())
        second.backward()
        out.append(x.grad)
    return out


def a_state_that_keeps_nothing_is_carried_past_a_freed_loop(jit):
    class State:
        pass

    def f(x, n, o):
        o.t = o.t + o.t.sum()
        a = o.t if n < 3 or o.t.sum() < x.sum() else o.t
        b = a.expand_as(o.t)
        for _ in range(16):
            a = a.clone()
            b = tj.where(b > 0, b, o.t)
        return b

    f, o, out = jit(f), State(), []
    w = o.t = leaf(1.0, 2.0, -3.0)
    for _ in range(4):
        y = f(tj.ones(3), 5, o)
        out += [tried(y.sum().backward), w.grad.clone(), tried(y.sum().backward)]
    return out


def results_that_writes_to_views_keep(jit):
    def twice(y):
        v = y.view(-1)
        v.tanh_()
        y.tanh_()

    def other_elements(y):
        y[:2].tanh_()
        y[2:].tanh_()

    def scaled(y):
        v = y[:2]
        v.exp_()
        v.mul_(2)

    def unseen(y):
        y[:2].sigmoid_()
        y.data.mul_(2)

    def chosen(y):
        v = y * 2 if y[0] > 3 else y
        v.tanh_()
        v = y * 2 if y[1] > 3 else y
        v.tanh_()

    def in_a_loop(y):
        for row in y:
            v = y * 2 if row > 1 else y
            v.tanh_()

    def unread(y):
        y[:2].tanh_()
        y.add(1)

    out = []
    for body in (twice, other_elements, scaled, unseen, chosen, in_a_loop, unread):
        f = jit(lambda x, body=body: (y := x * 1, body(y), y)[-1])
        for values in ((1.0, 1.0, 2.0), (5.0, 0.5, 2.0), (5.0, 5.0, 5.0), (1.0, 5.0, 2.0)):
            x = leaf(*values)
            y = f(x)
            out += [y.detach().clone(), tried(lambda y=y, x=x: grads_to_second_order(y, x))]
    return out


def grads_to_second_order(y, x):
    (g,) = tj.autograd.grad(y.sum(), x, create_graph=True)
    return g.detach(), tj.autograd.grad(g.sum(), x, allow_unused=True) if g.requires_grad else None


PROGRAMS = programs_in(globals())
