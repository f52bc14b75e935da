"""Programs that branch on tensors: early returns, nesting, modules, gradients.

Each calls its function with inputs that take every side, and shows results, gradients and what the
caller's tensors hold.
"""

from __future__ import annotations

import collections

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit import nn

SIDES = ([1.0, 2.0], [-3.0, 1.0], [0.0, 0.0], [5.0, -1.0])
Pair = collections.namedtuple("Pair", "first second")


def leaf(values):
    return tj.tensor(values, requires_grad=True)


def with_gradients(f, inputs=SIDES):
    out = []
    for values in inputs:
        x = leaf(values)
        y = f(x)
        y.sum().backward()
        out += [y, x.grad]
    return out


def if_else(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    return with_gradients(f)


def if_without_else(jit):
    @jit
    def f(x):
        y = x * 3
        if y.sum() > 0:
            y = y * y
        return y

    return with_gradients(f)


def elif_chain(jit):
    @jit
    def f(x):
        s = x.sum()
        if s > 3:
            y = x.exp()
        elif s > 0:
            y = x * 2
        elif s < -1:
            y = x.sin()
        else:
            y = x
        return y + 1

    return with_gradients(f)


def nested_branches(jit):
    @jit
    def f(x):
        if x[0] > 0:
            if x[1] > 0:
                y = x * 2
            else:
                y = x * 3
            y = y + 1
        else:
            y = x.abs()
            if x[1] > 0:
                y = y * y
        return y

    return with_gradients(f)


def early_return(jit):
    @jit
    def f(x):
        if x.sum() > 2:
            return x * 2
        y = x + 1
        if y.sum() < 0:
            return y * y
        return y - x * 0.5

    return with_gradients(f)


def both_sides_return_structures(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            return {"a": x * 2, "b": [x.sum(), 3]}
        return {"a": x - 1, "b": [x.mean(), 3]}

    return [f(tj.tensor(v)) for v in SIDES]


def returned_named_tuple(jit):
    @jit
    def f(x):
        return Pair(x + 1, x.sum()) if x.sum() > 0 else Pair(x - 1, x.mean())

    return [tuple(f(tj.tensor(v))) for v in SIDES]


def ternaries(jit):
    @jit
    def f(x):
        y = x * 2 if x.sum() > 0 else x - 1
        return (y if y[0] > y[1] else -y) + (1 if x.shape[0] == 2 else 2)

    return with_gradients(f)


def and_or_not(jit):
    @jit
    def f(x):
        if x[0] > 0 and x[1] > 0:
            y = x * 2
        elif x[0] > 0 or not x[1] > 0:
            y = x * 3
        else:
            y = x * 5
        if not (x[0] > 1 or x[1] > 1) and x.shape[0] == 2:
            y = y + 1
        return y

    return with_gradients(f)


def chained_comparison(jit):
    @jit
    def f(x):
        if -2 < x.sum() <= 3:
            return x * 2
        return x * 7

    return with_gradients(f)


def truth_of_a_number_tensor(jit):
    @jit
    def f(x):
        if x.sum():
            return x + 1
        return x - 1

    return [f(tj.tensor(v)) for v in SIDES] + [f(tj.tensor([0.0])), f(tj.tensor([float("nan")]))]


def truth_of_several_elements_is_an_error(jit):
    @jit
    def f(x):
        if x > 0:
            return x
        return -x

    out = []
    for values in ([1.0], [1.0, 2.0], []):
        try:
            out.append(f(tj.tensor(values)))
        except RuntimeError as error:
            out.append(error)
    return out


def gradients_of_several_parameters(jit):
    a, b = leaf([1.0, 2.0]), leaf([3.0, -1.0])

    @jit
    def f(x):
        if x.sum() > 0:
            return (a * x).sum()
        return (b * x * a.detach()).sum()

    out = []
    for values in SIDES:
        f(tj.tensor(values)).backward()
        out += [None if t.grad is None else t.grad * 1 for t in (a, b)]
    return out


def branch_in_no_grad(jit):
    @jit
    def f(x):
        with tj.no_grad():
            if x.sum() > 0:
                y = x * 2
            else:
                y = x * 3
        z = x * y
        return z

    return with_gradients(f)


def side_detaches(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            y = x.detach() * x
        else:
            y = x * 4
        return y

    return with_gradients(f)


def only_one_side_requires_grad(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = tj.ones(2)
        return y * x

    return with_gradients(f)


def called_function_branches(jit):
    def positive(x):
        if x.sum() > 0:
            return x
        return -x

    @jit
    def f(x):
        return positive(x * 2) + positive(x - 5)

    return with_gradients(f)


def module_that_branches(jit):
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(tj.tensor([2.0, 3.0]))

        def forward(self, x):
            if x.sum() > 0:
                return x * self.weight
            return x / self.weight

    model = nn.Sequential(Gate(), Gate())
    f = jit(lambda x: model(x))
    out = with_gradients(f)
    return [*out, model[0].weight.grad, model[1].weight.grad]


def lambda_with_a_ternary(jit):
    f = jit(lambda x: x * 2 if x.sum() > 0 else x * 3)
    return with_gradients(f)


def second_derivatives(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            return (x * x * x).sum()
        return (x.sin() * x).sum()

    out = []
    for values in SIDES:
        x = leaf(values)
        (g,) = tj.autograd.grad(f(x), x, create_graph=True)
        (h,) = tj.autograd.grad(g.sum(), x)
        out += [g, h]
    return out


def gradient_inside(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            y = (x * x).sum()
        else:
            y = (x * 3).sum()
        y.backward()
        return y

    out = []
    for values in SIDES:
        x = leaf(values)
        out += [f(x), x.grad]
    return out


def batch_of_none(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    return [f(tj.ones(n, 2)) for n in (0, 1, 2, 5, 0)]


PROGRAMS = programs_in(globals())
