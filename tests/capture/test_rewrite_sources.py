"""Which functions are rewritten, wherever they come from, and what tracebacks say of them."""

# ruff: noqa: B007, B023

import gc
import inspect
import linecache
import textwrap
import warnings
import weakref
from types import FunctionType

import pytest

from tests.capture.rewrite_programs import module
from tests.capture.rewrite_runtime import converted, runtime, same, typed
from tracejit.jit.capture.source import convert, is_converted, nested_codes, original_code

# Where functions come from


def doubled(function):
    def wrapper(*arguments):
        result = function(*arguments)
        return result * 2 if result else result

    wrapper.inside = function
    return wrapper


def test_decorated_functions():
    @doubled
    @doubled
    def f(x):
        """docs"""
        if x:
            return x + 1

    assert converted(f.inside.inside)(3) == 4
    assert converted(f)(3) == f(3) == 16
    assert converted(f.inside.inside).__doc__ == "docs"
    g = converted(f.inside.inside)
    assert inspect.getsource(g) == inspect.getsource(f.inside.inside)


def test_lambdas_on_one_line():
    made = [lambda a: a and 1, lambda a: a and 2, lambda a: a and (lambda b: b and 1)(3)]
    assert [converted(f)(5) for f in made] == [1, 2, 1]


def test_functions_typed_in():
    assert same(typed("f = lambda x: x if x else 2")["f"], 0) == 2


def test_a_function_without_source_is_left_alone():
    names = {}
    exec(compile("def f(x):\n    return x if x else 1", "<nowhere>", "exec"), names)
    assert convert(names["f"], runtime()) is names["f"]


CHANGES = {  # what a file said, and says when it is read
    "x + 1 if x else 0": ("x + 2 if x else 0", "x + 1 if x else 0.0", " x + 1 if x else 0"),
    "x + 1 if x else 0.00": ("x + 1 if x else -0.0", "x + 1 if x else 0e1j"),
    "x + 1 if x else (0.00, 1)": ("x + 1 if x else (-0.0, 1)",),
}


@pytest.mark.parametrize("said", CHANGES)
def test_a_changed_file_is_not_believed(said, tmp_path):
    path = tmp_path / "changing.py"
    path.write_text(f"def f(x):\n    return {said}\n")
    f = module(path.read_text(), str(path))["f"]
    del linecache.cache[str(path)]
    for other in CHANGES[said]:
        path.write_text(f"def f(x):\n    return {other}\n")
        g = FunctionType(f.__code__.replace(), f.__globals__)
        assert convert(g, runtime()) is g
    path.write_text(f"def f(x):\n    return {said}\n")
    g = FunctionType(f.__code__.replace(), f.__globals__)
    assert converted(g)(2) == 3


def test_what_is_left_alone():
    async def coroutine(x):
        return x if x else 1

    def generator(x):
        yield x if x else 1

    def names(x):
        return locals() if x else x

    def evaluates(x):
        return eval("x") if x else x

    def nothing(x):
        return x + 1

    for f in (coroutine, generator, names, evaluates, nothing, len, int, textwrap.dedent, 3):
        assert convert(f, runtime()) is f
    g = converted(checks)
    assert convert(g, runtime()) is g


def test_nested_generators_stay_as_they_are():
    def f(xs):
        def each():
            for x in xs:
                if x:
                    yield x

        return list(each()) if xs else None

    same(f, [0, 1, 2])


def checks(x):
    assert x > 0, f"{x} is not positive"
    if x > 1:
        assert x < 5
    return x and x + 1


def test_asserts_rewritten_by_pytest_are_asserts():
    g = converted(checks)
    assert g(1) == 2
    with pytest.raises(AssertionError, match=r"^0 is not positive$"):
        g(0)
    with pytest.raises(AssertionError):
        g(7)


def test_no_warnings_again():
    text = "def f(x):\n    if x is 1:\n        return x and 2\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = typed(text)["f"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert converted(f)(1) == 2


# Lines and names in tracebacks


def chained(text):
    if text:
        return (
            text
            .strip()
            .missing()
            .lower()
        )
    x = [1,
         2,
         text[0]]
    return x


def fails(kind, xs):
    for x in xs:
        if kind == "index":
            (xs
             [x])
        if kind == "call":
            max(
                x,
                len(x),
            )
        if kind == "unpack":
            for a, b in xs:
                pass
        if kind == "iterate":
            for a in x:
                pass
        if kind == "assert":
            assert x in (
                3,
            ), "no"
        if kind == "binary":
            x += (
                "a")
        if kind == "compare":
            return (0 <
                    x <
                    "a")
        if kind == "with":
            with x:
                pass
        if kind == "nested":
            return [(lambda y: y.missing if y else 0)(
                x) for x in xs]


@pytest.mark.parametrize("text", ["a", ""])
def test_lines_of_method_chains(text):
    same(chained, text)


KINDS = ["index", "call", "unpack", "iterate", "assert", "binary", "compare", "with", "nested"]


@pytest.mark.parametrize("kind", KINDS)
def test_lines_of_errors(kind):
    if kind == "assert":  # pytest has its own lines for these
        return
    assert same(fails, kind, [7])[3] > fails.__code__.co_firstlineno


def test_code_objects_know_the_user_s():
    def f(xs):
        for x in xs:
            if x and (lambda: x)():
                return [lambda: y and 1 for y in xs], {lambda: y and 2 for y in xs}

    g = converted(f)
    assert is_converted(g.__code__) and original_code(g.__code__) is f.__code__
    assert original_code(f.__code__) is f.__code__
    originals = set(nested_codes(f.__code__)) | {f.__code__}
    for code in nested_codes(g.__code__):
        stands_for = original_code(code)
        assert stands_for in originals
        assert code.co_name == stands_for.co_name
        assert code.co_qualname == stands_for.co_qualname
        assert code.co_filename == __file__
    inner = g([1])[0][0].__code__
    assert 1 in original_code(inner).co_consts and 2 not in original_code(inner).co_consts


def test_names_of_functions_made_inside():
    def f(x):
        if x:

            def inner():
                return lambda: x and 1

            return inner
        return None

    assert converted(f)(1).__qualname__ == f(1).__qualname__
    assert converted(f)(1)().__qualname__ == f(1)().__qualname__


# Cost


def test_nothing_is_kept_alive():
    class Thing:
        pass

    def f(thing, flag):
        if flag:
            other = thing
            if other is thing and flag:
                return None
        return other

    gc.collect()
    gc.disable()
    try:
        thing = Thing()
        converted(f)(thing, True)
        seen = weakref.ref(thing)
        del thing
        assert seen() is None
    finally:
        gc.enable()


def test_converted_code_is_kept():
    assert converted(checks).__code__ is converted(checks).__code__
