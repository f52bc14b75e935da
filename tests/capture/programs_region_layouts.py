"""Programs that see how tensors lie in memory within branches and loops, and after them: strides,
what a reshape shares."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN
from tests.capture.program_list import programs_in


def called(jit, ways, transposed=False):
    """What each way gives and leaves in its argument, for both outcomes of a test of its sum."""
    out = []
    for way in ways:
        f = jit(way)
        for values in (TAKEN, OTHER, TAKEN, OTHER):
            x = tj.tensor([values, values])
            x = x.t() if transposed else x
            out += [f(x), x]
    return out


def offsets_of_what_a_test_chooses(jit):
    def argument_or_made(x):
        y = x if x.sum() > 0 else x + 1
        return y * 2, y.storage_offset()

    def part_or_made(x):
        if x.sum() > 0:
            y = x[1:]
        else:
            y = x[:1] * 2
        return y.storage_offset(), y.stride(), y + 1

    def either_part(x):
        y = x[:, 1:] if x.sum() > 0 else x[:, :2]
        return y.storage_offset(), y * y.storage_offset()

    ways = [argument_or_made, part_or_made, either_part]
    return called(jit, ways), called(jit, ways, transposed=True)


def sides_that_give_views_of_what_they_made(jit):
    def alike(x):
        if x.sum() > 0:
            return (x * 2).t()
        return (x * 3).t()

    def one_in_order(x):
        y = (x[:, :2] * 2).t() if x.sum() > 0 else x[:, :2] * 3
        return y

    def expanded(x):
        if x.sum() > 0:
            y = x * 1
        else:
            y = x.sum().expand(2, 3)
        return y

    def read_later(x):
        y = (x * 2).t() if x.sum() > 0 else (x * 3).t()
        z = y.reshape(-1)
        z += 1
        return y, z, y.stride(), y[0].is_contiguous()

    def with_gaps(x):
        y = (x * 2)[:, 1:] if x.sum() > 0 else (x * 3)[:, 1:]
        z = y * 1
        y += 1
        return y, z

    def written(x):
        y = (x * 2).t() if x.sum() > 0 else (x * 3).t()
        y[0] += 1
        y += 1
        return y

    return called(jit, [alike, one_in_order, expanded, read_later, with_gaps, written])


def gradient_that_is_expanded_in_a_side(jit):
    def f(x):
        w = x.detach().requires_grad_()
        if x.sum() > 0:
            return (x * 1,)
        return tj.autograd.grad((w * 2).sum() + w.sum(), w) + tj.autograd.grad(w.sum(), w)

    def one(x):
        w = x.detach().requires_grad_()
        if x.sum() > 0:
            return x * 1
        (grad,) = tj.autograd.grad(w.sum(), w)
        return grad

    return called(jit, [f, one])


def iterations_that_leave_views_of_what_they_made(jit):
    def turned(x):
        y = x[:, :2]
        for _ in range(MANY):
            y = (y * 1.1).t()
        return y

    def left_behind(x):
        s = x.sum()
        for _ in range(MANY):
            q = (x * 2).t()
            s = s + q[0].sum()
        return s, q

    def turned_in_a_while(x):
        y, n = x[:, :2] * 1, 0
        while n < 3 and y.sum() > 0:
            y, n = (y - 1).t(), n + 1
        return y

    def found(x):
        for n in range(MANY):
            if x.sum() > n - 2:
                return (x * 2).t()
        return x.t() * 1

    def collected(x):
        made = []
        for _ in range(MANY):
            made.append((x * 2).t())
        return made[0], made[-1]

    return called(jit, [turned, left_behind, turned_in_a_while, found, collected])


def layouts_asked_for_in_regions(jit):
    def in_a_side(x):
        y = x * 1
        if x.sum() > 0:
            y = y * x.stride()[0] + x.is_contiguous()
        return y

    def shared_by_a_reshape(x):
        if x.sum() > 0:
            flat = x.reshape(-1)
            flat += 1

    def of_an_outer_tensor(x):
        s = x.sum()
        for _ in range(MANY):
            s = s * 0.5 + x.stride()[0]
        return s

    def of_a_variable(x):
        s, y = x.sum(), x
        for _ in range(MANY):
            s = s * 0.5 + y.stride()[0]
            y = y + 1
        return s, y

    def of_rows(x):
        s = x.sum()
        for row in x:
            s = s * 2 + row.stride()[0]
        for k in range(x.shape[0]):
            s = s * 2 + x[k].stride()[0] + x[:, -1 - k // 9].stride()[0]
        return s

    ways = [in_a_side, shared_by_a_reshape, of_an_outer_tensor, of_a_variable, of_rows]
    return called(jit, ways, transposed=True), called(jit, ways[3:])


def layouts_of_what_may_be_an_argument(jit):
    def itself(x):
        return x if x.sum() > 0 else x * 2

    def asked(x):
        y = x if x.sum() > 0 else x * 2
        return y, y.stride(), y.is_contiguous(), y.reshape(-1)

    def unchanged_by_a_while(x):
        y = x.detach()
        while y.sum() > 0:
            y = y - 1
        return y, y.stride()

    def best(x):
        best, y = x, x * 1
        for _ in range(MANY):
            y = y * 0.9
            best = y if y.sum() > best.sum() else best
        return best, best.is_contiguous()

    return called(jit, [itself, asked, unchanged_by_a_while, best], transposed=True)


def sizes_that_are_found_to_be_equal(jit):
    """One side's as a number, the other's as a product of what is not known before the call."""
    def flat(x):
        m = tj.stack([x[0], x[1]])
        return (m * 2).view(-1) if x.sum() > 0 else (m * 3).view(6)

    return called(jit, [flat])


PROGRAMS = programs_in(globals())
