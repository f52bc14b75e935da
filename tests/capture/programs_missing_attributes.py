"""Programs on attributes that are not there when they are asked for, and come to be there; on
variables of contexts, sets of classes, and what the standard library reads of functions."""

from __future__ import annotations

import contextvars
import dataclasses
import inspect
import types

import tracejit as tj
from tests.capture.program_list import programs_in
from tracejit import nn


class Held:
    kind = "held"

    def scale(self):
        return 2.0


class Derived(Held):
    pass


def _called(f, *changes):
    """What `f` shows three times, and after each change twice."""
    out = [f() for _ in range(3)]
    for change in changes:
        change()
        out += [f(), f()]
    return out


def _asking(jit, owner, name, *changes):
    x = tj.ones(2)

    def f():
        return x * (getattr(owner, name) if hasattr(owner, name) else 1.0)

    return _called(jit(f), *changes)


def attribute_of_an_object_that_appears(jit):
    held = Held()
    return _asking(jit, held, "factor", lambda: setattr(held, "factor", 3.0),
                   lambda: delattr(held, "factor"))


def attribute_of_a_class_that_appears(jit):
    class Own(Held):
        pass

    return _asking(jit, Own(), "factor", lambda: setattr(Own, "factor", 3.0),
                   lambda: delattr(Own, "factor"))


def attribute_of_a_base_that_appears(jit):
    class Base:
        pass

    class Own(Base):
        pass

    return _asking(jit, Own(), "factor", lambda: setattr(Base, "factor", 3.0),
                   lambda: setattr(Own, "factor", 5.0))


def attribute_of_a_function_that_appears(jit):
    def marked():
        return 1

    return _asking(jit, marked, "factor", lambda: setattr(marked, "factor", 3.0))


def attribute_of_a_layer_that_appears(jit):
    layer = nn.Linear(1, 1)
    return _asking(jit, layer, "factor", lambda: setattr(layer, "factor", 3.0),
                   lambda: setattr(nn.Linear, "other", 1.0), lambda: delattr(nn.Linear, "other"))


def method_that_an_instance_replaces(jit):
    held, x = Held(), tj.ones(2)
    return _called(jit(lambda: x * held.scale()), lambda: setattr(held, "scale", lambda: 7.0),
                   lambda: delattr(held, "scale"))


def missing_attribute_that_is_caught(jit):
    held, x = Held(), tj.ones(2)

    def f():
        try:
            return x * held.factor
        except AttributeError:
            return x

    return _called(jit(f), lambda: setattr(held, "factor", 3.0))


def attribute_that_the_call_makes(jit):
    held, x = Held(), tj.ones(2)

    def f():
        held.calls = getattr(held, "calls", 0) + 1
        return x * held.calls

    out = [jit(f)() for _ in range(2)]
    del held.calls
    return [*out, jit(f)(), held.calls]


def attribute_that_the_call_makes_by_a_computed_name(jit):
    held, x = Held(), tj.ones(2)

    def f(name):
        setattr(held, name, x * 2)
        return hasattr(held, "first"), hasattr(held, "second")

    g = jit(f)
    return [g("first"), g("second"), sorted(vars(held)), held.first, held.second]


def attributes_that_a_dict_brings(jit):
    held, x = Held(), tj.ones(2)

    def f(more):
        held.__dict__.update(more)
        return x * held.factor

    g = jit(f)
    out = [g({"factor": 2.0}), g({"factor": 3.0, "other": x})]
    return [*out, sorted(vars(held))]


def class_attribute_that_the_call_makes(jit):
    class Own(Held):
        pass

    x = tj.ones(2)

    def f():
        Own.calls = getattr(Own, "calls", 0) + 1
        return x * Own.calls

    g = jit(f)
    return [g(), g(), g(), Own.calls]


def attributes_in_the_order_in_which_they_are_made(jit):
    x = tj.ones(2)

    def f(held):
        if not hasattr(held, "first"):
            held.second, held.first = x * 2, x * 3
        return held.first + held.second

    g = jit(f)
    out = []
    for _ in range(3):
        held = Held()
        out += [g(held), list(vars(held))]
    return out


def variable_of_a_context_that_changes(jit):
    mode = contextvars.ContextVar("mode", default=3.0)
    x = tj.ones(2)
    token = mode.set(2.0)
    out = _called(jit(lambda: x * mode.get()), lambda: mode.set(5.0), lambda: mode.reset(token))
    return out


def variable_of_a_context_that_the_call_sets(jit):
    mode = contextvars.ContextVar("mode", default=3.0)
    x = tj.ones(2)

    def f():
        mode.set(mode.get() + 1)
        return x * mode.get()

    mode.set(3.0)
    g = jit(f)
    return [g(), g(), g(), g(), mode.get()]


def variable_of_a_context_within_a_call(jit):
    level = contextvars.ContextVar("level")
    x = tj.ones(2)

    def inner():
        return x * level.get(1.0)

    def f(n):
        token = level.set(n)
        try:
            return inner()
        finally:
            level.reset(token)

    g = jit(f)
    return [g(2.0), g(3.0), g(3.0), level.get("none"), inner()]


def variable_of_a_context_that_holds_a_tensor(jit):
    level = contextvars.ContextVar("level")
    level.set(tj.ones(2))

    def f():
        level.get().mul_(2)
        level.set(level.get() + 1)
        return level.get() * 1

    g = jit(f)
    return [g(), g(), g(), level.get()]


def set_of_classes_that_changes(jit):
    known, x = {Held, nn.Linear}, tj.ones(2)
    return _called(jit(lambda: x * (2.0 if Held in known else 3.0)),
                   lambda: known.discard(Held), lambda: known.add(Held))


def set_of_classes_that_the_call_fills(jit):
    known, x = set(), tj.ones(2)

    def f(held):
        known.add(type(held))
        return x * len(known)

    g = jit(f)
    return [g(Held()), g(Held()), g(Derived()), g(Derived()), len(known)]


def set_of_objects_told_by_identity(jit):
    one, other, x = Held(), Held(), tj.ones(2)
    chosen = {one}

    def f(held):
        return x * (held.factor if held in chosen else 0.0)

    one.factor, other.factor = 2.0, 3.0
    g = jit(f)

    def change():
        one.factor = 7.0

    return [*_called(lambda: g(one), change, lambda: chosen.discard(one)), g(other)]


def signature_of_a_function_that_changes(jit):
    def of(x, scale=2.0, *, shift=1.0):
        return x * scale + shift

    x = tj.ones(2)

    def f():
        found = inspect.signature(of).parameters
        return x * found["scale"].default + found["shift"].default + len(found)

    def defaults():
        of.__defaults__ = (5.0,)

    def keywords():
        of.__kwdefaults__ = {"shift": 9.0}

    def whole():
        of.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=1.0)
             for n in ("scale", "shift", "more")])

    return _called(jit(f), defaults, keywords, whole)


def signature_of_a_method_that_is_replaced(jit):
    class Own:
        def forward(self, x, scale=2.0):
            return x

    x = tj.ones(2)

    def replace():
        Own.forward = lambda self, x, scale=4.0, more=None: x

    def f():
        found = inspect.signature(Own.forward).parameters
        return x * found["scale"].default + len(found)

    return _called(jit(f), replace)


def signature_of_a_wrapped_function(jit):
    def one(x, scale=2.0):
        return x

    def other(x, scale=5.0):
        return x

    def wrapper(*args):
        return args[0]

    wrapper.__wrapped__ = one
    x = tj.ones(2)
    return _called(jit(lambda: x * inspect.signature(wrapper).parameters["scale"].default),
                   lambda: setattr(wrapper, "__wrapped__", other))


@dataclasses.dataclass
class Output:
    loss: object = None
    scale: float = 2.0


def fields_of_a_dataclass(jit):
    x = tj.ones(2)

    def f(scale):
        output = Output(x * 2, scale)
        found = [getattr(output, field.name) for field in dataclasses.fields(output)]
        return found[0] * found[1] * (1 if dataclasses.is_dataclass(output) else 0)

    g = jit(f)
    return [g(2.0), g(3.0), g(3.0)]


def fields_of_a_dataclass_that_change(jit):
    @dataclasses.dataclass
    class Own:
        first: float = 2.0

    x = tj.ones(2)

    def change():
        Own.__dataclass_fields__["first"].default = 5.0

    return _called(jit(lambda: x * dataclasses.fields(Own)[0].default), change)


def attributes_that_a_call_gives_a_class(jit):
    class Own:
        pass

    def f(x, fails):
        Own.calls = getattr(Own, "calls", 0) + 1
        Own.size = x.shape[0] + 1
        if fails:
            Own.total = x.sum().item()
            raise KeyError
        return x * Own.size * Own.calls

    g, out = jit(f), []
    for n, fails in ((2, 0), (2, 0), (3, 0), (4, 0), (5, 1), (5, 0)):
        try:
            out.append(g(tj.ones(n), fails))
        except KeyError:
            out += [type(Own.total) is float]
        out += [Own.size, Own.calls, type(Own.size) is int]
    del Own.calls
    return [*out, g(tj.ones(2), 0), Own.calls]


def attributes_that_a_call_gives_the_class_of_an_instance(jit):
    class Own:
        def step(self, x):
            type(self).size = x.shape[0] * 2
            return x * self.size

    f, own, out = jit(lambda x: own.step(x)), Own(), []
    for n in (2, 2, 3, 4, 4):
        out += [f(tj.ones(n)), Own.size, type(Own.size) is int]
    return out


def class_that_the_call_makes(jit):
    def f(x):
        return x, type("Made", (), {"size": x.shape[0], "sizes": [x.shape[0] + 1]})

    made = [jit(f)(tj.ones(n))[1] for n in (2, 3)]
    return [(m.size, type(m.size) is int, m.sizes, type(m.sizes[0]) is int) for m in made]


def attribute_of_a_metaclass_that_appears(jit):
    class Meta(type):
        pass

    class Own(metaclass=Meta):
        pass

    x = tj.ones(2)
    return _called(jit(lambda: x * getattr(Own, "factor", 1.0)),
                   lambda: setattr(Meta, "factor", 3.0), lambda: setattr(Own, "factor", 5.0),
                   lambda: delattr(Own, "factor"))


def getattr_of_a_module_that_appears(jit):
    module, x = types.ModuleType("some"), tj.ones(2)
    return _called(jit(lambda: x * getattr(module, "factor", 1.0)),
                   lambda: setattr(module, "__getattr__", lambda name: 3.0),
                   lambda: delattr(module, "__getattr__"))


def object_that_makes_up_its_dict(jit):
    class Own:
        pass

    own, x = Own(), tj.ones(2)
    return _called(jit(lambda: x * getattr(own, "factor", 1.0)),
                   lambda: setattr(Own, "__getattribute__", lambda self, name: 8.0),
                   lambda: delattr(Own, "__getattribute__"))


def annotation_that_a_signature_tells(jit):
    def told(a: int):
        pass

    x = tj.ones(2)

    def f():
        known = inspect.signature(told).parameters
        return x * (2.0 if known["a"].annotation is int else 3.0)

    return _called(jit(f), lambda: told.__annotations__.update(a=str),
                   lambda: setattr(told, "__annotations__", {"a": int}))


def default_of_a_variable_of_contexts(jit):
    held, x = [1.0], tj.ones(2)
    variable = contextvars.ContextVar("variable", default=held)
    f = jit(lambda: x * variable.get([9.0])[0] + variable.get()[0])
    return _called(f, lambda: held.append(held.pop() + 1.0), lambda: variable.set([5.0]),
                   lambda: variable.get().insert(0, 7.0))


def tensor_that_is_a_default_of_a_variable_of_contexts(jit):
    held = tj.ones(2)
    variable = contextvars.ContextVar("variable", default=held)
    return _called(jit(lambda: variable.get() * 2), lambda: held.add_(1))


def names_and_sizes_that_many_calls_give_an_object(jit):
    held = Held()

    def f(x, n):
        held.__dict__["d%d" % n] = [x.shape[0], x.sum().item()]  # noqa: UP031
        held.factor = n + 1
        return x * held.factor

    g = jit(f)
    out = [g(tj.ones(2 + n % 3), n) for n in range(12)]
    types_of = {type(y) for name, found in vars(held).items()
                for y in (name, *(found if type(found) is list else [found]))}
    return [*out, dict(vars(held)), types_of == {str, int, float}]


PROGRAMS = programs_in(globals())
