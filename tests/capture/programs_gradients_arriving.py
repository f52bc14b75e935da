"""Programs on gradients of which nothing was computed, of results that others hide, and of tensors
that the call wrote without a history."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import leaf
from tests.capture.program_list import programs_in


def each_result(f, leaves, given=()):
    """Gradients of the leaves after a backward of each result alone, and of all."""
    out = []
    for chosen in ((0,), (1,), (0, 1)):
        results = f(*given, *leaves)
        for x in leaves:
            x.grad = None
        sum((1 + k) * results[k].sum() for k in chosen).backward()
        out.append([None if x.grad is None else x.grad.clone() for x in leaves])
    return out


def edges():
    return tj.tensor([0.0, 1.0, 2.5, 4.0], requires_grad=True)


def quotient_beside_a_copy(jit):
    f = jit(lambda x: (x.clone(), tj.div(x, 2, rounding_mode="floor")))
    return [each_result(f, [edges()]) for _ in range(2)]


def rounded_where_slopes_are_infinite(jit):
    f = jit(lambda x: (x * 1, x.log().floor()))
    g = jit(lambda x: (x.sqrt().round(), x * 2))
    return [each_result(h, [edges()]) for _ in range(2) for h in (f, g)]


def rounded_between_results(jit):
    @jit
    def f(x):
        h = (x * 2).floor()
        return h, h.sign() * x.sqrt()

    return [each_result(f, [edges()]) for _ in range(2)]


def overwritten_beside_what_it_was_made_of(jit):
    @jit
    def f(x):
        y = x.sqrt()
        z = y * 3
        z.zero_()
        return z * z, x * 1

    return [each_result(f, [edges()]) for _ in range(2)]


def hook_that_gives_a_constant(jit):
    @jit
    def f(x):
        h = x.sqrt()
        h.register_hook(lambda g: tj.ones(4))
        return x * 3, h * 2

    return [each_result(f, [edges()]) for _ in range(2)]


def hook_that_adds_a_constant(jit):
    @jit
    def f(x):
        h = x * 2
        h.register_hook(lambda g: g + 1)
        return h, h * 3

    return [each_result(f, [edges()]) for _ in range(2)]


class Ones(tj.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return tj.ones(4)


def function_that_ignores_its_gradient(jit):
    @jit
    def f(x):
        return x * 5, Ones.apply(x.sqrt())

    @jit
    def g(x):
        y = Ones.apply(x)
        return y, Ones.apply(y) * x

    return [each_result(h, [edges()]) for _ in range(2) for h in (f, g)]


def rounded_on_one_side(jit):
    @jit
    def f(c, x):
        if c.sum() > 0:
            y = x.sqrt().floor()
        else:
            y = x * 2
        return y, x * 3

    return [each_result(f, [edges()], (tj.tensor(c),)) for c in (1.0, -1.0)]


def without_a_derivative(jit):
    @jit
    def f(x):
        return x * 2, tj.floor_divide(x, 2)

    out = []
    for k in range(3):
        x = edges()
        doubled, quotient = f(x)
        out += [quotient.requires_grad, quotient.detach()]
        try:
            (quotient.sum() if k else doubled.sum() + quotient.sum()).backward()
        except RuntimeError as error:
            out.append(str(error))
        doubled.sum().backward()
        out.append(x.grad)
    return out


def leaf_of_which_a_loop_asks_places_alone(jit):
    """Nothing flows to it through the loop: what it gets elsewhere does not wait for that."""

    @jit
    def f(x, ranked):
        for row in ranked:
            x = x + row.argmin()
        return tj.floor_divide(x, 2)

    out = []
    for k in range(3):
        x, ranked = edges(), (tj.arange(20.0).view(4, 5) % (k + 3)).requires_grad_()
        y = f(x, ranked)
        try:
            (y.sum() + (ranked * 2).sum()).backward()
        except RuntimeError as error:
            out.append(str(error))
        out += [y.detach(), x.grad, ranked.grad]
    return out


def chosen_leaf_where_a_segment_ends_without_grad(jit):
    @jit
    def f(x, y, limit):
        chosen = x if y.sum() > limit else y
        with tj.no_grad():
            k = 0
            while k < 3 and y.sum() < 1:
                k += 1
                y, x = x, y
        return (chosen * chosen).sum() + y.sum()

    out = []
    for limit in (-5.0, 100.0, -100.0):
        x, y = leaf(1.0, 2.0), leaf(0.5, -3.0)
        f(x, y, limit).backward()
        out += [x.grad, y.grad]
    return out


def weight_shrunk_before_its_use(jit):
    w = tj.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    @jit
    def f(x):
        with tj.no_grad():
            w.mul_(0.5)
        return ((x @ w).tanh() * w).sum()

    out = []
    for k in range(3):
        f(tj.ones(2, 2) + k).backward()
        out += [w.grad.clone(), w.detach().clone(), w._version]
    return out


def written_through_detach_and_data(jit):
    def by_detach(x):
        x.detach().mul_(3)
        return x * x

    def by_data(x):
        x.data.mul_(3)
        return x.exp()

    def by_a_piece(x):
        x.detach()[0].zero_()
        first, second = x.split(1)
        return first * second * second

    out = []
    for program in (by_detach, by_data, by_a_piece):
        f = jit(program)
        leaf = tj.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
        for k in range(3):
            x = leaf * 1 if k else leaf
            f(x).sum().backward()
            out += [leaf.grad.clone(), x.detach().clone(), x._version]
    return out


def second_derivative_of_what_was_written(jit):
    @jit
    def f(x):
        before = x.detach() * 2
        x.detach().add_(1)
        return (x * x * x * before).sum()

    out = []
    for k in range(3):
        x = tj.tensor([1.0, 2.0], requires_grad=True) * (k + 1)
        (first,) = tj.autograd.grad(f(x), x, create_graph=True)
        out += [first, *tj.autograd.grad(first.sum(), x)]
    return out


def chain_behind_what_was_written(jit):
    @jit
    def f(x):
        x.detach().mul_(3)
        last = x.split(2, 0)[-1]
        product = last @ last
        return product, product * product + last

    out = []
    for _ in range(3):
        leaf = tj.ones(4, 2, requires_grad=True)
        product, total = f(leaf * 1)
        product.register_hook(lambda g: g * 2)
        total.sum().backward()
        out.append(leaf.grad)
    return out


def data_written_after_a_call_that_wrote_it(jit):
    def kept_alone(x):
        x.detach().mul_(2)
        return x * x

    def kept_in_pieces(x):
        x.detach()[0].mul_(2)
        return x[0] * x[1]

    def kept_twice(x):
        y = x.exp()
        x.data.copy_(y)
        return y * 2, x * x

    def kept_as_a_result_of_its_own(x):
        x.data.add_(1)
        y = x * 1
        return y * y, x.exp()

    out = []
    for program in (kept_alone, kept_in_pieces, kept_twice, kept_as_a_result_of_its_own):
        f = jit(program)
        for k in range(3):
            leaf = tj.tensor([[0.1, 0.4], [0.2, 0.3]], requires_grad=True)
            x = leaf.t() if k else leaf
            made = f(x)
            x.data.mul_(3)
            sum(y.sum() for y in ([made] if isinstance(made, tj.Tensor) else made)).backward()
            out += [leaf.grad, x.detach()]
    return out


def calls_that_write_before_one_backward(jit):
    w = tj.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)

    @jit
    def f(x):
        w.data.mul_(2)
        return x @ w * w.sum()

    out = []
    for k in range(2):
        x = tj.ones(2, 2, requires_grad=True)
        sum(f(x) + f(x * (k + 2)) for _ in range(2)).sum().backward()
        out += [x.grad, w.grad.clone(), w._version]
    return out


def result_written_before_the_backward(jit):
    w = tj.tensor([[3.0, 4.0]], requires_grad=True)
    f = jit(lambda x: ((x * 2).sum(), w.norm()))
    out = []
    for k in range(3):
        x = tj.ones(2, requires_grad=True)
        total, norm = f(x)
        if k:
            norm.detach().add_(1)
        try:
            (total + norm).backward()
        except RuntimeError as error:
            out.append("modified by an inplace operation" in str(error))
        out += [x.grad, w.grad]
    return out


def results_and_their_data_written_before_a_backward(jit):
    def both(x, w):
        h = x @ w
        return h, h.exp(), h.relu() * h

    def detached(x, w):
        h = x * 2
        return h, h.detach() * x, h.view(-1) * w.sum()

    def by_data_of_its_own(x, w):
        h = x * 2
        d = h.data
        d.mul_(3)
        return h * h, d, h

    def norms(x, w):
        y = x * w.sum()
        y.detach().mul_(2)
        return y.norm(), w.norm(), y

    out = []
    for program in (both, detached, by_data_of_its_own, norms):
        f = jit(program)
        for k in range(4):
            x = (tj.ones(2, 2) + k).requires_grad_()
            w = tj.tensor([[0.5, -0.2], [0.3, 0.4]], requires_grad=True)
            results = f(x, w)
            for r in results:
                (r.data if k % 2 else r.detach()).mul_(2)
            total = sum(r.sum() for r in results if r.requires_grad)
            try:
                total.backward()
            except RuntimeError as error:
                out.append("modified by an inplace operation" in str(error))
            out += [x.grad, w.grad, [[r.detach().clone(), r._version] for r in results]]
    return out

def history_that_is_kept_if_there_is_no_iteration(jit):
    def replaced(x, y, limit):
        while limit.sum() <= 3:
            limit = limit + 1
            x = y * 1
        return x * 2

    def after_a_detour(x, y, limit):
        for _ in range(2):
            while limit.sum() <= 3:
                limit = limit + 1
                x = y = y * 1
            y = y.detach()
        return x * 2

    def unless_broken(x, y, limit):
        for k in range(5):
            if k > limit.sum():
                break
            x = y * k
        return x * 2

    out = []
    for body in (replaced, after_a_detour, unless_broken):
        f = jit(body)
        for limit in (-3.0, 5.0, 3.0):
            w = leaf(1.0, 2.0)
            z = f(w * 1, tj.ones(2), tj.tensor([limit]))
            out += [z.detach(), z.requires_grad, z.requires_grad and grad_of(z, w)]
    return out


def grad_of(y, x):
    return tj.autograd.grad(y.sum(), x)


def leaves_that_one_iteration_reads_and_the_next_forgets(jit):
    def of_the_last(x, y, rows):
        z = x * 1
        for _ in rows:
            z, y = y + x, x.flip(0)
        return z

    def beside(x, y, rows):
        z, last = x * 1, []
        for _ in rows:
            z, y = y + x, x * 2
            last.append(z)
        return y, z, last

    def three_deep(x, y, rows):
        a, b, c = x * 1, x * 2, y * 3
        for _ in rows:
            a, b, c = b * 2, c * 2, x * 2
        return a

    out = []
    for body in (of_the_last, beside, three_deep):
        f = jit(body)
        for rows in (16, 16, 2, 1):
            v, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
            found = f(v * 1, w * 1, tj.ones(rows, 2))
            tj.stack([x.sum() for x in flat(found)]).sum().backward()
            out += [v.grad, w.grad]
    return out


def flat(x):
    return [t for part in x for t in flat(part)] if isinstance(x, (tuple, list)) else [x]


PROGRAMS = programs_in(globals())
