"""Programs in which random testing and review found a captured call to be wrong."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import MANY, OTHER, TAKEN, leaf, tried
from tests.capture.program_list import programs_in
from tests.capture.programs_region_sharing import WEIGHTS, over

F = tj.nn.functional


def gradient_of_a_call_that_writes_strided_memory(jit):
    @jit
    def f(x, w):
        x.exp_()
        return x @ w

    out = []
    for n in (5, 2):
        x, w = (tj.arange(4.0 * n).view(n, 4) / 20).t(), tj.ones(n, 3, requires_grad=True)
        f(x, w).sum().backward()
        out += [x, w.grad]
    return out


def higher_gradient_of_a_call_that_writes(jit):
    @jit
    def f(x, w):
        x.exp_()
        return w * w * x

    out = []
    for _ in range(2):
        x, w = tj.arange(3.0), tj.arange(3.0).requires_grad_()
        (first,) = tj.autograd.grad(f(x, w).sum(), w, create_graph=True)
        out += [first.detach(), *tj.autograd.grad(first.sum(), w)]
    return out


def higher_gradient_through_dropout(jit):
    @jit
    def f(x):
        return F.dropout(x * x, 0.5) * x

    out = []
    for _ in range(3):
        x = tj.arange(8.0).requires_grad_()
        (first,) = tj.autograd.grad(f(x).sum(), x, create_graph=True)
        out += [first.detach(), *tj.autograd.grad(first.sum(), x)]
    return out


def backward_programs_alike_over_other_inputs(jit):
    @jit
    def f(x, w):
        return x.sum() * w * w

    @jit
    def g(x, w):
        w.relu()  # w is met first: its sizes have other names than in f
        return x.sum() * w * w

    out = []
    for h in (f, g):
        w = tj.arange(5.0).requires_grad_()
        h(tj.arange(3.0), w).sum().backward()
        out.append(w.grad)
    return out


def write_through_view_of_no_elements_made_outside(jit):
    @jit
    def f(x):
        x.view(-1).mul_(2.0)
        (x * x).sum().backward()

    out = []
    for shape in ((6, 3, 0), (2, 3, 1), (0, 1, 1)):
        w = tj.ones(shape).requires_grad_()
        f((w * 1).view(-1))
        out.append(w.grad)
    return out


def contiguous_of_transposed_of_sizes_1(jit):
    @jit
    def f(x):
        y = x.t().contiguous()
        y.add_(1)
        return x.t().is_contiguous(), x.t().stride(), x[:, 1:].stride()

    out = []
    for shape in ((3, 2), (1, 3), (2, 1), (1, 1), (0, 3), (3, 0)):
        x = tj.zeros(4, 6)[: shape[0], ::2][:, : shape[1]]
        z = tj.zeros(shape)
        out += [x, f(x), x._version, z, f(z), z._version]
    return out


def split_into_many(jit):
    @jit
    def f(x):
        parts = x.split(2)
        return len(parts), parts[-1].shape[0], parts[0] + 1

    return [f(tj.arange(n)) for n in (4000, 4001, 3, 4, 0)]


def results_without_gradients_where_derivatives_are_infinite(jit):
    @jit
    def f(x):
        y = x**-1
        z = x.sqrt()
        return y, y * z, z.sum(), x * 3

    out = []
    for used in ((3,), (0, 3), (1, 3), (2,), (2, 3), (0, 1, 2, 3)):
        x = tj.tensor([0.0, 1.0, 2.0], requires_grad=True)
        results = f(x)
        sum([(results[k] ** 2).sum() for k in used], tj.zeros(())).backward()
        x2 = tj.tensor([0.0, 1.0, 2.0], requires_grad=True)
        loss = sum([(r**2).sum() for r in [f(x2)[k] for k in used]], tj.zeros(()))
        (first,) = tj.autograd.grad(loss, x2, create_graph=True)
        out += [x.grad, first.detach()]
        if used != (3,):
            out += [*tj.autograd.grad(first.sum(), x2)]
    return out


def number_read_from_a_tensor_with_history(jit):
    @jit
    def f(x):
        return x * tj.amax(x).item()

    out = []
    for dtype in (tj.float32, tj.float64):
        x = tj.arange(3.0, dtype=dtype).requires_grad_()
        for _ in range(2):
            y = f(x)
            y.sum().backward()
            out += [y.detach(), x.grad.clone()]
    return out


def input_written_between_call_and_backward(jit):
    @jit
    def f(x, b, w):
        return ((x.exp() + b).tanh() * w).sum()

    @jit
    def g(x, b, w):
        return (x * w).sum() + b.sum()

    out = []
    for h in (f, g):
        for changed in ("x", "b", "w", ""):
            given = {"x": tj.ones(3), "b": tj.ones(3), "w": tj.arange(3.0).requires_grad_()}
            loss = h(*given.values())
            with tj.no_grad():
                if changed:
                    given[changed].mul_(2.0)
            try:
                out.append(tj.autograd.grad(loss, given["w"])[0])
            except RuntimeError as error:
                out.append(str(error)[:60])
    return out


def masked_write_of_a_value_with_leading_sizes_1(jit):
    @jit
    def f(x, value):
        x[x > 1] = value
        return x

    out = []
    for held in (0.0, 2.0):
        for shape in ((1, 1), (1, 1, 1), (2, 1)):
            try:
                out.append(f(tj.full((3, 2), held), tj.ones(shape)))
            except RuntimeError as error:
                out.append(str(error))
    out.append(f(tj.full((1, 1), 0.0), tj.ones(1, 1).expand(1, 1)))
    return out


def sizes_kept_by_calls_that_never_replay(jit):
    class Seen:
        def __init__(self):
            self.rows, self.kept = 1, []

    seen = Seen()

    @jit
    def f(x):
        seen.rows = x.shape[0]
        while x.sum() > seen.rows:
            x = x * 0.5
            x.sum().item()
        seen.kept.append((x.shape[0] % 2) and 3)
        return x

    for n in (4, 4, 5, 4, 3, 5):
        f(tj.full((n,), 3.0))
    kinds = [type(n).__name__ for n in (seen.rows, *seen.kept)]
    return [seen.rows, seen.kept, kinds]


def writes_before_an_exception_of_one_side(jit):
    @jit
    def f(x):
        if (x >= 0).any():
            for row in x:
                for k in range(16):
                    row[-1 - k] = 1
        return x

    @jit
    def g(x, limit):
        if x.sum() > limit:
            x[0] = 7
            raise ValueError("too large")
        return x * 2

    out = []
    for x in (tj.arange(8.0).view(2, 4), -tj.ones(2, 4), tj.ones(1, 20)):
        for call in (lambda x=x: f(x), lambda x=x: g(x.view(-1), 5)):
            try:
                out.append(call())
            except (IndexError, ValueError) as error:
                out.append(str(error))
            out.append(x.clone())
    return out


def zipped_rows_whose_lengths_are_equal_by_example(jit):
    @jit
    def f(x):
        total = tj.zeros(())
        for a, b in zip(x.reshape(-1), x):
            total = total + a * b.sum()
        return total

    return [f(tj.ones(n, 1)) for n in (2, 20, 1, 20)]


class State:
    """An object that holds a tensor from call to call."""

    def __init__(self, held):
        self.held = held


def backward_through_history_of_earlier_calls(jit):
    def negated(o):
        o.held = -o.held
        return o.held.sum() * 3

    def with_saved_values(o):
        o.held = o.held * o.held
        return o.held.sum()

    def two_histories(o):
        o.held, square = -o.held, o.held * o.held
        return o.held.sum() + square.sum() * 0

    def inside(o):
        o.held = o.held[:]
        sum(row * 2 for row in o.held).backward()

    def program(way):
        f, out = jit(way), []
        w = tj.tensor([1.0, 2.0], requires_grad=True)
        o = State(w.view(2))
        for _ in range(3):
            y = tried(f, o)
            if isinstance(y, tj.Tensor):
                y = tried(y.backward)
            out += [y, w.grad, o]
        return out

    return [program(way) for way in (negated, with_saved_values, two_histories, inside)]


def leaf_written_if_a_branch_left_it(jit):
    @jit
    def f(w, x):
        if x.sum() > 0:
            w = w + w.sum()
        w *= 2
        return w

    out = []
    for values in (TAKEN, OTHER, OTHER, TAKEN):
        w = leaf(1.0, 2.0)
        out += [tried(f, w, tj.tensor(values)), w]
    return out


def written_by_a_loop_when_nothing_else_is_left(jit):
    @jit
    def f(x, t, kept):
        k = 0
        while k < 4 and x[0] != 2:
            k += 1
            kept.append(t * 2)
        k = 0
        while k < 3 and t.sum() != -1:
            k += 1
            if x.dtype == tj.int64:
                x = x * 2
            x.view(-1).pow_(2)

    out = []
    for first in (-3.0, 2.0, 1.5):
        x, t, kept = tj.tensor([first, 0.5, 1.0]), tj.ones(3), []
        f(x, t, kept)
        out += [x, t, kept]
    return out


def results_with_a_gradient_of_their_own(jit):
    given = leaf(1.0, 2.0)

    def leaf_made(x):
        w = (x * 2).detach().requires_grad_()
        (w * w).sum().backward()
        return w

    def retained(x):
        w = given * x
        w.retain_grad()
        (w * w).sum().backward()
        return w

    def beside(x):
        w = leaf_made(x)
        return w, w.grad

    def program(way):
        f, out = jit(way), []
        for k in range(3):
            made = f(tj.ones(2) + k)
            w = made if isinstance(made, tj.Tensor) else made[0]
            out += [made, w.grad, w.is_leaf or w.retains_grad]
        return out

    return [program(way) for way in (leaf_made, retained, beside)]


SLOPE = 2.0


class Logged(tj.autograd.Function):
    """Its backward reads and changes what is there when it runs."""

    log: list = []

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * 2

    @staticmethod
    def backward(ctx, grad):
        Logged.log.append(len(Logged.log))
        return grad * SLOPE + ctx.saved_tensors[0]


def code_that_runs_in_a_later_backward(jit):
    """Hooks, Functions: at each backward that somebody calls, with what is there then."""
    log, note = Logged.log, Logged.log.append
    entered, left = tj.nn.Linear(2, 2), tj.nn.Linear(2, 2)
    for layer in (entered, left):
        with tj.no_grad():
            layer.weight.fill_(0.5)
            layer.bias.fill_(0.25)
    entered.register_full_backward_pre_hook(lambda module, grads: log.append("enters"))
    left.register_full_backward_hook(lambda module, inner, outer: log.append("leaves"))

    def hooked(y, hook):
        y.register_hook(hook)
        return y + 1

    def retained(y):
        y.retain_grad()
        return y

    def node(y):
        y.grad_fn.register_prehook(lambda grads: log.append("node"))
        return y + 1

    ways = [
        Logged.apply, entered, left, retained, node, lambda y: hooked(y, lambda g: g * SLOPE),
        lambda y: hooked(y, lambda g: log.append("hook")), lambda y: hooked(y, lambda g: g * 2),
        lambda y: hooked(y, lambda g: note("hook")),
    ]  # fmt: skip

    def program(way):
        global SLOPE
        f, out = jit(lambda x, w: way(x * w)), []
        for k in range(4):
            w, SLOPE = leaf(1.0, 2.0), 2.0
            y, SLOPE = f(tj.ones(2) + k, w), 3.0 + k
            out.append(list(log))
            for _ in range(k):
                y.sum().backward(retain_graph=True)
            out += [list(log), w.grad, y.grad if way is retained else None]
        log.clear()
        return out

    return [program(way) for way in ways]


def leaf_met_after_its_detached_self(jit):
    @jit
    def f(x, m):
        return x * 2 + m * x.sum()

    out = []
    for values in (TAKEN, OTHER):
        m = leaf(*values)
        y = f(m.detach(), m)
        y.sum().backward()
        out += [y, m.grad]
    return out


def decided_by_what_is_written_later(jit):
    def f(x, w):
        c = x.sum() > 0
        y = x if c else w * 2
        c.logical_not_()
        y += 1
        return y, c

    return over(jit, [f])


def versions_of_what_may_have_been_written(jit):
    """Whether they moved on: how often is not promised, and a write that did not happen counts."""
    def at_once(x, w):
        y = x if x.sum() > 0 else w * 2
        y -= 1

    def in_loops(x, w):
        y = x if x.sum() > 0 else w
        for _ in range(MANY):
            y -= 1
        while y.sum() > -99:
            y -= 1

    def rows(x, w):
        y = x if x.sum() > 0 else w * 2
        for i in range(x.shape[0]):
            y[i] = w[i] + i

    def rows_after_a_loop(x, w):
        while x.sum() > w.sum() + 3:
            x = x - 1
        for i, row in enumerate(x):
            x[i] = row * 2

    def moved_on(way, values):
        x, w = tj.tensor(values), tj.tensor(WEIGHTS[1])
        before = x * 1, w * 1
        way(x, w)
        return [bool(t._version) for t, was in zip((x, w), before) if (t != was).any()]

    ways = [jit(way) for way in (at_once, in_loops, rows, rows_after_a_loop)]
    return [moved_on(way, values) for way in ways for values in (TAKEN, OTHER, TAKEN, OTHER)]


def numbers_that_choose_a_formula(jit):
    """Roots of -inf and -0.0 are no powers; beta=0 leaves out what is not finite."""
    @jit
    def powers(x, p):
        return x ** p

    @jit
    def sums(x, y, beta):
        return tj.addmm(x, y, y, beta=beta)

    @jit
    def whole(x, p):
        return x // p, x % p

    x = tj.tensor([-float("inf"), -0.0, 0.0, float("inf"), -2.0])
    out = [tried(powers, x, p) for p in (0.5, -0.5, 2.0, 3, -1, -2, 1.5)]
    out += [tried(sums, tj.full((2, 2), float("inf")), tj.ones(2, 2), beta) for beta in (2, 0, 0.0)]
    return [*out, *(tried(whole, tj.arange(3), p) for p in (2, 0, 3))]


def leaves_that_a_call_makes(jit):
    """A later backward gives them a gradient."""
    def hidden(x, t):
        return tj.tanh(t.detach().clone().requires_grad_()) * 2, t

    def returned(x, t):
        made = (t * 1).requires_grad_()
        return x * made, made

    def alone(x, t):
        made = (t * 1).requires_grad_()
        return made.exp(), made

    def program(way):
        f, out = jit(way), []
        for values in (TAKEN, OTHER):
            x = leaf(*values)
            y, made = f(x, tj.tensor(values))
            out += [tried(y.sum().backward), x.grad, made.grad]
        return out

    return [program(way) for way in (hidden, returned, alone)]


def rows_written_one_after_the_other(jit):
    """What a refused trial of a loop began to find out about a row's history is forgotten."""
    @jit
    def f(t):
        whole = t * 2
        rows = [whole[0], whole[1], whole[2]]
        for row in rows:
            for _ in range(1, whole.shape[0]):
                row.add_(0)
                if whole.sum() < 3:
                    break
            whole = whole + 1
        return rows, whole

    out = []
    for values in (TAKEN, OTHER):
        t = leaf(*values, 1.0)
        rows, whole = f(t)
        out += [rows, whole, [(row.requires_grad, row.is_leaf) for row in rows]]
        (whole.sum() + rows[2] * 3).backward()
        out.append(t.grad)
    return out


PROGRAMS = programs_in(globals())
