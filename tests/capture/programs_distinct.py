"""Programs on objects that are different ones in one call and the same in the next."""

from __future__ import annotations

import functools

import tracejit as tj
from tests.capture.program_list import programs_in


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def two():
    return tj.tensor([1.0, -2.0])


def leaf(*numbers):
    return tj.tensor(list(numbers), requires_grad=True)


def counters_that_become_one(jit):
    @jit
    def f(x, a, b):
        a.n += 1
        b.n += 10
        return x * a.n - b.n

    one, other = Box(n=0), Box(n=0)
    out = []
    for a, b in ((one, other), (one, other), (one, other), (one, one), (one, one), (other, one)):
        out += [f(two(), a, b), one.n, other.n]
    return out


def what_one_changes_is_read_of_another(jit):
    @jit
    def f(x, a, b):
        a.n += 1
        return x * b.n

    one, other = Box(n=0), Box(n=0)
    out = []
    for a, b in ((one, other), (one, other), (one, other), (one, one), (one, one), (other, one)):
        out += [f(two(), a, b), one.n, other.n]
    return out


def variables_of_closures_that_become_one(jit):
    def make():
        n = 0

        def count(x):
            nonlocal n
            n += 1
            return x * n

        return count, lambda: n

    (first, of_first), (second, of_second) = make(), make()
    f = jit(lambda x, a, b: a(x) + 10 * b(x))
    g = jit(lambda x, a, read: a(x) + 10 * read())
    out = []
    for k, b in enumerate((second, second, second, first, first, second)):
        out += [f(two(), first, b), of_first(), of_second()]
        read = of_first if k in (3, 4) else of_second
        out += [g(two(), first, read), of_first(), of_second()]
    return out


def containers_that_become_one(jit):
    @jit
    def grow(x, p, q):
        p.append(x * 2)
        q.append(x * 3)
        p.append(x * 4)
        return x * 1

    @jit
    def fill(x, p, q):
        p["k"] = x * 2
        q["k"] = x * 3
        q["n"] = len(p)
        return p["k"]

    out = []
    for make, f in ((list, grow), (dict, fill)):
        for same in (False, False, False, True, True):
            p = make()
            q = p if same else make()
            out += [f(two(), p, q), p, q]
    return out


def modules_that_become_one(jit):
    class Layer(tj.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", tj.zeros(2))

        def forward(self, x):
            self.calls += 1
            self.total = self.total + x
            return x * 2 + self.total

    net = tj.nn.Sequential(Layer(), Layer())
    f = jit(net)
    out = []
    for k in range(7):
        out += [f(two()), net[0].calls, net[1].calls, net[0].total.clone(), net[1].total.clone()]
        if k == 3:
            net[1] = net[0]
    return out


def leaves_that_become_one_with_backward_inside(jit):
    @jit
    def f(a, b, x):
        loss = (a * x).sum() + (b * x * x).sum()
        loss.backward()
        return loss.detach()

    @jit
    def g(a, b, x):
        (a * x).sum().backward()
        return x * 1, b.grad

    one, other = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = []
    for h in (f, g):
        for a, b in ((one, other), (one, other), (one, other), (one, one), (one, one)):
            one.grad = other.grad = None
            out += [h(a, b, two()), one.grad, other.grad]
    return out


def weights_tied_between_calls_with_backward_inside(jit):
    net = tj.nn.Sequential(tj.nn.Linear(2, 2), tj.nn.Tanh(), tj.nn.Linear(2, 2))
    with tj.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_((tj.arange(p.numel()) * 0.1 + 0.1 * k).reshape(p.shape))

    @jit
    def f(x):
        loss = net(x).pow(2).sum()
        loss.backward()
        return loss.detach()

    out = []
    for k in range(6):
        net.zero_grad(set_to_none=True)
        if k == 3:
            net[2].weight = net[0].weight
        out += [f(two().reshape(1, 2)), *(p.grad for p in net.parameters())]
    return out


def objects_that_are_keys(jit):
    first, second = Box(), Box()
    acts = [lambda x, k=k: x * k for k in (2.0, 3.0, 4.0)]
    weights = leaf(1.0, 2.0), leaf(3.0, 4.0)
    costs, scales = {first: 2.0, "other": 3.0}, {weights[0]: 9.0}
    gains = dict(zip(acts, (10.0, 20.0)))

    @jit
    def by_subscript(x, key):
        try:
            return x * costs[key]
        except KeyError:
            return x * 100

    get = jit(lambda x, key: x * costs.get(key, 1.0))
    by_function = jit(lambda x, act: act(x) * gains.get(act, 1.0))
    by_tensor = jit(lambda w: (w * scales.get(w, 1.0)).detach())
    out = []
    for k in range(4):
        for key in (second, second, first, first, second):
            out += [by_subscript(two(), key), get(two(), key)]
        for act in (acts[0], acts[0], acts[1], acts[2], acts[0]):
            out.append(by_function(two(), act))
        for w in (weights[1], weights[1], weights[0], weights[1]):
            out.append(by_tensor(w))
        if k == 2:
            costs[second] = 5.0
            scales[weights[1]] = 7.0
    return out


def keys_that_are_made_of_objects(jit):
    class Net:
        def act(self, x):
            return x * 2

    def scaled(x, k):
        return x * k

    nets, partials = [Net(), Net()], [functools.partial(scaled, k=2.0) for _ in range(2)]
    gains = {nets[0].act: 5.0, partials[0]: 7.0, (nets[0], 1): 2.0, (nets[1], 2): 3.0}
    f = jit(lambda x, act: act(x) * gains.get(act, 1.0))
    g = jit(lambda x, net, k: x * gains.get((net, k), 1.0))
    h = jit(lambda x, act: act(x) * (10 if act == partials[0] else 1))
    out = []
    for which in (1, 1, 0, 0, 1):
        out += [f(two(), nets[which].act), f(two(), partials[which]), h(two(), partials[which])]
        out += [g(two(), nets[which], k) for k in (1, 2)]
    return out


def functions_and_objects_compared(jit):
    class Net:
        def act(self, x):
            return x * 2

    def make():
        return lambda x: x * 2

    a, b, one, other = make(), make(), Net(), Net()
    chosen = one.act
    same = jit(lambda x, act: act(x) * (10 if act is a else 1))
    among = jit(lambda x, act: act(x) * (10 if act in (a,) else 1))
    method = jit(lambda x, act: act(x) * (10 if act == chosen else 1))
    equal = jit(lambda x, net: net.act(x) * (10 if net == one else 1))
    out = []
    for which in (1, 1, 0, 0, 1):
        act, net = (a, b)[which], (one, other)[which]
        out += [same(two(), act), among(two(), act), method(two(), net.act), equal(two(), net)]
    return out


def numbers_of_objects(jit):
    a, b, first, second = leaf(1.0, 2.0), leaf(3.0, 4.0), Box(k=2.0), Box(k=2.0)
    frozen, known, table = {id(a)}, set(map(id, (first,))), {hash(first): 3.0}
    f = jit(lambda w: (w * 0 if id(w) in frozen else w * 2).detach())
    g = jit(lambda x, box: x * box.k * (10 if id(box) in known else 1))
    h = jit(lambda x, box: x * table.get(hash(box), 1.0))
    i = jit(lambda x, *boxes: x * len(known & set(map(id, boxes))))
    out = []
    for which in (1, 1, 0, 0, 1):
        w, box = (a, b)[which], (first, second)[which]
        out += [f(w), g(two(), box), h(two(), box), i(two(), box, box)]
    return out


PROGRAMS = programs_in(globals())
