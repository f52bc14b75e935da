"""Programs that make texts and numbers of what only the program knows, and hand them to C code:
joined, searched, parsed, matched, dumped, compared with the best so far."""

from __future__ import annotations

import collections
import contextlib
import decimal
import fractions
import io
import json
import re
import statistics
import struct
import sys

import tracejit as tj
from tests.capture.program_list import programs_in

START, DIGIT = re.compile(r"v-\d"), re.compile(r"\d")


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def two():
    return tj.tensor([1.0, -2.0])


def runs(f):
    return [f(two() * k) for k in (1, 2, 3, 2)]


def texts_joined(jit):
    out = []

    def f(x):
        s = x.sum()
        parts = [f"{v.item():.2f}" for v in (s, s * 2)]
        out.append(", ".join(parts))
        out.append("; ".join(f"{k}={v.item():.1f}" for k, v in {"a": s, "b": s + 1}.items()))
        out.append("-".join(["x", "y"]))
        return s

    return runs(jit(f)) + out


def texts_whose_methods_are_called(jit):
    out = []

    def f(x):
        t = f"{x.sum().item():.2f}"
        out.append(["abc-{}".replace("{}", t), "-1.00 x".startswith(t), "a-1.00b".split(t)])
        out.append([t.startswith("-"), t.rjust(10), t + "!", "!" + t, t * 2, t[0], len(t)])
        out.append(["0" in t, t in "a -1.00 b", t not in "a -1.00 b", t == "-1.00", "-1.00" == t])
        out.append([float(t), int(float(t)), t.encode(), t.upper(), sorted([t, "a"]), max(t, "b")])
        out.append(["%s, %s" % (t, t), f"{t:>9}|{t!r}", "x".join(t), str.join("-", [t])])  # noqa: UP031
        return x

    return runs(jit(f)) + out


def texts_given_to_libraries(jit):
    out, table = [], Box(**{"v-1.00": 3})

    def f(x):
        v = x.sum().item()
        t = f"v{v:.2f}"
        out.append(json.dumps({"text": t, "value": v, t: 1}))
        out.append([bool(START.match(t)), DIGIT.sub("#", t)])
        out.append([getattr(table, t, 0), hasattr(table, t), {"v-1.00": 1}.get(t, 2)])
        setattr(table, t, v)
        return x

    return runs(jit(f)) + out + [vars(table)]


def width_that_is_a_text(jit):
    def f(x):
        width = f"{abs(x.sum().item()) + 9:.0f}"
        return f"{'a':>{width}}", f"{x.sum().item():{width}.1f}"

    return runs(jit(f))


def patterns_matched(jit):
    box = Box(pattern=re.compile("a(b+)"), text="xabbb", n=1)

    def each(x):
        for found in box.pattern.finditer(box.text):
            x = x * found.end()
        return x

    f = jit(lambda x: x * len(box.pattern.search(box.text).group(box.n)))
    g = jit(lambda x: x * len(box.pattern.findall(box.text)) + len(DIGIT.split(box.text)))
    h = jit(lambda x: x * len(box.pattern.sub(lambda m: m.group(1) * 2, box.text)))
    functions = f, g, h, jit(each)
    out = [q(two()) for q in functions for _ in range(3)]
    box.text = "abab"
    out += [q(two()) for q in functions for _ in range(3)]
    box.pattern, box.n = re.compile("(a)(b)"), 2
    return out + [q(two()) for q in functions for _ in range(3)]


def sizes_and_numbers_dumped(jit):
    box = Box(n=3, v=2.5)

    def f(x):
        box.n += 1
        told = collections.OrderedDict(n=box.n, v=box.v, shape=x.shape, rows=x.shape[0])
        lists = collections.defaultdict(list)
        lists["n"].append(box.n)
        return x * len(json.dumps(told)) + len(json.dumps([lists, {"shape": x.shape}], indent=1))

    f = jit(f)
    return [f(tj.ones(n)) for n in (2, 3, 1000, 2)]


def numbers_given_to_libraries(jit):
    box = Box(n=3, v=2.5)

    def f(x):
        mean = statistics.mean([box.n, box.v, x.shape[0]])
        packed = struct.unpack("if", struct.pack("if", box.n, box.v))[0]
        ratio = float(fractions.Fraction(box.n, x.shape[0]))
        return x * mean + packed + ratio + float(decimal.Decimal(box.n))

    f = jit(f)
    out = [f(tj.ones(n)) for n in (2, 3, 2)]
    box.n = 5
    return [*out, f(tj.ones(3))]


def best_so_far(jit):
    box = Box(best=float("inf"), worst=float("-inf"), most=0, low=0.0, seen=[])

    def f(x):
        v = (x * x).sum().item()
        box.best, box.worst = min(box.best, v), max(v, box.worst, 1.5)
        box.most = max(box.most, (x > 1).sum().item())
        box.seen.append(v)
        return x * 2

    f = jit(f)
    out = [f(two() * k) for k in (3, 1, 2, 0, 4)]
    return [*out, box.best, box.worst, box.most, box.seen]


def best_of_what_is_no_number(jit):
    box = Box(best=float("nan"), other=1.0)

    def f(x):
        v = x.sum().item() * float("inf") * 0
        box.best, box.other = min(box.best, v), max(box.other, v)
        return x

    return [*runs(jit(f)), box.best != box.best, box.other]


def best_of_mixed_numbers(jit):
    box, out = Box(best=0), []

    def f(x):
        box.best = max(box.best, x.sum().item())
        out.append([min(x.sum().item(), 2.0, 3), max([x.sum().item(), 2.0]),
                    min([x.sum().item()], default=3), max(x.sum().item(), 1.0, key=abs)])
        return x

    f = jit(f)
    return [f(two() * -k) for k in (0, 1, 3, 2)] + [box.best, *out]


def recursion_limit_read(jit):
    before, f = sys.getrecursionlimit(), jit(lambda x: x * sys.getrecursionlimit())
    out = [f(two()) for _ in range(3)]
    try:
        sys.setrecursionlimit(before + 17)
        out += [f(two()) for _ in range(3)]
    finally:
        sys.setrecursionlimit(before)
    return [*out, f(two())]


def recursion_limit_set(jit):
    before, out = sys.getrecursionlimit(), []

    def f(x):
        sys.setrecursionlimit(before + 20)
        return x * sys.getrecursionlimit()

    f = jit(f)
    for _ in range(3):
        out += [f(two()), sys.getrecursionlimit() - before]
        sys.setrecursionlimit(before)
    return out


def written_to_a_stream(jit):
    """The text, how long it is, and the order with what is printed; another stream between."""

    def f(x):
        first = sys.stdout.write(f"loss {x.sum().item():.2f}")
        print(" of", x.shape[0])
        write = sys.stderr.write
        sys.stdout.write("warm\n")
        sys.stdout.flush()
        return x * 2, first, write("to the other\n")

    f, out = jit(f), []
    shown = [io.StringIO(), io.StringIO(), io.StringIO()]
    for k, stream in zip((1, 2, 3, 2, 5, 1), (0, 0, 0, 1, 0, 1)):
        with contextlib.redirect_stdout(shown[stream]), contextlib.redirect_stderr(shown[2]):
            out.append(f(two() * k))
    return out + [s.getvalue() for s in shown]


def read_from_a_stream(jit):
    def f(x):
        sys.stdout.write("a")
        return x * len(sys.stdout.getvalue())

    f = jit(f)
    with contextlib.redirect_stdout(io.StringIO()):
        return runs(f)


def what_no_stream_takes(jit):
    def f(x):
        try:
            sys.stdout.write(3)
        except TypeError as error:
            return x * 2, str(error)

    f = jit(f)
    with contextlib.redirect_stdout(io.StringIO()):
        return runs(f)


PROGRAMS = programs_in(globals())
