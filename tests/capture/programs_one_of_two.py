"""Programs that ask which of two tensors a variable is, when a branch or a loop has chosen it.

What an op computes does not depend on it. Gradients, hooks, histories, attributes, containers and
what looks at other memory from then on do.
"""

from __future__ import annotations

import copy

import tracejit as tj
from tests.capture.program_inputs import leaf, tried
from tests.capture.program_list import programs_in

CHOICES = (1.0, -1.0, 2.0, -2.0)


def by_branch(x, c):
    return x * 2 if c.sum() > 0 else x


def by_loop(x, c):
    k = c.sum()
    while k > 0:
        x = x * 2
        k = k - 1
    return x


def by_two_branches(x, c):
    y = x
    if c.sum() > 0:
        y = x * 2
    if c.sum() < -1.5:
        y = x + 1
    return y


def over(jit, ways, tracked=True, choosers=(by_branch, by_loop, by_two_branches)):
    """What each way gives and leaves in its argument; before, or not, a value was needed."""
    out = []
    for way in ways:
        for choose in choosers:
            f = jit(way)
            for value in CHOICES:
                for asked in (False, True):
                    x = leaf(1.0, 2.0, -3.0) if tracked else tj.tensor([1.0, 2.0, -3.0])
                    result = tried(f, x, tj.tensor([value]), choose, asked)
                    out += [result, x, x.grad]
    return out


def gradients_of_one_of_two(jit):
    def of_it(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        (g,) = tj.autograd.grad((x * y).sum(), y)
        return g

    def of_a_result(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        return tj.autograd.grad((x * y).sum(), [y, x])

    def retained(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        y.retain_grad()
        (x * y).sum().backward()
        return y.grad

    def retained_of_the_other(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        x.retain_grad()
        (y * y).sum().backward()
        return y.grad, x.grad, y.retains_grad

    def of_a_leaf(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        if y.is_leaf:
            (y * y).sum().backward()
            return y.grad
        return y

    def of_some(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        (x * y).sum().backward(inputs=[y])
        return y.grad

    return over(jit, [of_it, of_a_result, retained, retained_of_the_other, of_a_leaf, of_some])


def hooks_on_one_of_two(jit):
    def on_it(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        y.register_hook(lambda g: g * 10)
        (x * y).sum().backward()
        return y

    def on_the_other(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        x.register_hook(lambda g: g * 10)
        (y * y).sum().backward()
        return y

    def on_a_leaf(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        handle = y.register_hook(lambda g: g * 10)
        (x * y).sum().backward()
        handle.remove()
        return y

    return over(jit, [on_it, on_the_other, on_a_leaf])


def histories_of_one_of_two(jit):
    def cut(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        y.detach_()
        return x.requires_grad, y.requires_grad, x is y

    def cut_from_the_other(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        x.detach_()
        return x.requires_grad, y.requires_grad, (y * 2).requires_grad

    def asked_for(x, c, choose, asked):
        x = x.detach()
        y = choose(x, c)
        if asked:
            float(c)
        y.requires_grad_()
        return x.requires_grad, y.requires_grad, y.is_leaf, y

    def compared(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        return y.grad_fn is x.grad_fn, y._base is None, y._is_view()

    def of_a_leaf(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        return y.grad_fn is None, y.is_leaf

    def written(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        y.clamp_(-1, 1)
        return x.grad_fn is y.grad_fn, x, y

    def written_through_a_view(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        y.view(-1)[0] = 5
        return x.grad_fn is y.grad_fn, x * y

    return over(jit, [cut, cut_from_the_other, asked_for, compared, of_a_leaf, written,
                      written_through_a_view])


def gradients_set_on_one_of_two(jit):
    def on_it(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        y.grad = tj.ones(3)
        return x.grad, y.grad

    def on_the_other(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        x.grad = tj.ones(3)
        return x.grad, y.grad

    def taken_away(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        x.grad = tj.ones(3)
        y.grad = None
        return x.grad, y.grad

    return over(jit, [on_it, on_the_other, taken_away], tracked=False)


def attributes_of_one_of_two(jit):
    def stored(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        y.tag = 3
        return getattr(x, "tag", None), y.tag

    def stored_in_the_other(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        x.tag = 3
        return getattr(y, "tag", None)

    def stored_in_what_goes(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        y.tag = 3
        del y
        return x * 1, getattr(x, "tag", None)

    return over(jit, [stored, stored_in_the_other, stored_in_what_goes], tracked=False)


def memory_of_one_of_two(jit):
    def replaced(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        y.data = tj.ones(3)
        return x * 1, y * 1

    def replaced_of_the_other(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        x.data = tj.ones(3)
        return x * 1, y * 1

    def turned(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        y.unsqueeze_(0)
        return x.shape, y.shape, x * 1, y * 1

    def turned_the_other(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        x.unsqueeze_(0)
        return x.shape, y.shape, x * 1, y * 1

    return over(jit, [replaced, replaced_of_the_other, turned, turned_the_other], tracked=False)


def one_of_two_in_containers(jit):
    def displayed(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        return len({x, y}), len({x: 1, y: 2}), len([t for t in {y} if t is x])

    def collected(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        return len(set([x, y])), len(frozenset((y, x))), len({t for t in (x, y)})  # noqa: C405, C416

    def found(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        known = {x: "x"}
        return known.get(y), y in known, id(x) == id(y), x is y

    return over(jit, [displayed, collected, found], tracked=False)


def optimizers_of_one_of_two(jit):
    def step(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        if not y.is_leaf:
            return y
        optimizer = tj.optim.SGD([y], lr=0.1)
        (x * y).sum().backward()
        optimizer.step()
        return x * 1, y * 1

    return over(jit, [step])


def functions_that_write_one_of_two(jit):
    class AddOne(tj.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.mark_dirty(a)
            return a.add_(1)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def written(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        z = AddOne.apply(y)
        (x * z).sum().backward()
        return x, z

    return over(jit, [written], choosers=(by_branch,))


def named_in_errors_of_one_of_two(jit):
    def of_a_branch(x, c):
        x = x * 3
        y = x
        if c.sum() > 0:
            y = x.tanh()
            x = y * y
        y.add_(1)
        return x

    def of_a_loop(x, c):
        y = x * 3
        k = c.sum()
        while k > 0:
            y = y.tanh()
            x = y * y
            k = k - 1
        y.add_(1)
        return x

    def of_what_stands_for_it(x, c):
        y = x * 2
        if not c.sum() < 0:
            y = y.sum()
        if float(y.sum()) > 3:
            return y
        x = y * y
        y.clamp_(-1, 1)
        return x

    out = []
    for way in (of_a_branch, of_a_loop, of_what_stands_for_it):
        f = jit(way)
        for value in CHOICES:
            x = leaf(0.1, 0.2, -3.0)
            y = f(x, tj.tensor([value]))
            out += [tried(y.sum().backward), x.grad]
    return out


def views_of_one_of_two(jit):
    def turned(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        v = y[0:1]
        float(c)
        w = y[1:2]
        x.unsqueeze_(0)
        v.add_(1)
        w.mul_(2)
        return x * 1, v._base is w._base, w

    def swapped(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        if asked:
            float(c)
        other = tj.ones(4)
        tj.utils.swap_tensors(y, other)
        return y is x, x * 1, y * 1, other * 1

    return over(jit, [turned, swapped], choosers=(by_branch, by_two_branches))


def one_of_two_resized(jit):
    def resized(x, c, choose, asked):
        x = x.detach() * 3
        y = choose(x, c)
        if asked:
            float(c)
        v = y[0:1]
        return isinstance(tried(x.resize_, 4), RuntimeError), v * 1

    return over(jit, [resized], choosers=(by_branch,))


def copies_of_one_of_two(jit):
    def both(x, c, choose, asked):
        x = x.detach()
        y = choose(x, c)
        if asked:
            float(c)
        a, b = copy.deepcopy((x, y))
        a.add_(1)
        return a is b, a, b

    def of_a_leaf(x, c, choose, asked):
        y = choose(x, c)
        if asked:
            float(c)
        return copy.deepcopy(y) if y.is_leaf else None

    return over(jit, [both, of_a_leaf])


def kept_after_the_call_one_of_two(jit):
    def returned(x, c, choose, asked):
        x = x * 3
        y = choose(x, c)
        float(c)
        return x, lambda: (y.requires_grad, y * 1, y.shape)

    f = jit(returned)
    out = []
    for value in CHOICES:
        x, look = f(leaf(1.0, 2.0, -3.0), tj.tensor([value]), by_branch, True)
        out.append(look())
        for change in (tj.Tensor.detach_, tj.Tensor.requires_grad_):
            change(x)
            out.append(look())
        x.requires_grad_(False).add_(1)
        out.append(look())
        x.data = tj.ones(4)
        out.append(look())
        x.unsqueeze_(0)
        out.append(look())
    return out


def attributes_before_a_choice(jit):
    def of_a_branch(x, c):
        x.tag = 3
        y = x * 2 if c.sum() > 0 else x
        return getattr(y, "tag", None), y * 1

    def of_a_loop(x, c):
        x.tag, k, y, found = 3, c.sum(), x, 0
        while k > 0:
            found = found + hasattr(y, "tag")
            y = y * 2
            k = k - 1
        return found, y

    out = []
    for f in (jit(of_a_branch), jit(of_a_loop)):
        out += [f(tj.ones(3), tj.tensor([value])) for value in CHOICES]
    return out


def parameters_chosen(jit):
    one, other = tj.nn.Parameter(tj.ones(3)), tj.nn.Parameter(tj.zeros(3))

    def or_a_result(x, c):
        y = one if c.sum() > 0 else one * 2
        return isinstance(y, tj.nn.Parameter), y * x

    def of_two(x, c):
        y = one if c.sum() > 0 else other
        return isinstance(y, tj.nn.Parameter), type(y) is tj.nn.Parameter, y * x

    def in_no_grad(x, c):
        with tj.no_grad():
            y = one if c.sum() > 0 else other
            return isinstance(y, tj.nn.Parameter), y * x

    out = []
    for f in (jit(or_a_result), jit(of_two), jit(in_no_grad)):
        out += [f(tj.ones(3), tj.tensor([value])) for value in CHOICES]
    return out


def gradients_of_carried_variables(jit):
    def of_itself(x, c):
        x, k = x * 1, c.sum()
        while k > -3:
            (g,) = tj.autograd.grad((x * x).sum(), x)
            x = x - 0.1 * g
            k = k - 1
        return x

    def with_what_it_was(x, c):
        x = x * 1
        w, k = x, c.sum()
        while k > -3:
            (g,) = tj.autograd.grad((x * w).sum(), x)
            x = x - 0.1 * g
            k = k - 1
        return x

    out = []
    for f in (jit(of_itself), jit(with_what_it_was)):
        out += [f(leaf(1.0, 2.0, -3.0), tj.tensor([value])) for value in CHOICES]
    return out


PROGRAMS = programs_in(globals())
