"""Programs whose sides do more than compute: they write, raise, bind, append, differ in type.

Each calls its function with inputs that take every side, and shows results and what the caller's
objects hold.
"""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import filled, tried
from tests.capture.program_list import programs_in
from tracejit import nn

SIDES = ([1.0, 2.0], [-3.0, 1.0], [0.0, 0.0], [5.0, -1.0])


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
    model = filled(nn.Linear(3, 2))
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
            out.append(["refused", error])
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
            out.append(["refused", error])
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
            out.append(["refused", error])
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


class Note(str):
    pass


def equal_constants_that_differ(jit):
    """Each side gives a constant that equals the other's and is told from it."""
    one, two = Note("n"), Note("n")
    one.more, two.more = "first", "second"

    @jit
    def keys(x):
        d = {1: x, 0.0: x * 2} if x.sum() > 0 else {True: -x, -0.0: x * 3}
        return d, repr(list(d))

    @jit
    def returned(x):
        if x.sum() > 0:
            return {2: x + 1}
        return {2.0: x - 1}

    @jit
    def others(x):
        if x.sum() > 0:
            note, zero, numbers, y = one, 0j, range(0, 3, 2), x
        else:
            note, zero, numbers, y = two, complex(0.0, -0.0), range(0, 4, 2), -x
        return y, note.more, repr(zero), repr(numbers)

    return [f(tj.tensor(values)) for f in (keys, returned, others) for values in SIDES]


class Asked:
    def __init__(self, holds):
        self.holds, self.times = holds, 0

    def __bool__(self):
        self.times += 1
        return self.holds


def truth_of_an_object_is_asked_once(jit):
    @jit
    def f(x, a):
        if a and x.sum() > 0:
            x = x * 2
        while a or x.sum() > 9:
            return x
        return x + 1

    out = []
    for values in SIDES:
        for holds in (True, False):
            a = Asked(holds)
            out += [f(tj.tensor(values), a), a.times]
    return out


def missing_item_before_an_unbound_name(jit):
    @jit
    def f(x):
        d = {}
        if x.sum() > 100:
            later = 1
        try:
            d["k"] += later
        except (KeyError, UnboundLocalError) as e:
            return type(e).__name__
        return x

    return [f(tj.tensor(values)) for values in SIDES]


def chain_of_identities(jit):
    @jit
    def f(x, a, b):
        y = a if x.sum() > 0 else b
        if a is not y is b:
            x = x + 1
        return x, y is a is not None, y is not a is not b

    a, b = tj.ones(3), tj.zeros(3)
    return [f(tj.tensor(values), a, b) for values in SIDES]


def chosen_tensor_is_looked_for(jit):
    """Containers find a tensor by which one it is, whatever it holds."""

    @jit
    def f(x, a, b):
        y = a if x.sum() > 0 else b
        return y in [a], y in (b, a), y not in {a}

    @jit
    def g(x, a, b):
        names = {a: "a", b: "b"}
        y = a if x.sum() > 0 else b
        return names.get(y, "none"), names[y], id(y) == id(a), (a, b).count(y) if y is a else -1

    a, b = tj.tensor([1.0, float("nan")]), tj.tensor(float("nan"))
    pairs = ((a, a * 2), (b, b * 1))
    return [tried(h, tj.tensor(v), *ab) for h in (f, g) for ab in pairs for v in SIDES]


def exception_made_before_is_raised(jit):
    """The very object, whose context stays as it was."""
    error = ValueError("same")

    @jit
    def f(x):
        if x.sum() > 0:
            raise error
        return x

    out = [tried(f, tj.tensor(values)) for values in SIDES]
    return [(found is error, found) for found in out], error.__context__


PROGRAMS = programs_in(globals())
