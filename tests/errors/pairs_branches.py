"""Pairs of programs with branches: before and after a hint is applied."""

from __future__ import annotations

import collections
import contextlib

import tracejit as tj
from tests.errors.control_flow import Box, Tagged, data, leaf
from tests.errors.pairs import after, before
from tracejit import nn
from tracejit.nn import functional as F

# -- what the sides give ---------------------------------------------------------------------------


@before("the returned value is int32 in one case and float32 in the other")
def _(x):
    return x.int() if x.sum() > 0 else x * 2


@after
def _(x):
    return x.int().to(x.dtype) if x.sum() > 0 else x * 2


@before("the returned value is 'sum' in one case and 'average' in the other")
def _(x):
    kind = "sum" if x.sum() > 0 else "average"
    return x * len(kind)


@after
def _(x):
    return x * (len("sum") if x.sum() > 0 else len("average"))


@before("the returned value is a list of 1 in one case and a tuple of 1 in the other")
def _(x):
    return [x * 2] if x.sum() > 0 else (x + 1,)


@after
def _(x):
    return [x * 2] if x.sum() > 0 else [x + 1]


@before("is a Box in one case and a tensor in the other")
def _(x):
    box = Box(n=x * 2)
    y = box if x.sum() > 0 else x
    return y.n if isinstance(y, Box) else y


@after
def _(x):
    box = Box(n=x * 2)
    return box.n if x.sum() > 0 else x * 1


@before("has different shapes in the two cases")
def _(x):
    y = x[:1] * 2 if x.sum() > 0 else x * 2
    return y.sum()


@after
def _(x):
    y = x * tj.tensor([2.0, 0.0]) if x.sum() > 0 else x * 2
    return y.sum()


@before("has different strides in the two cases", lambda: (tj.ones(2, 2),))
def _(x):
    y = (x * 2).t() if x.sum() > 0 else x + 1
    return y.reshape(4)


@after
def _(x):
    y = (x * 2).t().contiguous() if x.sum() > 0 else x + 1
    return y.reshape(4)


@before("a result is a view of an outer tensor in one case only")
def _(x):
    y = x[0] if x.sum() > 0 else x[1] * 2
    return y + 1


@after
def _(x):
    y = x[0].clone() if x.sum() > 0 else x[1] * 2
    return y + 1


@before("under no_grad(), a result may be an outer tensor that requires grad",
        lambda: (data(), leaf()))
def _(x, w):
    with tj.no_grad():
        y = w if x.sum() > 0 else x * 2
    return y * 2


@after
def _(x, w):
    with tj.no_grad():
        y = w.clone() if x.sum() > 0 else x * 2
    return y * 2


@before("a result is `.data` of a tensor", lambda: (leaf(),))
def _(x):
    y = x * 2
    z = y.data if x.sum() > 0 else y
    return z, y


@after
def _(x):
    y = x * 2
    z = y.data.clone() if x.sum() > 0 else y.detach().clone()
    return z, y


@before("a result is one of two tensors with different `_version`", lambda: (data(), data()))
def _(x, y):
    x.add_(1)
    return x if x.sum() > 0 else y


@after
def _(x, y):
    x.add_(1)
    return x.clone() if x.sum() > 0 else y.clone()


@before("two results of one branch share memory")
def _(x):
    if x.sum() > 0:
        y = x * 2
        return y, y[:]
    return x + 1, x + 2


@after
def _(x):
    if x.sum() > 0:
        y = x * 2
        return y, y[:].clone()
    return x + 1, x + 2


@before("it gives one list or dict in two places")
def _(x):
    if x.sum() > 0:
        kept = [x]
        return kept, kept
    return [x + 1], [x + 2]


@after
def _(x):
    if x.sum() > 0:
        kept = [x * 1]
        return kept, [kept[0] * 1]
    return [x + 1], [x + 2]


@before("a tensor gets a gradient in one branch only",
        lambda: (data(), leaf(), leaf()))
def _(x, a, b):
    if x.sum() > 0:
        return (a * x).sum()
    return (b * x).sum()


@after
def _(x, a, b):
    return tj.where(x.sum() > 0, (a * x).sum(), (b * x).sum())


@before("its backward gives a sparse gradient",
        lambda: (tj.tensor([1, 2]), tj.ones(4, 2, requires_grad=True)))
def _(i, w):
    if i.sum() > 0:
        return F.embedding(i, w, sparse=True)
    return F.embedding(i, w, sparse=True) * 2


@after
def _(i, w):
    if i.sum() > 0:
        return F.embedding(i, w)
    return F.embedding(i, w) * 2


# -- how a side ends -------------------------------------------------------------------------------


@before("a `continue` leaves a `with` or `try` in one case only")
def _(x):
    for _ in range(3):
        with contextlib.suppress(ValueError):
            if x.sum() > 4:
                continue
            x = x + 1
        x = x * 2
    return x


@after
def _(x):
    with contextlib.suppress(ValueError):
        for _ in range(3):
            if x.sum() > 4:
                continue
            x = x + 1
            x = x * 2
    return x


@before("only one branch returns a value")
def _(x):
    with contextlib.nullcontext():
        if x.sum() > 2:
            return x * 1
        x = x + 1
    return x * 2


@after
def _(x):
    with contextlib.nullcontext():
        y = x * 1 if x.sum() > 2 else (x + 1) * 2
    return y


@before("only one branch leaves the loop")
def _(x):
    for _ in range(3):
        with contextlib.nullcontext():
            if x.sum() > 4:
                break
            x = x + 1
    return x * 2


@after
def _(x):
    with contextlib.nullcontext():
        for _ in range(3):
            if x.sum() > 4:
                break
            x = x + 1
    return x * 2


@before("it writes an outer tensor before it raises an exception")
def _(x):
    if x.sum() < 0:
        x.add_(1)
        raise ValueError("negative")
    return x * 2


@after
def _(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@before("an argument of ValueError is a Tensor, expected a number or a string")
def _(x):
    if x.sum() < 0:
        raise ValueError(x)
    return x * 2


@after
def _(x):
    if x.sum() < 0:
        raise ValueError("x is negative")
    return x * 2


@before("both branches raise an exception", outside=True)
def _(jit, x):
    @jit
    def f(x):
        if x.sum() > 0:
            raise ValueError("positive")
        else:
            raise ValueError("negative")

    try:
        return f(x)
    except ValueError:
        return 0


@after
def _(jit, x):
    @jit
    def f(x):
        return x.sum() > 0

    try:
        raise ValueError("positive" if f(x) else "negative")
    except ValueError:
        return 0


# -- what a side does ------------------------------------------------------------------------------


@before("the branch runs as Python: the function calls item()")
def _(x):
    if x.sum() > 0:
        x = x * float(x[0])
    return x + 1


@after
def _(x):
    if x.sum() > 0:
        x = x * x[0]
    return x + 1


@before("it draws random numbers")
def _(x):
    return x * tj.rand(2) * 0 if x.sum() > 0 else x


@after
def _(x):
    drawn = tj.rand(2)
    return x * drawn * 0 if x.sum() > 0 else x


@before("it runs the first step of an optimizer, which makes its state", outside=True)
def _(jit, x):
    w = leaf()
    optimizer = tj.optim.Adam([w])

    @jit
    def f(x):
        if x.sum() > 0:
            optimizer.step()
        return x * 2

    for _ in range(2):
        w.grad = tj.ones(2)
        f(x)
    return w.detach()


@after
def _(jit, x):
    w = leaf()
    optimizer = tj.optim.Adam([w])

    @jit
    def f(x):
        return x.sum() > 0

    for _ in range(2):
        w.grad = tj.ones(2)
        if f(x):
            optimizer.step()
    return w.detach()


@before("it appends to an outer list")
def _(x):
    kept = [x * 3]
    if x.sum() > 0:
        kept.append(x * 2)
    else:
        kept.append(x * 1)
    return kept


@after
def _(x):
    kept = [x * 3]
    last = x * 2 if x.sum() > 0 else x * 1
    kept.append(last)
    return kept


@before("it changes a dict made outside it (update)")
def _(x):
    kept = {"a": x * 1}
    if x.sum() > 0:
        kept.update(a=x * 2)
    return kept["a"]


@after
def _(x):
    kept = {"a": x * 1}
    value = x * 2 if x.sum() > 0 else kept["a"].clone()
    kept.update(a=value)
    return kept["a"]


@before("it assigns an item of an outer object")
def _(x):
    kept = {"a": x * 1}
    if x.sum() > 0:
        kept["a"] = x * 2
    return kept["a"]


@after
def _(x):
    kept = {"a": x * 1}
    value = x * 2 if x.sum() > 0 else kept["a"].clone()
    kept["a"] = value
    return kept["a"]


@before("it deletes an item")
def _(x):
    kept = {"a": x * 1, "b": x * 2}
    if x.sum() > 0:
        del kept["a"]
        return kept["b"]
    return kept["a"]


@after
def _(x):
    kept = {"a": x * 1, "b": x * 2}
    return kept["b"].clone() if x.sum() > 0 else kept["a"].clone()


@before("it may add a missing key")
def _(x):
    kept = collections.defaultdict(lambda: 3.0)
    return x * kept["a"] if x.sum() > 0 else x * 2


@after
def _(x):
    kept = collections.defaultdict(lambda: 3.0)
    value = kept["a"]
    return x * value if x.sum() > 0 else x * 2


@before("it sets the attribute n", lambda: (data(), Box(n=data())))
def _(x, box):
    if x.sum() > 0:
        box.n = x * 2
    return box.n


@after
def _(x, box):
    n = x * 2 if x.sum() > 0 else box.n.clone()
    box.n = n
    return box.n


@before("it deletes the attribute n", lambda: (data(), Box(n=1)))
def _(x, box):
    if x.sum() > 0:
        del box.n
    return x * 2


@after
def _(x, box):
    n = 0 if x.sum() > 0 else 1
    box.n = n
    return x * 2


@before("it sets the nonlocal variable kept", outside=True)
def _(jit, x):
    kept = x * 1

    @jit
    def f(x):
        nonlocal kept
        if x.sum() > 0:
            kept = x * 2
        return kept

    return f(x)


@after
def _(jit, x):
    kept = x * 1

    @jit
    def f(x):
        nonlocal kept
        new = x * 2 if x.sum() > 0 else kept.clone()
        kept = new
        return kept

    return f(x)


@before("it consumes a list_iterator made outside it")
def _(x):
    it = iter([1.0, 2.0])
    if x.sum() > 0:
        a, b = it
        return x * a * b
    return x + 1


@after
def _(x):
    a, b = iter([1.0, 2.0])
    if x.sum() > 0:
        return x * a * b
    return x + 1


@before("it calls print, and tracejit cannot see its effects")
def _(x):
    if x.sum() > 0:
        print("positive")
        x = x + 1
    return x * 2


@after
def _(x):
    text, y = ("positive", x + 1) if x.shape[0] > 0 else ("", x)
    print(text)
    y = x + 1 if x.sum() > 0 else x
    return y * 2


@before("it calls unknown, whose source tracejit cannot rewrite", outside=True)
def _(jit, x):
    names = {}
    exec("def unknown(x):\n    return x * 3", names)
    unknown = names["unknown"]

    @jit
    def f(x):
        return unknown(x) if x.sum() > 0 else x

    return f(x)


@after
def _(jit, x):
    @jit
    def f(x):
        return tripled(x) if x.sum() > 0 else x

    return f(x)


def tripled(x):
    """Multiply by three."""
    return x * 3


@before("it makes a Box")
def _(x):
    y = Box(n=x) if x.sum() > 0 else Box(n=x + 1)
    return y.n


@after
def _(x):
    n = x if x.sum() > 0 else x + 1
    return Box(n=n).n


@before("it calls register_hook", lambda: (data(), leaf()))
def _(x, w):
    y = w * 2
    if x.sum() > 0:
        y.register_hook(lambda g: g * 2)
    return x * y


@after
def _(x, w):
    y = w * 2
    y.register_hook(lambda g: g * 2)
    return x * y if x.sum() > 0 else x * y


@before("it calls backward", outside=True)
def _(jit, x):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:
            (x * w).sum().backward()
        return x * 2

    f(x)
    return w.grad


@after
def _(jit, x):
    w = leaf()

    @jit
    def f(x):
        loss = (x * w).sum() if x.sum() > 0 else (x * w).sum() * 0
        loss.backward()
        return x * 2

    f(x)
    return w.grad


@before("it sets the attribute grad", outside=True)
def _(jit, x):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:
            w.grad = x * 2
        return x * 2

    f(x)
    return w.grad


@after
def _(jit, x):
    w = leaf()

    @jit
    def f(x):
        grad = x * 2 if x.sum() > 0 else x * 0
        w.grad = grad
        return x * 2

    f(x)
    return w.grad


@before("it leaves grad mode changed", outside=True)
def _(jit, x):
    @jit
    def f(x):
        if x.sum() > 0:
            tj.set_grad_enabled(False)
        return x * 2

    try:
        return f(x)
    finally:
        tj.set_grad_enabled(True)


@after
def _(jit, x):
    @jit
    def f(x):
        if x.sum() > 0:
            with tj.no_grad():
                return x * 2
        return x * 2

    return f(x)


@before("it writes an outer tensor while gradients are recorded", lambda: (data(), leaf()))
def _(x, w):
    y = w * 2
    if x.sum() > 0:
        y.add_(1)
    return y * 3


@after
def _(x, w):
    y = w * 2
    if x.sum() > 0:
        y = y + 1
    return y * 3


@before("it writes a tensor that came from `.data`", lambda: (data(), leaf().data))
def _(x, y):
    if x.sum() > 0:
        y.add_(1)
    return x * 2 + y


@after
def _(x, y):
    y = y + 1 if x.sum() > 0 else y + 0
    return x * 2 + y


@before("it writes a tensor whose old value an outer gradient needs",
        lambda: (data(), leaf()))
def _(x, w):
    y = x * 2
    z = w * y
    if x.sum() > 0:
        y.add_(1)
    return z, y


@after
def _(x, w):
    y = x * 2
    z = w * y
    if x.sum() > 0:
        y = y + 1
    return z, y


@before("it uses a tensor that overlaps another tensor", outside=True)
def _(jit, x):
    @jit
    def f(x, y):
        return x * y if x.sum() > 0 else x * 1

    memory = tj.ones(6)
    return f(memory[:4], memory[2:])


@after
def _(jit, x):
    @jit
    def f(x, y):
        return x * y if x.sum() > 0 else x * 1

    memory = tj.ones(6)
    return f(memory[:4], memory[2:].clone())


@before("the shape of nonzero's result depends on a tensor's values")
def _(x):
    return x[x > 1].sum()


@after
def _(x):
    return tj.where(x > 1, x, 0).sum()


@before("it imports a module")
def _(x):
    if x.sum() > 0:
        import math

        return x * math.pi
    return x


@after
def _(x):
    import math

    if x.sum() > 0:
        return x * math.pi
    return x


@before("which tracejit did not rewrite", lambda: (data(), Counted()))
def _(x, counted):
    if x.sum() > 0:
        return x * counted.scale
    return x


@after
def _(x, counted):
    scale = counted.scale
    if x.sum() > 0:
        return x * scale
    return x


class Counted:
    """An object that counts how often it is read."""

    n = 0

    @property
    def scale(self):
        self.n += 1
        return 2


@before("it runs clear_gradient, which changes objects", outside=True)
def _(jit, x):
    w = leaf()
    optimizer = tj.optim.SGD([w], lr=0.1)

    @jit
    def f(x):
        y = x * 2
        if x.sum() > 0:
            optimizer.zero_grad()
        return y

    w.grad = tj.ones(2)
    return f(x)


@after
def _(jit, x):
    w = leaf()
    optimizer = tj.optim.SGD([w], lr=0.1)

    @jit
    def f(x):
        optimizer.zero_grad()
        return x * 2

    w.grad = tj.ones(2)
    return f(x)


@before("it changes requires_grad, history or hooks of an outer tensor", outside=True)
def _(jit, x):
    net = nn.Linear(2, 2)

    @jit
    def f(x):
        if x.sum() > 0:
            net.requires_grad_(False)
        return net(x)

    return f(x).shape[0]


@after
def _(jit, x):
    net = nn.Linear(2, 2)

    @jit
    def f(x):
        return net(x)

    if x.sum() > 0:
        net.requires_grad_(False)
    return f(x).shape[0]


@before("it changes an outer object in place (+=)", outside=True)
def _(jit, x):
    class Adding(Box):
        def __iadd__(self, other):
            self.n = other
            return self

    box = Adding(n=1)

    @jit
    def f(x):
        added = box
        if x.sum() > 0:
            added += 1
        return x * 2

    return f(x)


@after
def _(jit, x):
    class Adding(Box):
        def __iadd__(self, other):
            self.n = other
            return self

    box = Adding(n=1)

    @jit
    def f(x):
        added = box
        more = 1 if x.sum() > 0 else 0
        added += more
        return x * 2

    return f(x)


@before("it runs itself again, by recursion", outside=True)
def _(jit, x):
    def lowered(x, n):
        if x.sum() > 0:
            return lowered(x - 1, n + 1)
        return x * n

    return jit(lowered)(x, 0)


@after
def _(jit, x):
    @jit
    def lowered(x, n):
        while x.sum() > 0:
            x = x - 1
            n = n + 1
        return x * n

    return lowered(x, 0)


# -- after a branch --------------------------------------------------------------------------------


@before("a tensor's value decides which tensor a variable is", lambda: (data(), data()))
def _(x, y):
    z = x if x.sum() > 0 else y
    return z * (2 if z is x else 3)


@after
def _(x, y):
    z, k = (x.clone(), 2) if x.sum() > 0 else (y.clone(), 3)
    return z * k


@before("a tensor's value decides which tensor the function writes", lambda: (data(), leaf()))
def _(x, w):
    y = x * 2
    z = y * 2 if x.sum() > 0 else y
    z.mul_(w)
    return z


@after
def _(x, w):
    y = x * 2
    z = y * 2 if x.sum() > 0 else y.clone()
    z = z * w
    return z


@before("it is a Tagged in one case and a Tensor in the other".replace("it is", "is"))
def _(x):
    y = (x * 2).as_subclass(Tagged) if x.sum() > 0 else x + 1
    return y.sum()


@after
def _(x):
    y = (x * 2).as_subclass(Tagged) if x.sum() > 0 else (x + 1).as_subclass(Tagged)
    return y.sum()
