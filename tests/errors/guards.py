"""Causes for which a captured function is compiled again, with their hints; guards as reported."""

from __future__ import annotations

import collections
import enum
import functools
import types

import tracejit as tj
from tests.errors.control_flow import Box, data, leaf
from tests.errors.entries import breaks, guarded, raises, recompiles
from tracejit import config


class Level(enum.Enum):
    """A choice of the user's."""

    LOW = 1
    HIGH = 2


def called(jit, function, *arguments):
    """Capture a function and call it with each of these."""
    f = jit(function)
    for given in arguments:
        f(*given)


# -- tensors ---------------------------------------------------------------------------------------


@recompiles(
    "x: float32, 1 dimensions, requires_grad=False -> float64, 1 dimensions, "
    "requires_grad=False, shape [2]; a tensor of another kind needs its own program",
)
def dtype(jit):
    @jit  # here
    def f(x):
        return x * 2

    f(data())
    f(data().double())


@recompiles(
    "x: float32, 1 dimensions, requires_grad=False -> float32, 0 dimensions, "
    "requires_grad=False, shape []; a tensor of another kind needs its own program",
)
def rank(jit):
    @jit  # here
    def f(x):
        return x * 2

    f(data())
    f(data()[0])


@recompiles(
    "x: float32, 1 dimensions, requires_grad=False -> float32, 1 dimensions, "
    "requires_grad=True, shape [2]; a tensor of another kind needs its own program",
)
def requires_grad(jit):
    @jit  # here
    def f(x):
        return x * 2

    f(data())
    f(leaf())


@recompiles(
    "x: contiguous -> float32, 2 dimensions, requires_grad=False, shape [2, 3]; the program holds "
    "for this value only; keep it the same between calls",
)
def strides_of_what_is_written(jit):
    @jit  # here
    def f(x):
        return x.add_(1)

    f(tj.ones(2, 3))
    f(tj.ones(3, 2).t())


@recompiles(
    "y: the same tensor as x -> float32, 1 dimensions, requires_grad=False, shape [2]; the "
    "program holds for this value only; keep it the same between calls",
)
def same_tensor(jit):
    @jit  # here
    def f(x, y):
        return x + y

    x = data()
    f(x, x)
    f(x, data())


@recompiles(
    "y: the same memory as x -> float32, 1 dimensions, requires_grad=False, shape [2]; the "
    "program holds for this value only; keep it the same between calls",
)
def same_memory(jit):
    @jit  # here
    def f(x, y):
        return x + y

    x = data()
    f(x, x[:])
    f(x, data())


@recompiles(
    "x: neither made in inference mode nor from .data -> float32, 1 dimensions, "
    "requires_grad=False, shape [2]; the program holds for this value only; keep it the same "
    "between calls",
)
def from_data(jit):
    @jit  # here
    def f(x):
        return x.add_(1)

    f(data())
    f(leaf().data)


@recompiles(
    "w: 0 hooks -> float32, 1 dimensions, requires_grad=True, shape [2]; the program holds for "
    "this value only; keep it the same between calls",
)
def hooks(jit):
    w = leaf()

    @jit  # here
    def f(x):
        return x * w

    f(data())
    w.register_hook(lambda g: g * 2)
    f(data())


@recompiles(
    "w.grad: == None -> float32, 1 dimensions, requires_grad=False, shape [2]; each value needs a "
    "program of its own; pass few values",
)
def gradient_is_there(jit):
    w = leaf()

    @jit  # here
    def f(x):
        return x * 2 if w.grad is None else x * w.grad

    f(data())
    w.grad = data()
    f(data())


@recompiles(
    "x: float32, 1 dimensions, requires_grad=True -> float32, 1 dimensions, "
    "requires_grad=True, shape [2]; a tensor of another kind needs its own program",
)
def a_leaf_no_more(jit):
    @jit  # here
    def f(x):
        return x * (2 if x.is_leaf else 3)

    f(leaf())
    f(leaf() * 1)


# -- sizes -----------------------------------------------------------------------------------------


@recompiles(
    "size x.shape[0] at <return x * 2 if x.shape[0] > 3 else x>: x.shape[0] > 3 -> 2 and 3; "
    "the line asks about this size; another answer needs another program",
)
def size_is_asked(jit):
    @jit  # here
    def f(x):
        return x * 2 if x.shape[0] > 3 else x

    f(tj.ones(5))
    f(tj.ones(2))


@recompiles(
    "size x.shape[0] at <return x * 0.4375 + y>: x.shape[0] == y.shape[0] -> 3 and 1; the "
    "line asks about this size; another answer needs another program",
)
def sizes_that_were_equal(jit):
    # A number that no other program has: programs that are alike share one, with its first lines.
    @jit  # here
    def f(x, y):
        return x * 0.4375 + y

    f(tj.ones(3), tj.ones(3))
    f(tj.ones(3), tj.ones(1))


@recompiles(
    "memory of the inputs: disjoint and writable -> overlapping or read-only, and the program "
    "writes some of it; the program holds for this value only; keep it the same between calls",
)
def memory_overlaps(jit):
    @jit  # here
    def f(x, y):
        x.add_(1)
        return y * 2

    f(data(), data())
    memory = tj.ones(3)
    f(memory[:2], memory[1:])


# -- numbers and other constants -------------------------------------------------------------------


@recompiles(
    "rate > 0.5: True -> another answer; the function asks this; another answer needs another "
    "program",
)
def number_is_compared(jit):
    @jit  # here
    def f(x, rate):
        return x * 2 if rate > 0.5 else x

    f(data(), 0.75)
    f(data(), 0.25)


@recompiles(
    "n: == 3 -> 4; each value of this int needs a program; pass few values (a loop over a "
    "tensor's size needs one program for all)",
)
def int_whose_value_counts(jit):
    @jit  # here
    def f(x, n):
        return x * len("a" * n)

    f(data(), 3)
    f(data(), 4)


@recompiles(
    "rate: == 0.5 -> 0.25; if this float is used only in arithmetic with tensors, it is an input "
    "from now on; else each value needs a program, so pass few values",
)
def float_whose_value_counts(jit):
    @jit  # here
    def f(x, rate):
        return x * hash(rate)

    f(data(), 0.5)
    f(data(), 0.25)


@recompiles("kind: == 'double' -> 'same'; each value needs a program of its own; pass few values")
def text(jit):
    @jit  # here
    def f(x, kind):
        return x * 2 if kind == "double" else x

    f(data(), "double")
    f(data(), "same")


@recompiles("flag: == True -> False; each value needs a program of its own; pass few values")
def flag(jit):
    @jit  # here
    def f(x, flag):
        return x * 2 if flag else x

    f(data(), True)
    f(data(), False)


@recompiles(
    "k: int, any value -> 2.0; the program holds for this value only; keep it the same between "
    "calls",
)
def another_type_of_number(jit):
    @jit  # here
    def f(x, k):
        return x * k

    f(data(), 2)
    f(data(), 2.0)


@recompiles(
    "level: == Level.LOW -> Level.HIGH; each value needs a program of its own; pass few values",
)
def member_of_an_enum(jit):
    @jit  # here
    def f(x, level):
        return x * 2 if level is Level.HIGH else x

    f(data(), Level.LOW)
    f(data(), Level.HIGH)


@recompiles(
    "bias: == None -> float32, 1 dimensions, requires_grad=False, shape [2]; each value needs a "
    "program of its own; pass few values",
)
def none(jit):
    @jit  # here
    def f(x, bias=None):
        return x if bias is None else x + bias

    f(data())
    f(data(), data())


# -- containers ------------------------------------------------------------------------------------


@recompiles(
    "xs: list of 2 -> [tensor([1., 2.])]; the program holds for this value only; keep it the same "
    "between calls",
)
def length_of_a_list(jit):
    @jit  # here
    def f(xs):
        return sum(xs)

    f([data(), data()])
    f([data()])


@recompiles(
    "xs: keys ['a', 'b'] -> {'b': tensor([1., 2.]), 'a': tensor([1., 2.])}; the program holds for "
    "this value only; keep it the same between calls",
)
def keys_of_a_dict(jit):
    @jit  # here
    def f(xs):
        return sum(xs.values())

    f({"a": data(), "b": data()})
    f({"b": data(), "a": data()})


@recompiles(
    "xs: dict of 2 -> dict of 3; the program holds for this value only; keep it the same between "
    "calls",
)
def keys_that_are_objects(jit):
    one, other = Level.LOW, Level.HIGH

    @jit  # here
    def f(xs):
        return sum(xs.values())

    f({one: data(), (1, 2): data()})
    f({(1, 2): data(), one: data(), other: data()})


@recompiles(
    "xs: 2 keys in their order -> {tracejit.int64: tensor([1., 2.]), tracejit.float32: 1.0}; the "
    "program holds for this value only; keep it the same between calls",
)
def order_of_keys(jit):
    @jit  # here
    def f(xs):
        return sum(xs.values())

    f({tj.float32: 1.0, tj.int64: data()})
    f({tj.int64: data(), tj.float32: 1.0})


@recompiles(
    "seen: set {'a'} -> set(); the program holds for this value only; keep it the same between "
    "calls",
)
def contents_of_a_set(jit):
    seen = {"a"}

    @jit  # here
    def f(x):
        return x * 2 if "a" in seen else x

    f(data())
    seen.clear()
    f(data())


@recompiles(
    "xs: a deque of at most 3 -> deque([tensor([1., 2.])], maxlen=4); the program holds for this "
    "value only; keep it the same between calls",
)
def longest_deque(jit):
    @jit  # here
    def f(xs):
        return sum(xs)

    f(collections.deque([data()], 3))
    f(collections.deque([data()], 4))


# -- code and objects ------------------------------------------------------------------------------


@recompiles(
    "mode: grad mode is True -> changed; call the function under the same grad mode and default "
    "dtype",
)
def grad_mode(jit):
    @jit  # here
    def f(x):
        return x * 2

    f(data())
    with tj.no_grad():
        f(data())


@recompiles(
    "mode: inference mode is False -> changed; call the function under the same grad mode and "
    "default dtype",
)
def inference_mode(jit):
    @jit  # here
    def f(x):
        return x * 2

    with tj.no_grad():
        f(data())
    with tj.inference_mode():
        f(data())


@recompiles(
    "mode: default dtype is tracejit.float32 -> changed; call the function under the same grad "
    "mode and default dtype",
)
def default_dtype(jit):
    @jit  # here
    def f(x):
        return x * 2

    f(data())
    before = tj.get_default_dtype()
    tj.set_default_dtype(tj.float64)
    try:
        f(data().float())
    finally:
        tj.set_default_dtype(before)


@recompiles("mode: autocast is off -> changed; call the function under the same grad mode and "
            "default dtype")
def autocast(jit):
    @jit  # here
    def f(x):
        return x * 2

    f(data())
    with tj.autocast("cpu"):
        f(data())


@recompiles(
    "mode: no hooks of all modules -> changed; call the function under the same grad mode and "
    "default dtype",
)
def hooks_of_all_modules(jit):
    from tracejit.nn.modules.module import register_module_forward_hook

    @jit  # here
    def f(x):
        return x * 2

    f(data())
    handle = register_module_forward_hook(lambda *given: None)
    try:
        f(data())
    finally:
        handle.remove()


@recompiles(
    "mode: default device is cpu -> changed; call the function under the same grad mode and "
    "default dtype",
)
def default_device(jit):
    @jit  # here
    def f(x):
        return x * 2

    x = data()
    f(x)
    with tj.device("cpu"), tj.device("meta"), tj.device("cpu"):
        f(x)


@recompiles(
    "g: function function_of_the_users.<locals>.<lambda> -> <function "
    "function_of_the_users.<locals>.<lambda> at ...>; the program holds for this value only; keep "
    "it the same between calls",
)
def function_of_the_users(jit):
    @jit  # here
    def f(x, g):
        return g(x)

    f(data(), lambda x: x * 2)
    f(data(), lambda x: x + 1)


@recompiles(
    "g: partial -> <function partial.<locals>.<lambda> at ...>; the program holds for this value "
    "only; keep it the same between calls",
)
def partial(jit):
    @jit  # here
    def f(x, g):
        return g(x)

    f(data(), functools.partial(tj.mul, 2.0))
    f(data(), lambda x: x + 1)


@recompiles(
    "g: identity exp -> <op tanh>; the program holds for this value only; keep it the same "
    "between calls",
)
def op(jit):
    @jit  # here
    def f(x, g):
        return g(x)

    f(data(), tj.exp)
    f(data(), tj.tanh)


@recompiles(
    "box: Box -> a class_of_an_object.<locals>.Other; the program holds for this value only; keep "
    "it the same between calls",
)
def class_of_an_object(jit):
    class Other(Box):
        pass

    @jit  # here
    def f(x, box):
        return x * box.k

    f(data(), Box(k=2.0))
    f(data(), Other(k=2.0))


@recompiles(
    "class methods_of_a_class.<locals>.Scale: the methods of methods_of_a_class.<locals>.Scale -> "
    "<class 'tests.errors.guards.methods_of_a_class.<locals>.Scale'>; the program holds for this "
    "value only; keep it the same between calls",
)
def methods_of_a_class(jit):
    class Scale:
        def by(self, x):
            return x * 2

    scale = Scale()

    @jit  # here
    def f(x):
        return scale.by(x)

    f(data())
    Scale.by = lambda self, x: x * 3
    f(data())


@recompiles(
    "box.k: float, any value -> (absent); the program holds for this value only; keep it the same "
    "between calls",
)
def attribute_is_gone(jit):
    box = Box(k=2.0)

    @jit  # here
    def f(x):
        return x * getattr(box, "k", 1.0)

    f(data())
    del box.k
    f(data())


@recompiles(
    "box.k: absent -> there; the program holds for this value only; keep it the same between calls",
)
def attribute_is_there(jit):
    box = Box()

    @jit  # here
    def f(x):
        return x * getattr(box, "k", 1.0)

    f(data())
    box.k = 2.0
    f(data())


@recompiles(
    "box.__dict__: names ['a'] -> ('a', 'b'); the program holds for this value only; keep it the "
    "same between calls",
)
def names_of_attributes(jit):
    box = Box(a=1.0)

    @jit  # here
    def f(x):
        return x * sum(vars(box).values())

    f(data())
    box.b = 2.0
    f(data())


@recompiles(
    "holder.module: module one -> <module 'other'>; the program holds for this value only; keep "
    "it the same between calls",
)
def module_in_a_variable(jit):
    one, other = types.ModuleType("one"), types.ModuleType("other")
    one.k, other.k = 2.0, 3.0
    holder = Box(module=one)

    @jit  # here
    def f(x):
        return x * holder.module.k

    f(data())
    holder.module = other
    f(data())


@recompiles(
    "other: the same object as one -> a Box; the program holds for this value only; keep it the "
    "same between calls",
)
def same_object(jit):
    @jit  # here
    def f(x, one, other):
        return x * (one.k if one is other else 3.0)

    box = Box(k=2.0)
    f(data(), box, box)
    f(data(), box, Box(k=2.0))


@recompiles(
    "one: another object than at 1 other places -> a Box; the program holds for this value only; "
    "keep it the same between calls",
)
def different_objects(jit):
    @jit  # here
    def f(x, one, other):
        one.k = other.k + 1.0
        return x * other.k

    box = Box(k=2.0)
    f(data(), box, Box(k=3.0))
    f(data(), box, box)


@recompiles(
    "the generators: different ones -> one and the same; the program holds for this value only; "
    "keep it the same between calls",
)
def generators_that_become_one(jit):
    @jit  # here
    def f(x, g, h):
        return x * tj.rand(2, generator=g) + tj.rand(2, generator=h)

    one, other = tj.Generator(), tj.Generator()
    f(data(), one, other)
    f(data(), one, one)


@recompiles(
    "kept_result.<locals>.gain: 2.0 -> another result; the program holds for this value only; "
    "keep it the same between calls",
)
def kept_result(jit):
    state = Box(k=2.0)

    @functools.lru_cache
    def gain():
        return state.k

    @jit  # here
    def f(x):
        return x * gain()

    gain()
    f(data())
    gain.cache_clear()
    state.k = 3.0
    gain()
    f(data())


@raises(
    tj.jit.RecompileError,
    "f would be recompiled: x: float32, 1 dimensions, requires_grad=False -> float64, 1 "
    "dimensions, requires_grad=False, shape [2] (<@jit>); a tensor of another kind needs "
    "its own program",
    plainly=False,
)
def recompiled_where_that_is_forbidden(jit):
    @jit
    def f(x):
        return x * 2

    f(data())
    with tj.no_recompile():
        f(data().double())  # here


# -- many programs ---------------------------------------------------------------------------------


@breaks(
    "the function has 2 programs already, and gets no more; last cause: kind: == 'bb' -> 'ccc' "
    "(<@jit>); each value needs a program of its own; pass few values\nhint: each value needs a "
    "program of its own; pass few values",
    fullgraph=False,
)
def too_many_programs(jit):
    @jit
    def f(x, kind):
        return x * len(kind)

    with config.override(max_entries=2):
        for kind in ("a", "bb", "ccc"):
            f(data(), kind)


# -- guards as the report lists them ---------------------------------------------------------------


@guarded(
    "mode: grad mode is True, inference mode is False, no hooks of all modules, default dtype is "
    "tracejit.float32, autocast is off, default device is cpu",
    "guards_of_a_call.<locals>.f: function guards_of_a_call.<locals>.f, in the same module",
    "x: float32, 2 dimensions, requires_grad=False, neither made in inference mode nor from .data, "
    "contiguous",
    "k: float, any value",
)
def guards_of_a_call(jit):
    @jit
    def f(x, k):
        return x @ x * k

    f(tj.ones(2, 2), 0.5)


@recompiles(
    "box: the same object, because its id() is used -> a Box; the program holds for this value "
    "only; keep it the same between calls",
)
def number_of_an_object(jit):
    @jit  # here
    def f(x, box):
        return x * (id(box) % 7)

    one, other = Box(), Box()
    f(data(), one)
    f(data(), other)


@recompiles(
    "mode: the classes registered with abstract ones -> changed; call the function under the same "
    "grad mode and default dtype",
)
def registered_with_an_abstract_class(jit):
    import abc

    class Kind(abc.ABC):  # noqa: B024
        """A kind of objects."""

    box = Box()

    @jit  # here
    def f(x):
        return x * 2 if isinstance(box, Kind) else x

    f(data())
    Kind.register(Box)
    f(data())


@recompiles(
    "x: not contiguous -> float32, 2 dimensions, requires_grad=False, shape [2, 3]; the program "
    "holds for this value only; keep it the same between calls",
)
def not_contiguous(jit):
    @jit  # here
    def f(x):
        return x.contiguous() + 1 if x.is_contiguous() else x * 2

    f(tj.ones(2, 3).t())
    f(tj.ones(2, 3))


@recompiles(
    "x: 0 elements into its storage -> float32, 1 dimensions, requires_grad=False, shape [2]; the "
    "program holds for this value only; keep it the same between calls",
)
def place_in_its_storage(jit):
    @jit  # here
    def f(x):
        return x * x.storage_offset()

    memory = tj.ones(4)
    f(memory[:2])
    f(memory[2:])


@recompiles(
    "x: no view -> float32, 1 dimensions, requires_grad=False, shape [2]; the program holds for "
    "this value only; keep it the same between calls",
)
def view_that_is_detached_in_place(jit):
    @jit  # here
    def f(x):
        try:
            return x.detach_() * 2
        except RuntimeError:
            return x

    f(tj.ones(2))
    f(tj.ones(4)[:2])


@recompiles(
    "net.forward: absent -> there; the program holds for this value only; keep it the same "
    "between calls",
)
def module_with_a_method_of_its_own(jit):
    net = tj.nn.Linear(2, 2)

    @jit  # here
    def f(x):
        return net(x)

    f(data())
    net.forward = lambda x: x * 2
    f(data())


@recompiles(
    "scaled.__defaults__[0]: == 2.0 -> 0.5; if this float is used only in arithmetic with tensors, "
    "it is an input from now on; else each value needs a program, so pass few values",
)
def default_of_a_parameter(jit):
    def scaled(x, k=2.0):
        return x * k if k > 1 else x

    @jit  # here
    def f(x):
        return scaled(x)

    f(data())
    scaled.__defaults__ = (0.5,)
    f(data())


@recompiles(
    "scale.get(): == 2 -> 3; each value of this int needs a program; pass few values (a loop over "
    "a tensor's size needs one program for all)",
)
def variable_of_a_context(jit):
    import contextvars

    scale = contextvars.ContextVar("scale")
    scale.set(2)

    @jit  # here
    def f(x):
        return x * len("a" * scale.get())

    f(data())
    scale.set(3)
    f(data())
