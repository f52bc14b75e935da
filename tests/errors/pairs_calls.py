"""Pairs of programs that read values, keep state or call others: before and after a hint."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import math
import pickle
import time
import types
import warnings
import weakref

import numpy as np

import tracejit as tj
from tests.errors.control_flow import Box, data, leaf
from tests.errors.pairs import after, before
from tracejit import config
from tracejit.nn.modules import module
from tracejit.utils.checkpoint import checkpoint

# -- values that Python needs ----------------------------------------------------------------------


@before("a bound of range()", lambda: (data(), tj.tensor(3)))
def _(x, n):
    for k in range(n.item()):
        x = x + k
    return x


@after
def _(x, n):
    k = 0
    while k < n:
        x = x + k
        k = k + 1
    return x


@before("needed at once by roll()", lambda: (tj.arange(5), tj.tensor(2)))
def _(x, n):
    return tj.roll(x, n.item())


@after
def _(x, n):
    return x[(tj.arange(len(x)) - n) % len(x)]


@before("the function calls item(), and its number is compared")
def _(x):
    return x * 2 if x[0].item() > 0 else x * 1


@after
def _(x):
    return x * 2 if x[0] > 0 else x * 1


@before("the function calls item(), and its number is computed with")
def _(x):
    k = x[0].item()
    return x * (1.0 / k)


@after
def _(x):
    return x * (1.0 / x[0])


@before("the function calls item(), and its number is hashed")
def _(x):
    table = {1.0: 2.0, 2.0: 3.0}
    return x * table[x[0].item()]


@after
def _(x):
    table = tj.tensor([0.0, 2.0, 3.0])
    return x * table[x[0].long()]


@before("needed at once")
def _(x):
    return x * int(x[0])


@after
def _(x):
    return x * x[0].long()


@before("Python needs to know if a tensor is true")
def _(x):
    return x * 2 if bool(x.sum() > 0) else x * 1


@after
def _(x):
    return tj.where(x.sum() > 0, x * 2, x * 1)


@before("the function calls tolist()")
def _(x):
    return x * sum(x.tolist())


@after
def _(x):
    return x * x.sum()


@before("the function calls numpy()", outside=True)
def _(jit, x):
    return jit(lambda x: (x + 1).numpy())(x)


@after
def _(jit, x):
    return jit(lambda x: x + 1)(x).numpy()


@before("NumPy makes an array from a tensor", outside=True)
def _(jit, x):
    return jit(lambda x: np.asarray(x + 1))(x)


@after
def _(jit, x):
    return np.asarray(jit(lambda x: x + 1)(x))


@before("the function pickles a tensor", outside=True)
def _(jit, x):
    return jit(lambda x: pickle.dumps(x + 1))(x)[:4]


@after
def _(jit, x):
    return pickle.dumps(jit(lambda x: x + 1)(x))[:4]


@before("copies a tensor by deepcopy")
def _(x):
    return copy.deepcopy(x * 2) + 1


@after
def _(x):
    return (x * 2).clone() + 1


@before("the function reads memory that it wrote through an overlapping tensor", outside=True)
def _(jit, x):
    @jit
    def f(x, y):
        x.add_(1)
        return y * 2

    memory = tj.ones(6)
    return f(memory[:4], memory[2:])[2:]


@after
def _(jit, x):
    @jit
    def f(x, y):
        x.add_(1)
        return y * 2

    memory = tj.ones(6)
    return f(memory[:4], memory[2:].clone())[2:]


@before("the shape of unique's result depends on a tensor's values", outside=True)
def _(jit, x):
    return jit(lambda x: tj.unique(x * 2))(x)


@after
def _(jit, x):
    return tj.unique(jit(lambda x: x * 2)(x))


@before("the shape of bincount's result depends on a tensor's values",
        lambda: (tj.tensor([1, 2]),))
def _(x):
    return tj.bincount(x)


@after
def _(x):
    return tj.zeros(3).index_add(0, x, tj.ones(len(x))).long()


@before("the shape of repeat_positions's result depends on a tensor's values",
        lambda: (data(), tj.tensor([2, 2])))
def _(x, n):
    return x.repeat_interleave(n)


@after
def _(x, n):
    return x.repeat_interleave(2)


# -- gradients -------------------------------------------------------------------------------------


@before("backward() runs through history from before the call", outside=True)
def _(jit, x):
    w = leaf()

    @jit
    def f(x, h):
        h.sum().backward()
        return x * 2

    f(x, w * 2)
    return w.grad


@after
def _(jit, x):
    w = leaf()

    @jit
    def f(x):
        (w * 2).sum().backward()
        return x * 2

    f(x)
    return w.grad


@before("calls retain_grad() on a tensor it made", outside=True)
def _(jit, x):
    w = leaf()

    @jit
    def f(x):
        y = x * w
        y.retain_grad()
        return y

    y = f(x)
    y.sum().backward()
    return y.grad


@after
def _(jit, x):
    w = leaf()
    y = jit(lambda x: x * w)(x)
    return tj.autograd.grad(y.sum(), y)[0]


@before("a result retains its gradient", outside=True)
def _(jit, x):
    @jit
    def f(x):
        y = x * 2
        y.retain_grad()
        (y * y).sum().backward()
        return y

    return f(leaf()).grad


@after
def _(jit, x):
    @jit
    def f(x):
        y = x * 2
        return tj.autograd.grad((y * y).sum(), y)[0]

    return f(leaf())


@before("may reach a leaf that the function made", outside=True)
def _(jit, x):
    @jit
    def f(x):
        w = (x * 2).detach().requires_grad_()
        return w * w, w

    y, w = f(x)
    y.sum().backward()
    return w.grad


@after
def _(jit, x):
    @jit
    def f(w):
        return w * w

    w = (x * 2).requires_grad_()
    f(w).sum().backward()
    return w.grad


@before("returns or stores a tracejit.core.eager.tape.SumBackward0", outside=True)
def _(jit, x):
    loss = (leaf() * 2).sum()
    return jit(lambda x: (x * 2, loss.grad_fn))(x)[1].name()


@after
def _(jit, x):
    loss = (leaf() * 2).sum()
    jit(lambda x: x * 2)(x)
    return loss.grad_fn.name()


@before("the result's backward gives a sparse gradient", outside=True)
def _(jit, x):
    table = tj.nn.Embedding(3, 2, sparse=True)
    tj.nn.init.ones_(table.weight)
    jit(lambda i: table(i).sum())(tj.tensor([0, 1])).backward()
    return table.weight.grad.to_dense()


@after
def _(jit, x):
    table = tj.nn.Embedding(3, 2, sparse=True)
    tj.nn.init.ones_(table.weight)

    @jit
    def f(i):
        loss = table(i).sum()
        loss.backward()
        return loss.detach()

    f(tj.tensor([0, 1]))
    return table.weight.grad.to_dense()


@before("the result's backward would fail", lambda: (leaf(),))
def _(x):
    return x // 2


@after
def _(x):
    with tj.no_grad():
        return x // 2


@before("the result's backward writes to the gradient that it receives", lambda: (leaf(),))
def _(x):
    return Writing.apply(x)


@after
def _(x):
    return Doubling.apply(x)


class Writing(tj.autograd.Function):
    """A Function that writes to its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(2)


class Doubling(tj.autograd.Function):
    """The same without writing."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@before("which may read or change other objects", outside=True)
def _(jit, x):
    w, log = leaf(), []

    class Logged(Doubling):
        @staticmethod
        def backward(ctx, grad):
            log.append("backward")
            return grad * 2

    jit(lambda x: Logged.apply(x * w))(x).sum().backward()
    return log


@after
def _(jit, x):
    w, log = leaf(), []
    y = jit(lambda x: Doubling.apply(x * w))(x)
    log.append("backward")
    y.sum().backward()
    return log


@before("a result is from `.data`, and a later backward() needs its present value",
        lambda: (leaf(),))
def _(x):
    d = x.exp().data
    return d * x, d


@after
def _(x):
    d = x.exp().data.clone()
    return d * x, d.clone()


@before("decides if a backward() in the function frees the history of a result",
        lambda: (leaf(),))
def _(x):
    v = x
    if x.sum() > 2:
        v = x.exp()
    loss = (v - x).sum()
    loss.backward()
    return loss


@after
def _(x):
    v = tj.where(x.sum() > 2, x.exp(), x)
    loss = (v - x).sum()
    loss.backward()
    return loss


@before("the function takes a second derivative through a branch or a loop", lambda: (leaf(),))
def _(x):
    y = x * x if x.sum() > 0 else x * 3
    (g,) = tj.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = tj.autograd.grad(g.sum(), x)
    return h


@after
def _(x):
    y = tj.where(x.sum() > 0, x * x, x * 3)
    (g,) = tj.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = tj.autograd.grad(g.sum(), x)
    return h


# -- results ---------------------------------------------------------------------------------------


@before("the function returns or stores a builtins.set", outside=True)
def _(jit, x):
    return sum(y.sum() for y in jit(lambda x: {x + 1})(x))


@after
def _(jit, x):
    return sum(y.sum() for y in set(jit(lambda x: [x + 1])(x)))


@before("the function returns or stores a numpy.ndarray", outside=True)
def _(jit, x):
    return jit(lambda x: (x * 2, np.ones(2)))(x)[1]


@after
def _(jit, x):
    return jit(lambda x: (x * 2, tj.ones(2)))(x)[1].numpy()


@before("the function returns or stores a dict with keys that it made", outside=True)
def _(jit, x):
    return list(jit(lambda x: {x + 1: x * 2})(x).values())[0]


@after
def _(jit, x):
    key, value = jit(lambda x: (x + 1, x * 2))(x)
    return list({key: value}.values())[0]


@before("the function returns or stores a tensor with attributes of its own", outside=True)
def _(jit, x):
    @jit
    def f(x):
        y = x * 2
        y.tag = "doubled"
        return y

    return f(x)


@after
def _(jit, x):
    y = jit(lambda x: x * 2)(x)
    y.tag = "doubled"
    return y


# -- what is read and changed ----------------------------------------------------------------------


@before("the function reads a tensor that tracejit cannot find", outside=True)
def _(jit, x):
    hidden = slice(tj.ones(2))
    return jit(lambda x: x * hidden.stop)(x)


@after
def _(jit, x):
    stop = slice(tj.ones(2)).stop
    return jit(lambda x: x * stop)(x)


@before("the function keeps a tensor somewhere that tracejit cannot see", outside=True)
def _(jit, x):
    hidden = property()

    @jit
    def f(x):
        y = x * 2
        hidden.__doc__ = y
        return y + 1

    f(x)
    return hidden.__doc__


@after
def _(jit, x):
    box = Box()

    @jit
    def f(x):
        y = x * 2
        box.doc = y
        return y + 1

    f(x)
    return box.doc


@before("tracejit cannot find", outside=True)
def _(jit, x):
    @jit
    def f(x, name):
        module = types.ModuleType("made")
        module.scale = 2
        return x * getattr(module, name)

    return f(x, "scale")


@after
def _(jit, x):
    box = Box(scale=2)

    @jit
    def f(x, name):
        return x * getattr(box, name)

    return f(x, "scale")


@before("the function reads this numpy.ndarray, and tracejit cannot see its changes",
        outside=True)
def _(jit, x):
    table = np.ones(2, "float32")
    return jit(lambda x: x * table[0])(x)


@after
def _(jit, x):
    table = tj.from_numpy(np.ones(2, "float32"))
    return jit(lambda x: x * table[0])(x)


@before("the function reads this container of", outside=True)
def _(jit, x):
    numbers = list(range(60_000))
    return jit(lambda x: x * numbers[1])(x)


@after
def _(jit, x):
    numbers = tj.tensor(list(range(60_000)))
    return jit(lambda x: x * numbers[1])(x)


@before("the object of a weak proxy is gone", outside=True)
def _(jit, x):
    box = Box(scale=2.0)
    proxy = weakref.proxy(box)
    del box

    @jit
    def f(x):
        try:
            return x * proxy.scale
        except ReferenceError:
            return x * 2

    return f(x)


@after
def _(jit, x):
    box = Box(scale=2.0)
    return jit(lambda x: x * box.scale)(x)


@before("the function writes a tensor whose values decided what Python did", outside=True)
def _(jit, x):
    step, log = tj.zeros(()), []

    @jit
    def f(x):
        step.add_(1)
        if step > 3:
            log.append(float(x[0]))
            x = x * 2
        return x

    return f(x)


@after
def _(jit, x):
    box = Box(step=0)

    @jit
    def f(x):
        box.step += 1
        if box.step > 3:
            x = x * 2
        return x

    return f(x)


@before("caches results (functools.lru_cache)", outside=True)
def _(jit, x):
    made = []

    @functools.cache
    def table(n):
        made.append(n)
        return tj.arange(float(n))

    f = jit(lambda x, n: x.sum() * table(n))
    f(x, 3)
    return f(x, 4)


@after
def _(jit, x):
    @functools.cache
    def table(n):
        return tj.arange(float(n))

    f = jit(lambda x, n: x.sum() * table.__wrapped__(n))
    f(x, 3)
    return f(x, 4)


@before("the function changes the set seen", outside=True)
def _(jit, x):
    seen = set()

    @jit
    def f(x):
        seen.add(x.shape[0])
        return x * len(seen)

    f(tj.ones(1))
    return f(x)


@after
def _(jit, x):
    seen = {}

    @jit
    def f(x):
        seen[x.shape[0]] = True
        return x * len(seen)

    f(tj.ones(1))
    return f(x)


@before("the function raises an exception for these values")
def _(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")
    except ValueError:
        return x * 2
    return x


@after
def _(x):
    return x * 2 if x.sum() > 0 else x * 1


@before("the function leaves grad mode, autocast or a default changed", outside=True)
def _(jit, x):
    @jit
    def f(x):
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
        with tj.no_grad():
            return x * 2

    return f(x)


@before("the function asks if two equal constants are one object", lambda: texts())
def _(x, one, other):
    return x * (2.0 if one is other else 3.0)


@after
def _(x, one, other):
    return x * (2.0 if one == other + "!" else 3.0)


def texts():
    """Return data and two texts that are equal and two objects."""
    return data(), "a b", "".join(["a", " b"])


@before("the function replaces tensor.data")
def _(x):
    x.data = x * 2
    return x


@after
def _(x):
    x.data.copy_(x * 2)
    return x


@before("the function changes the shape of a tensor in place")
def _(x):
    row = x[0]
    row.unsqueeze_(0)
    return x * row


@after
def _(x):
    row = x[0]
    row = row.unsqueeze(0)
    return x * row


# -- what belongs outside --------------------------------------------------------------------------


def outside(reason, inner, outer):
    """Register a pair: `inner(x)` in a captured function, then behind it."""

    @before(reason, outside=True)
    def first(jit, x):
        return jit(lambda x: (x * 2, inner(x)))(x)

    @after
    def second(jit, x):
        return jit(lambda x: x * 2)(x), outer(x)

    return first, second


def _once(reason, act):
    return outside(reason, act, act)


_once("the function calls data_ptr()", lambda x: x.data_ptr() > 0)
_once("the function reads _version of a tensor made outside it", lambda x: x._version * 0)
_once("the function reads _is_view() of a tensor made outside it", lambda x: x._is_view())
_once("the function reads a storage", lambda x: x.untyped_storage().nbytes())
_once("the function calls is_set_to()", lambda x: x.is_set_to(x))
_once("the function sets print options", lambda x: tj.set_printoptions(precision=4))
_once("the function seeds a generator", lambda x: tj.manual_seed(0) is None)
_once("the function reads the state of a generator", lambda x: len(tj.get_rng_state()))
_once("the function calls time.time", lambda x: time.time() * 0)
_once("the function makes a generator", lambda x: tj.Generator() is None)
_once("the function saves a file", lambda x: tj.save(x, io.BytesIO()))
_once("the function registers a hook of all modules",
      lambda x: module.register_module_forward_hook(lambda *a: None).remove())


@before("tracejit has no op for np.logaddexp")
def _(x):
    return np.logaddexp(x, x)


@after
def _(x):
    return tj.logaddexp(x, x)


@before("an array shows a tensor's memory")
def _(x):
    return x * tj.from_numpy(np.ones(2, "float32"))


@after
def _(x):
    return x * tj.tensor(np.ones(2, "float32"))


@before("the function changes the filters of warnings", outside=True)
def _(jit, x):
    stack = contextlib.ExitStack()

    @jit
    def f(x):
        stack.enter_context(warnings.catch_warnings())
        return x * 2

    with stack:
        return f(x)


@after
def _(jit, x):
    with warnings.catch_warnings():
        return jit(lambda x: x * 2)(x)


@before("the function asks if two equal constants are one object",
        lambda: (data(), [float("nan"), 1.0]))
def _(x, numbers):
    return x * (2.0 if numbers[0] in numbers else 3.0)


@after
def _(x, numbers):
    return x * (2.0 if any(math.isnan(number) for number in numbers) else 3.0)


@before("the function uses saved_tensors_hooks", outside=True)
def _(jit, x):
    @jit
    def f(x):
        with tj.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            return x.tanh()

    return f(x)


@after
def _(jit, x):
    with tj.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        return jit(lambda x: x.tanh())(x)


@before("the function calls checkpoint", lambda: (leaf(),))
def _(x):
    return checkpoint(tj.tanh, x, use_reentrant=False)


@after
def _(x):
    return tj.tanh(x)


@before("the graph has 12 nodes already", outside=True)
def _(jit, x):
    with config.override(max_segment_nodes=12):
        return jit(twenty)(x)


@after
def _(jit, x):
    with config.override(max_segment_nodes=40):
        return jit(twenty)(x)


def twenty(x):
    """Add one twenty times."""
    for _ in range(10):
        x = x + 1
        x = x * 1
    return x


@before("the function has 2 programs already, and gets no more", outside=True)
def _(jit, x):
    f = jit(lambda x, kind: x * len(kind))
    with config.override(max_entries=2):
        return [f(x, kind) for kind in ("a", "bb", "ccc", "dddd")][-1]


@after
def _(jit, x):
    f = jit(lambda x, n: x * n)
    with config.override(max_entries=2):
        return [f(x, len(kind)) for kind in ("a", "bb", "ccc", "dddd")][-1]


@before("the source of f cannot be read", outside=True)
def _(jit, x):
    names = {}
    exec("def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n", names)
    return jit(names["f"])(x)


@after
def _(jit, x):
    return jit(in_a_file)(x)


def in_a_file(x):
    """Double a tensor whose sum is positive."""
    if x.sum() > 0:
        return x * 2
    return x - 1


@before("the source of f cannot be read", outside=True)
def _(jit, x):
    names = {}
    exec("def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n", names)
    return jit(names["f"])(x)


@after
def _(jit, x):
    names = {"tj": tj}
    exec("def f(x):\n    return tj.where(x.sum() > 0, x * 2, x - 1)\n", names)
    return jit(names["f"])(x)


@before("the function reads or writes a storage")
def _(x):
    return x * x.untyped_storage().nbytes()


@after
def _(x):
    return x * (x.numel() * x.element_size())
