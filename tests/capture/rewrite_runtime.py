"""The runtime object that means plain Python: what converted functions call in these tests."""

import itertools
import operator
import textwrap
import traceback
from types import SimpleNamespace

from tests.capture.rewrite_programs import module
from tracejit.jit.capture.cells import UNBOUND, Variables
from tracejit.jit.capture.source import convert

FILES = itertools.count()


class Return:
    def __init__(self, value):
        self.value = value


BREAK, CONTINUE = object(), object()
_INPLACE = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "@=": operator.imatmul,
    "/=": operator.itruediv,
    "%=": operator.imod,
    "**=": operator.ipow,
    "<<=": operator.ilshift,
    ">>=": operator.irshift,
    "|=": operator.ior,
    "^=": operator.ixor,
    "&=": operator.iand,
    "//=": operator.ifloordiv,
}


def if_(test, body, orelse, names, live_out, upward_exposed):
    return body() if test else orelse()


def _after(broke, orelse, rest):
    if orelse is not None and not broke:  # which takes the rest along
        return orelse()
    return None if rest is None else rest()


def _loop(steps, orelse, rest):
    for signal in steps:
        if isinstance(signal, Return):
            return signal
        if signal is BREAK:
            return _after(True, orelse, rest)
        assert signal is None or signal is CONTINUE
    return _after(False, orelse, rest)


def _unbinding(names, private, *functions):
    """A function that unbinds the names that iterations keep to themselves: nothing reads them."""
    variables = Variables(names, functions)
    none = {name: UNBOUND for name in private if name in variables.cells}
    return lambda: variables.set(none)


def while_(test, body, orelse, rest, names, live_out, upward_exposed, private):
    unbind = _unbinding(names, private, body, test)

    def steps():
        while test():
            unbind()
            yield body()
            unbind()

    return _loop(steps(), orelse, rest)


def _formatted(value, conversion, spec):
    if conversion is not None:
        value = {"s": str, "r": repr, "a": ascii}[conversion](value)
    return format(value, spec)


def for_(iterable, body, orelse, rest, names, live_out, upward_exposed, private):
    unbind = _unbinding(names, private, body)
    for item in iterable:
        unbind()
        signal = body(item)
        unbind()
        item = None
        if isinstance(signal, Return):
            return signal
        if signal is BREAK:
            return _after(True, orelse, rest)
        assert signal is None or signal is CONTINUE
    return _after(False, orelse, rest)


def assert_(test, *message):
    if not test:
        raise AssertionError(*[text() for text in message])


def set_item(owner, index, value):
    owner[index] = value


def update_item(owner, index, operation, new):
    owner[index] = _INPLACE[operation](owner[index], new())


def inplace(operation, old, new):
    return _INPLACE[operation](old, new)


def iterate(callee, *arguments, **keywords):
    return callee(*arguments, **keywords)


def value(signal):
    return None if signal is None else signal.value


def itself(thing):
    return thing


def runtime(**others):
    """Plain Python's meaning of each name; `others` replace some."""
    meanings = {
        "if_": if_,
        "while_": while_,
        "for_": for_,
        "iterate": iterate,
        "and_": lambda a, b: a() and b(),
        "or_": lambda a, b: a() or b(),
        "iterated": lambda iterable: iterable,
        "in_": lambda item, container: item in container,
        "formatted": _formatted,
        "text": lambda *parts: "".join(parts),
        "percent": lambda template, values: template % values,
        "both": lambda a, b: a() and b(),
        "either": lambda a, b: a() or b(),
        "not_": operator.not_,
        "is_": operator.is_,
        "ternary": lambda test, yes, no: yes() if test else no(),
        "assert_": assert_,
        "call": itself,
        "effect": itself,
        "unless_refused": lambda: None,
        "set_item": set_item,
        "get_item": operator.getitem,
        "item_to_update": operator.getitem,
        "attribute_owner": itself,
        "named_plainly": itself,
        "inplace": inplace,
        "update_item": update_item,
        "new_container": itself,
        "resolve_exit": lambda signal, within=False: signal,
        "value": value,
        "Return": Return,
        "BREAK": BREAK,
        "CONTINUE": CONTINUE,
        "CONTINUE_THROUGH": CONTINUE,
    }
    return SimpleNamespace(**{**meanings, **others})


def everywhere():
    """A runtime object that converts what is called, too."""
    native = runtime()
    native.call = lambda function: convert(function, native)
    return native


def typed(text, name=None):
    """The names of a module typed in, as a notebook would keep it."""
    return module(textwrap.dedent(text), name or f"<cell {next(FILES)}>")


def converted(function, **meanings):
    found = convert(function, runtime(**meanings))
    assert found is not function, "left alone"
    return found


def same(function, *arguments, **keywords):
    """Both give the same result or error, on the same line of the same function."""

    def outcome(f):
        try:
            return f(*arguments, **keywords)
        except Exception as error:
            file = function.__code__.co_filename
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
            return type(error), str(error), frames[-1].name, frames[-1].lineno

    expected = outcome(function)
    assert outcome(convert(function, everywhere())) == expected
    return expected
