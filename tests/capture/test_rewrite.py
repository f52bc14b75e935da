"""Functions rewritten from source behave as they did, when the runtime object means plain Python.

Random programs, and by hand what they do not reach: jumps, names and cells, classes.
"""

# ruff: noqa: B012, B023, F821, F841

import inspect
import linecache

import pytest

from tests.capture.rewrite_programs import module, observed, program
from tests.capture.rewrite_runtime import converted, everywhere, same, typed
from tracejit.jit.capture.source import convert

ARGUMENTS = [(1, 2, [3, 1, 2]), (0, 5, []), (3, 3, [1, 2, 3, 4, 5]), (-2, 1, [0, 0])]


def check_programs(seeds):
    left_alone = 0
    for seed in seeds:
        file = f"<program {seed}>"
        names = module(program(seed), file)
        function = names["main"]
        other = convert(function, everywhere())
        left_alone += other is function
        for arguments in ARGUMENTS:
            expected = observed(function, names, arguments, file)
            assert observed(other, names, arguments, file) == expected, (seed, arguments)
        del linecache.cache[file]
    return left_alone


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("start", range(0, 400, 50))
def test_random_programs(start):
    assert check_programs(range(start, start + 50)) < 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("start", range(10_000, 20_000, 1_000))
def test_many_random_programs(start):
    check_programs(range(start, start + 1_000))


# Jumps


def nested_loops(rows, wanted):
    seen = []
    for i, row in enumerate(rows):
        for x in row:
            if x == wanted:
                break
            if x is None:
                continue
            seen.append((i, x))
            if x < 0:
                return seen, "negative"
        else:
            seen.append("end of row")
            continue
        seen.append("found")
        while wanted > 0:
            wanted -= 1
            if wanted == 2:
                break
        else:
            break
    else:
        return seen, "all"
    return seen, wanted


@pytest.mark.parametrize("wanted", [0, 1, 2, 5])
@pytest.mark.parametrize("rows", [[], [[1, 2], [3]], [[None, 5, 1], [2, -1], [0]], [[5]]])
def test_jumps_in_nested_loops(rows, wanted):
    same(nested_loops, rows, wanted)


def test_jumps_out_of_finally():
    def f(log, kind):
        for _ in range(3):
            try:
                try:
                    log.append("try")
                    if kind == "raise":
                        raise ValueError("lost")
                    if kind == "return":
                        return "returned"
                finally:
                    log.append("finally")
                    if kind != "none":
                        break
            except ValueError:
                log.append("never")
        return log

    for kind in ("raise", "return", "none"):
        assert f([], kind) == converted(f)([], kind)


def test_a_hundred_early_returns():
    lines = [f"    if x == {i}:\n        return {i} * 2" for i in range(300)]
    f = typed("def f(x):\n" + "\n".join(lines) + "\n    return -1")["f"]
    g = converted(f)
    assert [g(0), g(70), g(1)] == [0, 140, 2]


# Names


def counter(start):
    total = start

    def add(n):
        nonlocal total
        if n > 0:
            total += n
        return total

    def read():
        return total

    return add, read


def test_closures_share_cells():
    add, read = counter(3)
    other = converted(add)
    assert [other(4), read(), add(1), other(0)] == [7, 7, 8, 8]
    assert other.__closure__[other.__code__.co_freevars.index("total")] is add.__closure__[0]
    one, two = converted(counter)(1)
    assert [one(2), two()] == [3, 3]


def test_functions_made_in_a_loop_share_the_loop_variable():
    def f(n):
        made = []
        for i in range(n):
            if i % 2 == 0:
                made.append(lambda: (i, n))
        return [g() for g in made]

    assert converted(f)(4) == f(4) == [(3, 4), (3, 4)]


def unbound(kind, flag):
    if flag:
        x = 1
    if kind == "read":
        print(
            x)
    if kind == "del":
        del x
        return x
    for _ in [1]:
        if kind == "augmented":
            x += 1
        if kind == "inner":
            return [x for _ in [1]], (lambda: x)()
    try:
        pass
    except ValueError:
        pass
    if kind == "error":
        return error
    return kind and x


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("kind", ["read", "del", "augmented", "inner", "error", "last", ""])
def test_names_that_are_not_bound(kind, flag, capsys):
    same(unbound, kind, flag)


def test_error_of_an_unbound_name_has_the_context_it_had():
    def f(flag):
        if flag:
            return x
        x = 1

    with pytest.raises(UnboundLocalError) as raised:
        converted(f)(True)
    assert raised.value.__context__ is None and raised.value.name == "x"


@pytest.mark.parametrize("flag", [0, 1, 2])
def test_names_that_only_a_part_of_an_expression_binds(flag):
    def chosen(flag):
        y = (n := 1) if flag else 2
        return [y for _ in range(2) if n]

    def joined(flag):
        y = flag and (n := 1) > 1
        while y or n:
            return n

    def compared(flag):
        y = 0 < flag < (n := 2)
        if y is not n or n is y:
            return n

    def filled(flag):
        y = [n := k for k in range(flag)]
        while n is not y:
            return n

    for f in (chosen, joined, compared, filled):
        same(f, flag)


def test_globals_and_exception_variables():
    names = typed("""
        count = 0
        def f(xs):
            global count
            for count in xs:
                if count == 2:
                    import math as count
                    break
            try:
                while (count := count - 1) > 0:
                    pass
            except TypeError as e:
                del count
                return str(e)
            return count
        """)
    f = names["f"]
    for xs in ([1], [1, 2], [5, 3], []):
        results = []
        for g in (f, converted(f)):
            names["count"] = 0
            results.append((g(xs), names.get("count", "gone")))
        assert results[0] == results[1]


def test_parameters_of_every_kind():
    def f(a, /, b, c=3, *rest, d, e=5, **more):
        if a:
            c, more["z"] = b, rest
        return a, b, c, rest, d, e, more

    g = converted(f)
    assert g(1, 2, d=4) == f(1, 2, d=4)
    assert g(0, 2, 3, 4, 5, d=4, q=7) == f(0, 2, 3, 4, 5, d=4, q=7)
    assert inspect.signature(g) == inspect.signature(f)
    assert (g.__name__, g.__qualname__, g.__module__) == (f.__name__, f.__qualname__, __name__)
    f.note = 1
    assert g.note == 1 and g.__kwdefaults__ is f.__kwdefaults__ and g.__dict__ is f.__dict__


def test_recursion_finds_what_the_name_holds():
    names = typed("""
        def f(n):
            return n * f(n - 1) if n else 1
        """)
    g = converted(names["f"])
    assert g(5) == 120
    names["f"] = lambda n: 100
    assert g(5) == 500


# Classes


class Base:
    def speak(self, x):
        return ("base", x)


class Child(Base):
    __secret = 7

    def speak(self, x):
        if x > 1:
            return super().speak(x), self.__secret, __class__.__name__
        made = [super(Child, self).speak(i) for i in range(2)]
        self.__hidden = made
        return made, self.__hidden, sorted(vars(self))

    def inner(self, x):
        def deeper(self):
            return super().speak(1) if x else self.__secret

        return deeper(self), (lambda s: x and super().speak(s))

    @staticmethod
    def plain(x):
        return x or Child

    @property
    def prop(self):
        return self.__secret if self else 0


@pytest.mark.parametrize("x", [0, 1, 2])
def test_methods_super_and_private_names(x):
    child = Child()
    assert convert(child.speak, everywhere())(x) == child.speak(x)
    assert converted(Child.speak)(Child(), x) == Child().speak(x)
    assert converted(Child.inner)(child, x)[0] == child.inner(x)[0]
    assert converted(Child.plain)(x) == Child.plain(x)
    assert converted(Child.prop.fget)(child) == 7
    assert converted(child.speak).__self__ is child


def test_super_without_a_first_argument_fails_as_it_does():
    class C(Base):
        def f(*args):
            if args:
                return super().speak(1)

        def g(self):
            if self:
                return [super().speak(i) for i in range(2)]

    same(C.f, C())
    same(C.g, C())


def test_a_class_made_inside():
    def f(flag):
        if flag:

            class Made:
                x = flag

                def method(self, y):
                    return self.x + y if y else None

        return Made.__qualname__, Made.method.__qualname__, Made().method(2), Made

    g = converted(f)
    assert g(3)[:3] == f(3)[:3]
    assert converted(g(3)[3].method)(None or g(3)[3](), 4) == 7
    same(f, 0)
