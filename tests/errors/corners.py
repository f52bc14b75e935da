"""Messages that few programs give: effects in odd places, and loops that return odd things."""

from __future__ import annotations

import types

import tracejit as tj
from tests.errors.control_flow import Box, data, leaf
from tests.errors.entries import breaks, logged, undecided, unrolled
from tracejit import nn
from tracejit.nn import functional as F

N = 40
COUNT = 3


class Asked(tj.Tensor):
    """A class of tensors that handles functions by its own code."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Unsummed(tj.autograd.Function):
    """A Function whose backward gives one gradient too many."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


# -- what the function changes ---------------------------------------------------------------------


@breaks("the function changes the methods of class methods_of_a_class.<locals>.Scaled")
def methods_of_a_class(jit):
    class Scaled:
        def scale(self):
            return 2

    scaled = Scaled()

    @jit
    def f(x):
        y = x * scaled.scale()
        Scaled.scale = lambda self: 2
        return y

    for _ in range(2):
        f(data())  # here


@breaks("the function deletes box.n")
def slot_is_deleted(jit):
    class Slotted:
        __slots__ = ("n",)

    box = Slotted()

    @jit
    def f(x):
        y = x * box.n
        del box.n
        return y

    for _ in range(2):
        box.n = 2
        f(data())  # here


@breaks("the function deletes COUNT")
def global_is_deleted(jit):
    @jit
    def f(x):
        global COUNT
        y = x * COUNT
        del COUNT
        return y

    for _ in range(2):
        globals()["COUNT"] = 3
        f(data())  # here


@breaks("the function adds keys that it made to the dict known")
def keys_that_the_call_made(jit):
    known = {}

    @jit
    def f(x):
        known[Box()] = 2
        return x * 2

    for _ in range(2):
        f(data())  # here


@breaks("the function changes b.n, an attribute of a base class")
def attribute_of_a_base(jit):
    class Base:
        n = 1

    class Derived(Base):
        pass

    b = Derived()

    @jit
    def f(x):
        y = x * b.n
        Base.n = Base.n + 1
        return y

    for _ in range(2):
        f(data())  # here


@breaks(
    "the function adds 'a' to the attributes of computed_name_of_a_base.<locals>.Derived, by a "
    "name that it computes",
)
def computed_name_of_a_base(jit):
    class Base:
        pass

    class Derived(Base):
        n = 1

    b = Derived()

    @jit
    def f(x, name):
        if not hasattr(b, name):
            setattr(Base, name, 2)
        return x * b.n

    for _ in range(2):
        f(data(), "a")  # here
        del Base.a


# -- what tracejit cannot find ---------------------------------------------------------------------


@breaks("the function keeps a tensor somewhere that tracejit cannot see")
def tensor_is_kept_in_a_docstring(jit):
    hidden = property()

    @jit
    def f(x):
        y = x * 2
        hidden.__doc__ = y
        return y + 1

    f(data())  # here


@breaks(
    "the function returns or stores a tensor that tracejit cannot find in arguments, globals or "
    "closures",
)
def tensor_of_a_slice_is_returned(jit):
    hidden = slice(tj.ones(2))

    @jit
    def f(x):
        return x * 2, hidden.stop

    f(data())  # here


@breaks(
    "the function reads a tensor that tracejit cannot find through an argument, global, closure or "
    "attribute",
)
def tensor_of_a_slice_is_read(jit):
    hidden = slice(tj.ones(2))

    @jit
    def f(x):
        return x * hidden.stop

    f(data())  # here


@breaks("the function reads the gradient of a tensor that tracejit cannot find")
def gradient_of_a_hidden_tensor(jit):
    hidden = slice(leaf())

    @jit
    def f(x):
        return x * 2 if hidden.stop.grad is None else x

    f(data())  # here


@breaks("the function reads the number 'lr' from a container that tracejit cannot find")
def number_of_a_hidden_optimizer(jit):
    w = leaf()
    w.sum().backward()
    hidden = slice(tj.optim.SGD([w], 0.1))

    @jit
    def f(x):
        hidden.stop.step()
        return x * 2

    f(data())  # here


@breaks("the function reads attributes of the module 'made', which tracejit cannot find")
def module_that_the_call_made(jit):
    @jit
    def f(x, name):
        module = types.ModuleType("made")
        module.scale = 2
        return x * getattr(module, name)  # here

    f(data(), "scale")


@breaks("the function computes with tensors of the meta device")
def tensor_without_values(jit):
    empty = tj.ones(2, device="meta")

    @jit
    def f(x):
        return x * 2, empty + 1  # here

    f(data())


@breaks("the function calls storage_offset() on a view")
def offset_of_a_view(jit):
    @jit
    def f(x):
        return x + x.unfold(0, 1, 1)[1:].storage_offset()  # here

    f(data())


@breaks("tracejit cannot find the number optimizer.param_groups[0]['lr'] again")
def number_that_was_not_there(jit):
    w = leaf()
    w.sum().backward()
    optimizer = tj.optim.SGD([w], 0.1)
    group = optimizer.param_groups[0]

    @jit
    def f(x):
        optimizer.param_groups[0]["lr"] = 0.5
        optimizer.step()
        return x * 2

    for _ in range(2):
        del group["lr"]
        f(data())  # here


@breaks("the function raises an exception for these values", fullgraph=False)
def exception_is_caught(jit):
    @jit
    def f(x):
        try:
            if x.sum() > 0:  # here
                raise ValueError("positive")
        except ValueError:
            return x * 2
        return x

    f(data())


# -- branches --------------------------------------------------------------------------------------


@undecided("it imports a module")
def import_in_a_branch(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            import math

            return x * math.pi
        return x

    f(data())


@undecided("it runs property_in_a_branch.<locals>.Counted.scale, which tracejit did not rewrite")
def property_in_a_branch(jit):
    class Counted:
        n = 0

        @property
        def scale(self):
            self.n += 1
            return 2

    counted = Counted()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            return x * counted.scale
        return x

    f(data())


@undecided("its backward gives a sparse gradient")
def sparse_gradient_of_a_branch(jit):
    w = tj.ones(4, 2, requires_grad=True)

    @jit
    def f(i):
        if i.sum() > 0:  # here
            return F.embedding(i, w, sparse=True)
        return F.embedding(i, w, sparse=True) * 2

    f(tj.tensor([1, 2]))


@undecided(
    "its backward would fail: RuntimeError: function UnsummedBackward returned an incorrect number "
    "of gradients (expected 1, got 2)",
)
def backward_of_a_branch_fails(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            return Unsummed.apply(x)
        return x * 3

    f(leaf())


@undecided("it changes requires_grad, history or hooks of an outer tensor")
def module_is_frozen_in_a_branch(jit):
    layer = nn.Linear(2, 2)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            layer.requires_grad_(False)
            return x * 2
        return x

    f(data())


@undecided("it changes requires_grad or the gradient of an outer tensor")
def gradient_of_a_branch(jit):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            tj.autograd.backward([(w * x).sum()])
            return x * 2
        return x

    f(data())


@undecided("it changes the gradient of an outer tensor")
def gradient_is_set_by_a_function(jit):
    w = leaf()
    put = tj.Tensor.grad.fset

    @jit
    def f(x):
        if x.sum() > 0:  # here
            put(w, None)
            return x * 2
        return x

    f(data())


@undecided("it runs itself again, by recursion")
def recursion_in_a_branch(jit):
    def lowered(x, n):
        if x.sum() > 0:  # here
            return lowered(x - 1, n + 1)
        return x * n

    jit(lowered)(data(), 0)


# -- loops -----------------------------------------------------------------------------------------


@unrolled("it takes a part of a tensor whose class has a `__torch_function__`")
def rows_of_a_class(jit):
    @jit
    def f(x, rows):
        for k in range(N):  # here
            x = x + rows[k]
        return x

    f(data(), tj.ones(N, 2).as_subclass(Asked))


@unrolled("it takes a part of a tensor whose class has a `__torch_function__`")
def gathered_rows_of_a_class(jit):
    @jit
    def f(x, rows):
        for k in range(N):  # here
            x = x + rows[N - 1 - k]
        return x

    f(data(), tj.ones(N, 2).as_subclass(Asked))


@unrolled("it indexes a tensor by its index and by other tensors")
def index_beside_a_tensor(jit):
    @jit
    def f(x, t):
        y = x[0, 0]
        for k in range(N):  # here
            y = y + x[t, k].sum()
        return y

    f(tj.ones(2, N), tj.tensor([0, 1]))


@unrolled("a is another list in each case")
def lists_change_places(jit):
    @jit
    def f(xs):
        a, b = [], []
        for x in xs:  # here
            a.append(x * 2)
            a, b = b, a
        return a, b

    f(tj.ones(5, 2))


@unrolled("different iterations append tensors with different leaves")
def leaves_of_appended_tensors(jit):
    @jit
    def f(a, b, c, d, w):
        kept = []
        for _ in range(N):  # here
            kept.append(a * 1)
            a, b, c, d = b * 1, c * 1, d * 1, d * w
        return kept

    f(leaf(), leaf(), leaf(), leaf(), leaf())


@unrolled("its variables exchange tensors, and a tensor decides when it ends")
def exchanged_until_a_value(jit):
    @jit
    def f(x):
        a, b = x * 1, x * 2
        for _ in range(N):  # here
            a, b = b, a * 1
            if a[0] > 1e9:
                break
        return a, b

    f(data())


@unrolled("the returned value is a view")
def view_is_returned(jit):
    @jit
    def f(x):
        y = x[0]
        for _ in range(N):  # here
            if y.sum() > 1e9:
                return y
            y = y + 1
        return y

    f(tj.ones(2, 2))


@unrolled("the returned value is a view of a variable")
def view_of_a_variable_is_returned(jit):
    @jit
    def f(x):
        y = x * 1
        for _ in range(N):  # here
            before = y.detach()
            y = y + 1
            if y.sum() > 1e9:
                return before
        return y

    f(data())


@logged(
    "the loop runs as Python: two parts of the returned value share memory",
    "iterations run one by one: two results of one branch share memory",
    *["iterations run one by one: only one branch returns a value"] * 6,
)
def parts_of_a_returned_value(jit):
    @jit
    def f(xs):
        y = xs[0]
        for x in xs:  # here
            y = y + x
            a = y * 2
            b = a.detach()
            if y.sum() > 1e9:
                return a, b
        return y, y

    f(tj.ones(N, 2))


@unrolled("the returned value is one of several outer tensors")
def outer_tensors_are_returned(jit):
    @jit
    def f(x, a, b):
        mode, y = "first", x * 1
        for _ in range(N):  # here
            y = y + 1
            if y.sum() > 1e9:
                return a if mode == "first" else b
            mode = "later"
        return y

    f(data(), data(), data())


@unrolled("the returned value is a variable in one case only")
def variable_is_returned(jit):
    @jit
    def f(x):
        mode, y = "first", x * 1
        for _ in range(N):  # here
            y = y + 1
            if y.sum() > 1e9:
                return x * 3 if mode == "first" else y
            mode = "later"
        return y

    f(data())


@unrolled("a returned tensor requires grad in one case only")
def returned_tensor_requires_grad(jit):
    @jit
    def f(x, w):
        mode, y = "first", x * 1
        for _ in range(N):  # here
            y = y + 1
            if y.sum() > 1e9:
                return x * 3 if mode == "first" else x * w
            mode = "later"
        return y

    f(data(), leaf())
