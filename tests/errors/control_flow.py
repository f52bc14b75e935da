"""Branches that a tensor decides and that are no part of the graph, with the reason."""

from __future__ import annotations

import collections
import contextlib

import tracejit as tj
from tests.errors.entries import breaks, raises, undecided
from tracejit import nn

ONES = (1.0, 2.0)


class Box:
    """An object of the user's."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __call__(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return x


class Tagged(tj.Tensor):
    """A class of tensors."""


def data():
    """Return two positive numbers."""
    return tj.tensor(ONES)


def leaf():
    """Return a leaf that requires grad."""
    return tj.tensor(ONES, requires_grad=True)


# -- what the sides give ---------------------------------------------------------------------------


@undecided("the returned value is int32 in one case and float32 in the other")
def dtype_of_result_differs(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            return x.int()
        return x * 2

    f(data())


@undecided("y is int32 in one case and float32 in the other")
def dtype_of_variable_differs(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            y = x.int()
        else:
            y = x * 2
        return y + 1

    f(data())


@undecided("the returned value has different shapes in the two cases")
def shape_differs(jit):
    @jit
    def f(x):
        return x[:1] * 2 if x.sum() > 0 else x * 2  # here

    f(data())


@undecided("the returned value is a Tagged in one case and a Tensor in the other")
def class_of_tensor_differs(jit):
    @jit
    def f(x):
        return (x * 2).as_subclass(Tagged) if x.sum() > 0 else x + 1  # here

    f(data())


@undecided("the returned value is a list of 1 in one case and a tuple of 1 in the other")
def structure_differs(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            return [x * 2]
        return (x + 1,)

    f(data())


@undecided("the returned value is 'sum' in one case and 'mean' in the other")
def constant_differs(jit):
    @jit
    def f(x):
        y = "sum" if x.sum() > 0 else "mean"  # here
        return x * len(y)

    f(data())


@undecided("the returned value is a list of 2 in one case and a list of 1 in the other")
def length_differs(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            return [x * 2, x]
        return [x + 1]

    f(data())


@undecided(
    "the returned value is a dict with keys ['a'] in one case and a dict with keys ['b'] "
    "in the other",
)
def keys_differ(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            return {"a": x * 2}
        return {"b": x + 1}

    f(data())


@undecided("the returned value is a Box in one case only")
def object_in_one_case_only(jit):
    box = Box()

    @jit
    def f(x):
        for k in range(3):
            if x.sum() > k:  # here
                return box
        return x

    f(data())


@undecided("it sets the attribute tag")
def attributes_of_the_users(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            y = x * 2
            y.tag = "doubled"
        else:
            y = x + 1
        return y * 2

    f(data())


@undecided("the returned value has different strides in the two cases")
def strides_differ(jit):
    @jit
    def f(x):
        y = (x * 2).t() if x.sum() > 0 else x + 1  # here
        return y.reshape(4)

    f(tj.ones(2, 2))


@undecided("a result is a view of an outer tensor in one case only")
def view_in_one_case_only(jit):
    @jit
    def f(x):
        y = x[0] if x.sum() > 0 else x[1] * 2  # here
        return y + 1

    f(data())


@undecided("two results of one branch share memory")
def results_share_memory(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            y = x * 2
            return y, y[:]
        return x + 1, x + 2

    f(data())


@undecided("it gives one list or dict in two places")
def list_in_two_places(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            kept = [x]
            return kept, kept
        return [x + 1], [x + 2]

    f(data())


@undecided("under no_grad(), a result may be an outer tensor that requires grad")
def requires_grad_without_gradients(jit):
    w = leaf()

    @jit
    def f(x):
        with tj.no_grad():
            y = w if x.sum() > 0 else x * 2  # here
        return y * 2

    f(data())


@undecided("a `continue` leaves a `with` or `try` in one case only")
def continue_out_of_a_with(jit):
    @jit
    def f(x):
        for _ in range(3):
            with contextlib.suppress(ValueError):
                if x.sum() > 0:  # here
                    continue
                x = x + 1
            x = x * 2
        return x

    f(data())


# -- what a side does ------------------------------------------------------------------------------


@raises(
    tj.CaptureError,
    "<here>  if x.sum() > 0:  # here\n    the branch runs as Python: both branches raise an "
    "exception\n    hint: raise before the write, or return a flag and raise outside the captured "
    "function",
    plainly=False,
)
def both_sides_raise(jit):
    @jit(fullgraph=True)
    def f(x):
        if x.sum() > 0:  # here
            raise ValueError("positive")
        else:
            raise ValueError("negative")

    f(data())


@undecided("it writes an outer tensor before it raises an exception")
def write_before_an_exception(jit):
    @jit
    def f(x):
        if x.sum() < 0:  # here
            x.add_(1)
            raise ValueError("negative")
        return x * 2

    f(data())


@undecided("an argument of ValueError is a Tensor, expected a number or a string")
def exception_with_a_value(jit):
    @jit
    def f(x):
        if x.sum() < 0:  # here
            raise ValueError(x)
        return x * 2

    f(data())


@undecided("the function calls item()")
def value_is_needed(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            x = x * float(x[0])
        return x + 1

    f(data())


@undecided("the function calls item()")
def item_in_a_side(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            x = x * x[0].item()
        return x + 1

    f(data())


@undecided("it draws random numbers")
def random_numbers(jit):
    @jit
    def f(x):
        return x * tj.rand(2) if x.sum() > 0 else x  # here

    f(data())


@undecided("it runs the first step of an optimizer, which makes its state")
def optimizer_makes_its_state(jit):
    w = leaf()
    optimizer = tj.optim.Adam([w])
    w.grad = tj.ones(2)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            optimizer.step()
        return x * 2

    f(data())


@undecided("it appends to an outer list")
def list_appended_to_in_a_side(jit):
    kept = []

    @jit
    def f(x):
        if x.sum() > 0:  # here
            kept.append(x)
        return x * 2

    f(data())


@undecided("it appends to an outer list")
def appended_by_a_function_in_a_side(jit):
    def add(kept, x):
        kept.append(x)

    kept = []

    @jit
    def f(x):
        if x.sum() > 0:  # here
            add(kept, x)
        return x * 2

    f(data())


@undecided("it changes a dict made outside it (update)")
def container_changed_by_a_method(jit):
    kept = {}

    @jit
    def f(x):
        if x.sum() > 0:  # here
            kept.update(a=1)
        return x * 2

    f(data())


@undecided("it assigns an item of an outer object")
def item_assigned(jit):
    kept = {}

    @jit
    def f(x):
        if x.sum() > 0:  # here
            kept["a"] = 1
        return x * 2

    f(data())


@undecided("it deletes an item")
def item_deleted(jit):
    kept = {"a": 1}

    @jit
    def f(x):
        if x.sum() > 0:  # here
            del kept["a"]
        return x * 2

    f(data())


@undecided("it may add a missing key")
def key_missing_of_a_defaultdict(jit):
    kept = collections.defaultdict(int)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            return x * kept["a"]
        return x * 2

    f(data())


@undecided("it sets the attribute n")
def attribute_assigned(jit):
    box = Box(n=0)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            box.n = 1
        return x * 2

    f(data())


@undecided("it deletes the attribute n")
def attribute_deleted(jit):
    box = Box(n=0)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            del box.n
        return x * 2

    f(data())


@undecided("it sets the nonlocal variable kept")
def changed_in_place(jit):
    kept = [1]

    @jit
    def f(x):
        nonlocal kept
        if x.sum() > 0:  # here
            kept += [2]
        return x * 2

    f(data())


@undecided("it sets the global variable LAST")
def global_assigned(jit):
    @jit
    def f(x):
        global LAST
        if x.sum() > 0:  # here
            LAST = 1
        return x * 2

    f(data())


@breaks(
    "it: the function reads this builtins.list_iterator, and tracejit cannot see its changes",
    "the branch runs as Python: it calls next, and tracejit cannot see its effects",
)
def iterator_consumed(jit):
    it = iter([1.0, 2.0])

    @jit  # here
    def f(x):
        return x * next(it) if x.sum() > 0 else x + 1  # here

    f(data())


@breaks(
    "it: the function reads this builtins.list_iterator, and tracejit cannot see its changes",
    "the branch runs as Python: it consumes a list_iterator made outside it",
)
def iterator_unpacked(jit):
    it = iter([1.0, 2.0])

    @jit  # here
    def f(x):
        if x.sum() > 0:  # here
            a, b = it
            return x * a
        return x + 1

    f(data())


@undecided("it calls print, and tracejit cannot see its effects")
def print_in_a_side(jit):
    @jit
    def f(x):
        if x.sum() < 0:  # here
            print("negative")
        return x * 2

    f(data())


@undecided("it calls open, and tracejit cannot see its effects")
def unknown_function(jit):
    @jit
    def f(x):
        if x.sum() < 0:  # here
            open("/tmp/nothing")
        return x * 2

    f(data())


@undecided("it calls unknown, whose source tracejit cannot rewrite")
def function_without_source(jit):
    names = {}
    exec("def unknown(x):\n    return x * 3", names)
    unknown = names["unknown"]

    @jit
    def f(x):
        return unknown(x) if x.sum() > 0 else x  # here

    f(data())


@undecided("it makes a Box")
def object_is_made(jit):
    @jit
    def f(x):
        y = Box(n=x) if x.sum() > 0 else Box(n=x + 1)  # here
        return y.n

    f(data())


@undecided("it sets the attribute calls")
def callable_object(jit):
    box = Box()

    @jit
    def f(x):
        return box(x) * 2 if x.sum() > 0 else x  # here

    f(data())


@undecided("it calls register_hook")
def hook_registered_in_a_side(jit):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            w.register_hook(lambda g: g * 2)
        return x * w

    f(data())


@undecided("it calls backward")
def backward_in_a_side(jit):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            (x * w).sum().backward()
        return x * 2

    f(data())


@undecided("it runs backward() through history from outside")
def history_outside_in_a_side(jit):
    w = leaf()

    @jit
    def f(x, loss):
        if x.sum() > 0:  # here
            g, = tj.autograd.grad(loss, w, retain_graph=True)
            return x * g
        return x * 2

    f(data(), (w * 3).sum())


@undecided("it sets the attribute grad")
def gradient_of_what_was_made_outside(jit):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            w.grad = x * 2
        return x * 2

    f(data())


@undecided("it sets the attribute requires_grad")
def requires_grad_changed(jit):
    w = leaf()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            w.requires_grad = False
        return x * w

    f(data())


@undecided(
    "it leaves grad mode changed",
    "the function leaves grad mode, autocast or a default changed\nhint: use `with "
    "tracejit.no_grad():`",
)
def grad_mode_left_changed(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            tj.set_grad_enabled(False)
        return x * 2

    try:
        f(data())  # here
    finally:
        tj.set_grad_enabled(True)


@undecided("it writes an outer tensor while gradients are recorded")
def written_while_gradients_are_recorded(jit):
    w = leaf()

    @jit
    def f(x):
        y = w * 2
        if x.sum() > 0:  # here
            y.add_(1)
        return y * 3

    f(data())


@undecided("it writes a tensor that came from `.data`")
def written_that_is_from_data(jit):
    @jit
    def f(x, y):
        if x.sum() > 0:  # here
            y.add_(1)
        return x * 2

    f(data(), leaf().data)


@undecided("it writes a tensor whose old value an outer gradient needs")
def written_that_history_needs(jit):
    w = leaf()

    @jit
    def f(x):
        y = x * 2
        z = w * y
        if x.sum() > 0:  # here
            y.add_(1)
        return z

    f(data())


@undecided("it uses a tensor that overlaps another tensor")
def overlapping_memory(jit):
    @jit
    def f(x, y):
        if x.sum() > 0:  # here
            return x * y
        return x

    memory = tj.ones(6)
    f(memory[:4], memory[2:])


@undecided(
    "the shape of nonzero's result depends on a tensor's values\nhint: keep the shape: "
    "tracejit.where(mask, x, 0), x.masked_fill(...), or sums weighted by the mask",
)
def shape_depends_on_values(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            y = tj.nonzero(x)
        else:
            y = x
        return y.sum()

    f(data())


# -- after a branch --------------------------------------------------------------------------------


@breaks("a tensor's value decides which tensor a variable is")
def which_tensor_is_asked(jit):
    @jit
    def f(x, y):
        z = x if x.sum() > 0 else y
        return z * (2 if z is x else 3)  # here

    f(data(), data())


@breaks(
    "the result's backward would fail: RuntimeError: one of the variables needed for gradient "
    "computation has been modified by an inplace operation: [tracejit.FloatTensor [2]] was "
    "written since. Hint: enable anomaly detection to find the operation that failed to compute "
    "its gradient, with tracejit.autograd.set_detect_anomaly(True, check_nan=False).",
)
def which_tensor_is_written(jit):
    w = leaf()

    @jit
    def f(x, y):
        z = x if x.sum() > 0 else y
        u = z * w
        z.add_(w.detach())
        return u, z

    f(data(), data())  # here


@breaks(
    "the branch runs as Python: the returned value has different strides in the two cases",
)
def layout_depends_on_a_value(jit):
    @jit
    def f(x, y):
        z = x if x.sum() > 0 else y.t()  # here
        return z.stride()[0] * x

    f(tj.ones(2, 2), tj.ones(2, 2))


@undecided("a result is one of two tensors with different `_version`")
def one_of_two_written_differently(jit):
    @jit
    def f(x, y):
        x.add_(1)
        z = x if x.sum() > 0 else y  # here
        return z

    f(data(), data())


@undecided("a result is `.data` of a tensor")
def result_from_data(jit):
    @jit
    def f(x):
        y = x * 2
        z = y.data if x.sum() > 0 else y  # here
        return z, y

    f(leaf())


@breaks(
    "the branch runs as Python: only one branch returns a value",
)
def returns_in_one_case_only(jit):
    class Counted:
        def __enter__(self):
            return self

        def __exit__(self, *exc):
            return False

    @jit
    def f(x):
        for _ in range(3):
            with Counted():
                if x.sum() > 1:  # here
                    return x
                x = x + 1
        return x * 2

    f(data())


@undecided("it changes an outer object in place (+=)")
def object_changed_in_place(jit):
    class Adding(Box):
        def __iadd__(self, other):
            self.n = other
            return self

    box = Adding(n=1)

    @jit
    def f(x):
        added = box
        if x.sum() > 0:  # here
            added += 1
        return x * 2

    f(data())


@breaks(
    "the branch runs as Python: only one branch leaves the loop",
)
def ends_a_loop_within_a_with(jit):
    @jit
    def f(x):
        for _ in range(3):
            with contextlib.nullcontext():
                if x.sum() > 1:  # here
                    break
                x = x + 1
        return x * 2

    f(data())


@undecided("it runs clear_gradient, which changes objects")
def gradients_are_set_to_zero(jit):
    w = leaf()
    w.grad = tj.ones(2)
    optimizer = tj.optim.SGD([w], lr=0.1)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            optimizer.zero_grad()
        return x * 2

    f(data())


@undecided("it changes requires_grad, history or hooks of an outer tensor")
def parameters_without_gradients(jit):
    net = nn.Linear(2, 2)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            net.requires_grad_(False)
        return net(x)

    f(data())


@undecided("it runs LRScheduler.step, which changes objects")
def schedule_steps(jit):
    optimizer = tj.optim.SGD([leaf()], lr=0.1)
    schedule = tj.optim.lr_scheduler.StepLR(optimizer, 1)

    @jit
    def f(x):
        if x.sum() > 0:  # here
            schedule.step()
        return x * 2

    f(data())


@undecided("it runs manual_seed, which changes objects")
def seeded_in_a_side(jit):
    @jit
    def f(x):
        if x.sum() > 0:  # here
            tj.manual_seed(0)
        return x * 2

    f(data())


@breaks("a tensor's value decides which tensor the function writes")
def one_of_two_is_written_with_history(jit):
    w = leaf()

    @jit
    def f(x):
        y = x * 2
        z = y * 2 if x.sum() > 0 else y
        z.mul_(w)  # here
        return y, z

    f(data())


@breaks(
    "the function needs strides that a tensor's value decides",
    "the function reads memory that it wrote through an overlapping tensor",
    "the function writes a tensor that overlaps itself or another tensor",
)
def layout_of_one_of_two(jit):
    @jit
    def f(x, y):
        k = 0
        while True:
            k += 1
            if k > 2 or x.sum() > 0:
                break
            y = y + 5
        for i, _ in enumerate(x):
            y[i - 1] += y[i - 1] + 1  # here
        return y

    f(tj.ones(3), tj.ones(1).expand(3))


    f(data(), tj.tensor([0, 1]))


@undecided("a tensor gets a gradient in one branch only")
def gradients_of_other_parameters(jit):
    a, b = leaf(), leaf()

    @jit
    def f(x):
        if x.sum() > 0:  # here
            return (a * x).sum()
        return (b * x).sum()

    f(data())
