"""Programs on what tensors have beside their elements, found to be wrong: gradients, hooks,
histories, attributes, versions, memory that is another's."""

from __future__ import annotations

import tracejit as tj
from tests.capture.program_inputs import filled, leaf, tried
from tests.capture.program_list import programs_in


def leaves_over_one_memory(jit):
    f = jit(lambda a, b: (a * b * b).sum())
    a = leaf(1.0, 2.0, 3.0)
    b = a.detach().requires_grad_()
    out = []
    for _ in range(3):
        f(a, b).backward()
        out += [a.grad.clone(), b.grad.clone()]
    (first,) = tj.autograd.grad(f(a, a.detach()), a, create_graph=True)
    return [*out, first.requires_grad]


def gradients_dropped_that_nobody_reads(jit):
    module = filled(tj.nn.Linear(3, 3))
    w = leaf(1.0, 2.0)

    def drop():
        w.grad = None

    clear, zero = jit(lambda: module.zero_grad()), jit(lambda: module.zero_grad(False))
    drop = jit(drop)
    out = []
    for k in range(4):
        module(tj.ones(2, 3) * k).sum().backward()
        kept = module.weight.grad
        (clear if k % 2 else zero)()
        w.grad = None if k == 0 else tj.ones(2)
        drop()
        out += [module.weight.grad, module.bias.grad, kept, w.grad]
    return out


def hooks_registered_by_a_call(jit):
    w, v = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def triple(p):
        p.grad.mul_(3)

    @jit
    def f(x):
        w.register_hook(lambda g: g * 2)
        v.register_post_accumulate_grad_hook(triple)
        return (x * v).sum()

    out = []
    for _ in range(3):
        f(tj.ones(2)).backward()
        (w * 1).sum().backward()
        out += [w.grad.clone(), v.grad.clone()]
    return out


def argument_retains_its_gradient(jit):
    @jit
    def f(y):
        y.retain_grad()
        return (y * y).sum()

    out = []
    for _ in range(3):
        y = leaf(1.0, 2.0) * 3
        f(y).backward()
        out.append(y.grad)
    return out


def memory_replaced_through_data(jit):
    w = leaf(1.0, 2.0, 3.0)
    first = w.data

    @jit
    def f(x):
        w.data = w.data * 2
        w.data -= 1
        return w * x

    @jit
    def g(x, y):
        x.set_(y)
        x.mul_(2)
        return x + 1

    out = []
    for k in range(3):
        x, y = tj.arange(3.0), tj.ones(3) * k
        seen = x.view(3)
        out += [f(x), w, first, g(x, y), x, y, seen]
    return out


def attributes_of_tensors_come_and_go(jit):
    f = jit(lambda x: x * getattr(x, "scale", 1.0) * (2 if hasattr(w, "norm") else 1))
    w = tj.nn.Parameter(tj.ones(2))

    @jit
    def tagged(x):
        y = x * 2
        y.tag = "result"
        return y

    out = []
    for k in range(5):
        x = tj.ones(2)
        if k in (1, 2):
            x.scale = 2.0 + k
        if k == 3:
            w.norm = True
        out += [f(x), getattr(tagged(x), "tag", None)]
    return out


def what_tensors_say_of_themselves(jit):
    made = [
        lambda x: x * (2 if x._version > 0 else 3),
        lambda x: x * (2 if x.retains_grad else 3),
        lambda x: x * (2 if x._base is None else 3),
        lambda x: x * (2 if x._is_view() else 3),
    ]
    whole, w = tj.ones(4), leaf(1.0, 2.0)
    held = w * 1
    held.retain_grad()
    written = tj.ones(4)
    written.add_(1)
    out = []
    for f in map(jit, made):
        for x in (whole, whole[1:], written, w * 1, held, w.unbind()[1], whole):
            out.append(f(x).detach())
    return out


def gradients_that_are_one_tensor(jit):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    shared = tj.zeros(2)
    f = jit(lambda x, g: ((x * a).sum() + (x * x * b).sum()).backward())
    same = jit(lambda x: x * 2 if a.grad is b.grad else x * 3)
    out = []
    for k in range(6):
        a.grad = shared
        b.grad = shared if k in (0, 1, 4) else tj.zeros(2)
        f(tj.ones(2) * k, shared if k != 3 else tj.ones(2))
        out += [a.grad.clone(), b.grad.clone(), shared.clone(), same(tj.ones(2))]
    return out


def results_written_before_the_backward(jit):
    f = jit(lambda w: (w.exp(), tj.sigmoid(w), w * 2))
    w = leaf(0.5, 1.0)
    out = []
    for k in range(5):
        results = f(w)
        with tj.no_grad():
            if k:
                results[k % 3].add_(1)
        out += [tried(sum(r.sum() for r in results).backward), w.grad.clone()]
    return out


def inference_mode_changes(jit):
    module = filled(tj.nn.Linear(2, 2))
    f, g = jit(lambda x: (module(x), x[1:])), jit(lambda x: x.add_(1))
    asked = jit(lambda x: x * (2 if tj.is_inference_mode_enabled() else 3))
    out = []
    for k in range(6):
        x = tj.ones(2, 2)
        with tj.inference_mode(k % 2 == 1), tj.no_grad():
            made, row = f(x)
            out += [asked(x), made.is_inference(), row.is_inference(), tried(g, x)]
        later = tried(g, made), tried(tj.mul, module.weight, made)
        out += [isinstance(y, RuntimeError) for y in later]
    return out


def memory_that_overlaps_itself_is_written(jit):
    f = jit(lambda x: x.mul_(2))
    out = []
    for size, stride in (((3, 3), (3, 1)), ((3, 3), (4, 1)), ((3, 3), (2, 1)), ((3, 3), (1, 3))):
        whole = tj.arange(12.0)
        x = whole.as_strided(size, stride)
        out += [tried(f, x), x, whole]
    return out


def settings_read_and_set(jit):
    threads = jit(lambda x: x * tj.get_num_threads())
    before = tj.get_num_threads()

    @jit
    def f(x):
        tj.set_printoptions(precision=2)
        return x * 2

    out = []
    for k in range(3):
        tj.set_num_threads(1 + k)
        tj.set_printoptions(precision=5)
        out += [threads(tj.ones(2)), f(tj.ones(2)), str(tj.tensor([1.23456]))]
    tj.set_num_threads(before)
    tj.set_printoptions(profile="default")
    return out


def results_of_a_leaf_made_inside_beside_other_histories(jit):
    class Holder:
        pass

    @jit
    def f(o):
        start = o.t.detach().clone().requires_grad_()
        o.t = start * 2

    o, out = Holder(), []
    o.t = tj.ones(2)
    for _ in range(4):
        f(o)
        out += [o.t, o.t.is_leaf]
    return out


def positions_out_of_range_that_nobody_reads(jit):
    """Every position is looked at, also where no element of the result depends on it."""
    def parts(x, i):
        return x[i][:2] + 1, x[i][0] * 2, tj.nn.functional.pad(x[i], (0, -1))

    def parts_of_more(x, i):
        return (x[i] * 2)[:2].sum(0), tj.embedding(x, i).index_select(0, tj.tensor([0, 0]))

    def lower_triangle(x, i):
        return x[:, 0][i].expand(4, 4).tril(-3)[:, :1]

    def all_alike(x, i):
        return x[0, 0].expand(3)[i], tj.zeros(3)[i] + 1

    def alike_gathered(x, i):
        return x[0].expand(3, 2).gather(0, i.view(4, 1))

    def without_dimensions(x, i):
        return tj.index_select(x[0, 0], 0, i[3]), x[0, 0].gather(0, i[3])

    def summed(x, i):
        return x[:1].expand(3, 2).index_select(0, i).sum()

    out = []
    for body in (parts, parts_of_more, lower_triangle, all_alike, alike_gathered,
                 without_dimensions, summed):
        f = jit(body)
        for last in (0, 0, 5, 0, -7):
            out.append(tried(f, tj.ones(3, 2), tj.tensor([0, 0, 0, last])))
    return out


def positions_in_a_tensor_without_dimensions(jit):
    f = jit(lambda x, i: tj.index_select(x, 0, i))
    return [tried(f, tj.tensor(3.0), tj.tensor(i, dtype=tj.int64))
            for i in (0, [0], [0, 1], [], [[0]], 5, [-1])]


def rolled_without_dimensions(jit):
    out = []
    for arguments in ((1, 0), (1, -1), (1,), ((1,), (0,)), ((), ()), ((1, 2), (0, 0))):
        f = jit(lambda x, given=arguments: tj.roll(x, *given))
        out += [tried(f, tj.tensor(2.0)), tried(f, tj.arange(3.0))]
    return out


def views_are_detached_in_place(jit):
    """It raises for views. They may come after calls with tensors that are none, and be those of a
    module or a container."""
    class Cell(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.state = tj.zeros(2)

        @jit
        def forward(self, x):
            self.state.detach_()
            self.state = self.state + x
            return self.state * 1

    f, g, cell = jit(lambda x: x.detach_() * 2), jit(lambda xs: [x.detach_() for x in xs]), Cell()
    fresh = [lambda: tj.ones(2), lambda: tj.ones(2, requires_grad=True) * 3]
    views = [lambda: tj.ones(4)[:2], lambda: (tj.ones(2, requires_grad=True) * 3)[:],
             lambda: tj.ones(2, 2)[0], lambda: tj.ones(1).expand(2)]
    out = []
    for made in (*fresh, *views, *fresh):
        out += [tried(f, made()) for _ in range(3)]
        out.append(tried(g, [tj.ones(2), made()]))
        out += [tried(cell, tj.ones(2)) for _ in range(2)]
        cell.state = made()
        out += [tried(cell, tj.ones(2)) for _ in range(2)]
        cell.state = tj.zeros(2)
    return out


PROGRAMS = programs_in(globals())
