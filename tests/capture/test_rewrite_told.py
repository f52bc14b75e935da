"""What a rewritten function tells the runtime object: names of statements, effects, expressions."""

# ruff: noqa: B023, F821, F841

from tests.capture.rewrite_runtime import converted, for_, runtime, same, while_

# What the runtime object is told


def told(function, *arguments):
    """(name, bound names, live-out names, upward-exposed names) of each statement that ran."""
    found, native = [], runtime()

    def telling(name):
        def told(*parts):
            described = parts[-3:] if name == "if_" else parts[-4:-1]
            found.append((name.strip("_"), *described))
            return getattr(native, name)(*parts)

        return told

    converted(function, **{n: telling(n) for n in ("if_", "for_", "while_")})(*arguments)
    return found


def test_bound_and_live_names():
    def f(x):
        if x > 0:
            a = x
            b = a + 1
        if x > 1:
            c = 1
            if c:
                return b
        d = x
        return d

    assert told(f, 1) == [("if", ("a", "b"), ("b",), ("b",)), ("if", ("c", "d"), (), ())]
    assert told(f, 2)[2:] == [("if", ("d",), (), ())]


def test_names_read_in_another_iteration_are_live():
    def f(xs):
        for x in xs:
            y = 0
            if x:
                k = k + 1 if y else 0
                t = 3
            else:
                g = lambda: t  # noqa: E731

    assert told(f, [1]) == [
        ("for", ("g", "k", "t", "x", "y"), ("t",), ("k", "t")),
        ("if", ("g", "k", "t"), ("k", "t"), ("k", "t")),
    ]


def test_names_that_may_be_read_unbound_or_later_are_upward_exposed():
    def f(x):
        a = b = c = d = e = 0
        if x:
            a = b = c = d = e = 1
            e = a + d
        try:
            g = lambda: b  # noqa: E731
            return [c for _ in range(2)], g
        finally:
            d = d + e

    assert told(f, 1) == [("if", tuple("abcde"), tuple("bcde"), tuple("bcde"))]


def test_names_that_iterations_keep_to_themselves():
    def f(xs, ys):
        total, last, seen, named, kept = 0, 0, 0, 0, 0
        for x in xs:
            double = x * 2
            if double > seen:
                named = double
            seen = named
            for y in ys:
                product = x * y
                last = product
            total = total + product
            try:
                kept = double
            except ValueError:
                total = kept
        while total > 0:
            step = total + 1
            total = -step
            if step > 9:
                break
            other = step
        return total, last, lambda: other

    found = []

    def noting(kind):
        def loop(*arguments):
            found.append((arguments[-4], arguments[-1]))
            return kind(*arguments)
        return loop

    noted = {"for_": noting(for_), "while_": noting(while_)}
    assert converted(f, **noted)([1], [2])[:2] == f([1], [2])[:2]
    outer, inner, open_ = found
    assert outer == (("double", "kept", "last", "named", "product", "seen", "total", "x", "y"),
                     ("double", "x", "y"))
    assert inner == (("last", "product", "y"), ("y",))
    assert open_ == (("other", "step", "total"), ("step",))


def test_every_part_has_the_cells_of_the_bound_names():
    parts = []

    def while_(test, body, orelse, rest, names, live_out, upward_exposed, private):
        parts.append((body, orelse, rest, names))

    def f(n):
        while n:
            n -= 1
            if n == 3:
                return n
        else:
            m = 1
        return m

    converted(f, while_=while_)(5)
    body, orelse, rest, names = parts[0]
    assert names == ("m", "n")
    assert all({"m", "n"} <= set(part.__code__.co_freevars) for part in (body, orelse))
    assert "m" in rest.__code__.co_freevars


def test_effects_come_first():
    log = []

    class Thing:
        def __setattr__(self, name, value):
            log.append(f"set {name}")

        def __delattr__(self, name):
            log.append(f"del {name}")

    def f(t, xs):
        global told_global
        t.a = 1
        t.b, (c, t.d) = 1, (2, 3)
        del t.e
        for t.f in [1]:
            del xs[0]
        with Thing_with() as t.g:
            import os  # noqa: F401
        told_global = c

    class Thing_with:
        def __enter__(self):
            return 1

        def __exit__(self, *_):
            return None

    converted(f, effect=log.append)(Thing(), [1, 2])
    assert log == [
        "it sets the attribute a", "set a",
        "it sets the attribute b", "it sets the attribute d", "set b", "set d",
        "it deletes the attribute e", "del e",
        "it sets the attribute f", "set f", "it deletes an item",
        "it sets the attribute g", "set g", "it imports a module",
        "it sets the global variable told_global",
    ]  # fmt: skip


def test_items_in_order():
    log = []

    def note(x):
        log.append(x)
        return x

    class Items(dict):
        def __setitem__(self, key, value):
            log.append(f"set {key}={value}")
            super().__setitem__(key, value)

        def __getitem__(self, key):
            log.append(f"get {key}")
            return super().__getitem__(key)

    def f(d):
        d[note("a")] = note(1)
        d[note("a")] += note(2)
        i, d[i], *d[note("b")] = note("x"), note(3), note(4)
        d[note("c")] = d[note("d")] = note(5)
        (d[0], (d[1], e)) = 1, (2, 3)
        return d, e, d[note("a")]

    expected = f(Items()), log[:]
    log.clear()
    assert (converted(f)(Items()), log) == expected
    seen = []
    converted(f, set_item=lambda *_: seen.append("set"), get_item=lambda *_: 0,
              item_to_update=lambda *_: 0)(Items())
    assert len(seen) == 8


def test_a_name_is_read_after_the_item_that_it_changes():
    def missing(xs):
        xs[7] += not_there

    same(missing, [1])
    same(missing, [1, 2, 3, 4, 5, 6, 7, 8])

    def rebound():
        n = 1

        class Items(dict):
            def __getitem__(self, key):
                nonlocal n
                n = 10
                return super().__getitem__(key)

        d = Items(a=1)
        d["a"] += n
        return dict(d)

    assert same(rebound) == {"a": 11}


def test_expressions_go_through():
    def f(x):
        y = [x] if x else {}
        z = [i for i in y]  # noqa: C416
        for k, (a, b) in enumerate(zip(z, reversed(z))):
            z = not (x < k < 3 or a == b)
        return f"{x if x else 0}", z, len(z or y)

    seen = []

    def note(name, meaning):
        return lambda *a, **k: (seen.append(name), meaning(*a, **k))[1]

    native = runtime()
    names = ["ternary", "new_container", "iterate", "not_", "and_", "or_", "either", "call"]
    converted(f, **{n: note(n, getattr(native, n)) for n in names})(1)
    assert seen == [
        "ternary", "new_container", "new_container", "iterate", "iterate", "iterate",
        "either", "and_", "ternary", "call", "or_",
    ]  # fmt: skip
