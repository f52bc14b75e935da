"""Programs that branch on tensors: early returns, nesting, effects in a side, gradients, aliases.

Each calls its function with inputs that take every side, and shows results, gradients and what the
caller's tensors hold.
"""

from __future__ import annotations

import collections

import tracejit as tj
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
            out.append(str(error))
    return out


def branch_writes_an_input(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            x.mul_(2)
        else:
            x[0] = 7
            x.add_(1)
        return x.sum()

    out = []
    for values in SIDES:
        x = tj.tensor(values)
        out += [f(x), x, x._version > 0]
    return out


def branch_writes_a_view(jit):
    @jit
    def f(x):
        row = x[0]
        if x.sum() > 0:
            row.zero_()
        return x * 1, row * 1

    out = []
    for sign in (1.0, -1.0):
        x = tj.ones(2, 3) * sign
        out += [f(x), x]
    return out


def clipping_by_norm(jit):
    w = tj.ones(3) * 4

    @jit
    def f(x):
        w.grad = x * 1
        norm = w.grad.norm()
        if norm > 1.0:
            w.grad.mul_(1.0 / norm)
        return norm

    out = []
    for values in ([0.1, 0.2, 0.0], [3.0, 4.0, 0.0]):
        out += [f(tj.tensor(values)), w.grad]
    return out


def clipped_step(jit):
    tj.manual_seed(3)
    model = nn.Linear(3, 2)
    optimizer = tj.optim.SGD(model.parameters(), lr=0.1)

    @jit
    def step(x, y, limit):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).sum()
        loss.backward()
        norm = tj.sqrt(sum((p.grad * p.grad).sum() for p in model.parameters()))
        if norm > limit:
            for p in model.parameters():
                p.grad.mul_(limit / norm)
        optimizer.step()
        return loss

    out = []
    for k in range(4):
        x = tj.arange(6.0).view(2, 3) * (k + 1)
        out += [step(x, tj.ones(2, 2), 0.5 if k % 2 else 1000.0), model.weight.detach() * 1]
    return out


def result_may_be_the_argument(jit):
    @jit
    def f(x):
        if x.norm() > 1:
            x = x / x.norm()
        return x

    out = []
    for values in ([3.0, 4.0], [0.3, 0.4], [1.0, 1.0]):
        x = tj.tensor(values)
        y = f(x)
        y.add_(1)
        out += [x, y]
    return out


def written_after_it_may_be_shared(jit):
    @jit
    def f(x):
        y = x
        if x.sum() > 0:
            y = x * 2
        y.add_(10)
        return y, x * 1

    out = []
    for values in SIDES:
        x = tj.tensor(values)
        out += [f(x), x]
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


def assertions(jit):
    @jit
    def f(x):
        assert (x > -2).all(), "too small"
        return x * 2

    out = []
    for values in SIDES:
        try:
            out.append(f(tj.tensor(values)))
        except AssertionError as error:
            out.append(["refused", str(error)])
    return out


def raising_side(jit):
    @jit
    def f(x):
        if x.sum() < 0:
            raise ValueError("negative sum")
        return x + 1

    out = []
    for values in SIDES:
        try:
            out.append(f(tj.tensor(values)))
        except ValueError as error:
            out.append(["refused", str(error)])
    return out


def raising_side_after_a_write(jit):
    @jit
    def f(x):
        x.add_(1)
        if x.sum() < 0:
            raise ValueError("negative sum")
        return x + 1

    out = []
    for values in SIDES:
        x = tj.tensor(values)
        try:
            out.append(f(x))
        except ValueError as error:
            out.append(["refused", str(error)])
        out.append(x)
    return out


def side_with_an_effect(jit):
    log = []

    @jit
    def f(x):
        if x.sum() > 0:
            log.append("up")
            return x * 2
        log.append("down")
        return x * 3

    return [f(tj.tensor(v)) for v in SIDES] + log


def side_sets_an_attribute(jit):
    class Box:
        pass

    box = Box()
    box.last = None

    @jit
    def f(x):
        if x.sum() > 0:
            box.last = x * 2
        return x + 1

    out = []
    for values in SIDES:
        out += [f(tj.tensor(values)), box.last]
    return out


def sides_of_other_types(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            return x.long()
        return x

    return [f(tj.tensor(v)) for v in SIDES]


def sides_of_other_shapes(jit):
    @jit
    def f(x):
        y = x[:1] if x.sum() > 0 else x
        return y * 2

    return [f(tj.tensor(v)) for v in SIDES]


def side_gives_none(jit):
    @jit
    def f(x):
        extra = None
        if x.sum() > 0:
            extra = x * 2
        return x if extra is None else extra

    return [f(tj.tensor(v)) for v in SIDES]


def python_number_in_a_side(jit):
    @jit
    def f(x):
        scale = 1.0
        if x.sum() > 0:
            scale = 3.0
        return x * scale, scale

    return [f(tj.tensor(v)) for v in SIDES]


def variable_of_one_side_only(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            extra = x * 2
        try:
            return extra + 1
        except UnboundLocalError:
            return x

    return [f(tj.tensor(v)) for v in SIDES]


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


def recursion_on_python_values(jit):
    @jit
    def f(x, depth):
        if depth == 0:
            return x
        if x.sum() > 0:
            return power(x * 0.5, depth - 1)
        return power(x - 1, depth - 1)

    def power(x, depth):
        if depth == 0:
            return x
        return power(x * 2 if x[0] > 0 else x + 3, depth - 1)

    return [f(tj.tensor(v), 3) for v in SIDES]


def lambda_with_a_ternary(jit):
    f = jit(lambda x: x * 2 if x.sum() > 0 else x * 3)
    return with_gradients(f)


def closure_made_in_a_side(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            act = lambda y: y * 2  # noqa: E731
        else:
            act = lambda y: y - 2  # noqa: E731
        return act(x)

    return [f(tj.tensor(v)) for v in SIDES]


def random_numbers_in_a_side(jit):
    @jit
    def f(x):
        if x.sum() > 0:
            x = x + tj.rand(2)
        return x + tj.rand(2)

    return [f(tj.tensor(v)) for v in SIDES]


def branch_on_a_parameter_that_changes(jit):
    threshold = tj.tensor(0.0)

    @jit
    def f(x):
        if x.sum() > threshold:
            return x * 2
        return x

    out = []
    for k in range(4):
        out.append(f(tj.tensor([1.0, 1.0])))
        threshold.add_(1.0 if k else 1.5)
    return out


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


PROGRAMS = [
    f for f in list(globals().values())
    if getattr(f, "__code__", None) and f.__module__ == __name__ and f.__code__.co_varnames[:1] == ("jit",)
]
