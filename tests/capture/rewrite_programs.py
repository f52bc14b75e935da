"""Random small Python programs, and what running one shows.

`program(seed)` is the text of a module with a function `main(log, a, b, xs)`: ints, lists, nested
control flow with jumps, closures, exceptions, names that may be unbound. `observed` runs a function
of it; two functions that mean the same give equal observations.
"""

import dis
import itertools
import linecache
import random

NAMES = ["a", "b", "c", "d", "e"]
CONSTANTS = ["0", "1", "2", "3", "-1", "7"]
FUEL = 120

PRELUDE = f"""\
class Box:
    def __init__(self, log, quiet=False):
        self.log, self.quiet, self.n = log, quiet, 0
    def __enter__(self):
        self.log.append("in")
        return self
    def __exit__(self, kind, error, trace):
        self.log.append("out" if kind is None else kind.__name__)
        return self.quiet and kind is ValueError
class Tired(BaseException):
    pass
def tick(log):
    log.append("t")
    if len(log) > {FUEL}:
        raise Tired()
    return True
def other(x, *rest, key=1, **more):
    if x > 2 and rest:
        return x + key
    for r in rest:
        if r == x:
            break
    else:
        return -x
    return r
shared = 5
"""


class Program:
    """One random program; each method gives the text of an expression or the lines of a block."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = itertools.count()

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def text(self):
        lines = ["def main(log, a, b, xs):"]
        if self.chance(30):
            lines.append("    '''docstring'''")
        if self.chance(25):
            lines.append("    global shared")
        if self.chance(75):
            lines.append("    c, d, e = 1, a, 2")
        lines += self.block(4, depth=0, loops=0, indent="    ")
        if self.chance(60):
            lines.append("    return " + self.pick("[a, b]", "c", "(a, d)", "xs", "e"))
        return PRELUDE + "\n".join(lines) + "\n"

    # Expressions

    def name(self):
        return self.pick(*NAMES)

    def atom(self):
        return self.pick(self.name(), self.name(), *CONSTANTS, "a", "b", "len(xs)", "shared")

    def value(self, depth=2):
        if depth == 0 or self.chance(25):
            return self.atom()
        v = self.value
        forms = [
            lambda: f"({v(depth - 1)} {self.pick('+', '-', '*', '//', '%')} {v(depth - 1)})",
            lambda: f"({v(depth - 1)} if {self.test(depth - 1)} else {v(depth - 1)})",
            lambda: f"({v(depth - 1)} {self.pick('and', 'or')} {v(depth - 1)})",
            lambda: f"xs[{v(depth - 1)}]",
            lambda: f"other({v(depth - 1)}, {v(depth - 1)}, key={self.atom()})",
            lambda: f"other(*[{v(depth - 1)}, {self.atom()}])",
            lambda: f"({self.name()} := {v(depth - 1)})",
            lambda: f"sum([{v(depth - 1)} for i in xs if i > {self.atom()}])",
            lambda: f"sum(i * {self.atom()} for i in range({self.atom()}))",
            lambda: f"(lambda u, w={v(depth - 1)}: u and w or {self.atom()})({self.atom()})",
            lambda: f"len(f'{{{v(depth - 1)}}}{{{self.atom()}!r:>{{3}}}}')",
            lambda: f"len({{{self.atom()}: {v(depth - 1)}}})",
            lambda: f"(not {self.test(depth - 1)})",
            lambda: f"len([y for x in [xs, xs] for y in x if y != {self.atom()} and y])",
            lambda: f"min(xs[{self.atom()}:{self.atom()}], default={v(depth - 1)})",
        ]
        return self.random.choice(forms)()

    def test(self, depth=2):
        v = self.value
        forms = [
            lambda: f"{v(depth)} {self.pick('<', '>', '==', '!=')} {v(depth)}",
            lambda: f"{v(0)} < {v(depth)} <= {v(0)}",
            lambda: f"{v(0)} < {v(0)} < {v(0)} != {v(1)}",
            lambda: f"{self.name()} is not None",
            lambda: f"isinstance({v(1)}, int)",
            lambda: v(1),
            lambda: f"{v(0)} in (1, 2, 3)",
        ]
        if depth:
            t = self.test
            forms.append(lambda: f"({t(depth - 1)} {self.pick('and', 'or')} {t(depth - 1)})")
            forms.append(lambda: f"not ({t(depth - 1)})")
        return self.random.choice(forms)()

    # Statements

    def block(self, size, depth, loops, indent):
        lines = []
        for _ in range(self.random.randint(1, size)):
            lines += self.statement(depth, loops, indent)
        return lines

    def statement(self, depth, loops, indent):
        compound = depth < 4 and self.chance(55)
        if compound:
            kinds = [self.if_, self.if_, self.while_, self.for_, self.try_, self.with_]
            kinds += [self.match, self.function]
            return self.random.choice(kinds)(depth, loops, indent)
        return [indent + self.simple(loops)]

    def simple(self, loops):
        if self.chance(18):
            jumps = [f"return {self.value()}", "return", f"raise ValueError({self.atom()})"]
            jumps += ["break", "continue"] * 3 if loops else []
            return self.random.choice(jumps)
        v, n = self.value, self.name
        forms = [
            lambda: f"{n()} = {v()}",
            lambda: f"{n()} = {v()}",
            lambda: f"{n()} {self.pick('+=', '-=', '|=')} {v()}",
            lambda: f"xs[{v(1)}] = {v()}",
            lambda: f"xs[{v(1)}] += {v()}",
            lambda: f"{n()}, {n()} = {v()}, {v(1)}",
            lambda: f"{n()}, xs[{self.atom()}], *{n()} = {v(1)}, {v(1)}, {v(1)}",
            lambda: f"{n()} = xs[{self.atom()}] = {v()}",
            lambda: f"[{n()}, ({n()}, xs[0])] = {v(1)}, xs",
            lambda: f"log.append({v()})",
            lambda: f"log.append({v()})",
            lambda: f"assert {self.test(1)}, {v(1)}",
            lambda: f"del {n()}",
            lambda: f"del xs[{self.atom()}]",
            lambda: f"{n()}: int = {v()}",
            lambda: f"shared = {v()}",
            lambda: "pass",
            lambda: f"from math import gcd as {n()}",
        ]
        return self.random.choice(forms)()

    def if_(self, depth, loops, indent):
        inner = indent + "    "
        lines = [f"{indent}if {self.test()}:", *self.block(3, depth + 1, loops, inner)]
        if self.chance(30):
            lines += [f"{indent}elif {self.test()}:", *self.block(2, depth + 1, loops, inner)]
        if self.chance(40):
            lines += [f"{indent}else:", *self.block(3, depth + 1, loops, inner)]
        return lines

    def loop(self, head, depth, loops, indent):
        inner = indent + "    "
        lines = [head, *self.block(3, depth + 1, loops + 1, inner)]
        if self.chance(35):
            lines += [f"{indent}else:", *self.block(2, depth + 1, loops, inner)]
        return lines

    def while_(self, depth, loops, indent):
        return self.loop(f"{indent}while tick(log) and {self.test()}:", depth, loops, indent)

    def for_(self, depth, loops, indent):
        n = self.name
        heads = [f"for {n()} in xs[:4]:", f"for {n()} in range({self.atom()}):"]
        heads += [f"for {n()}, {n()} in enumerate(xs):", f"for {n()}, {n()} in zip(xs, [a, 2]):"]
        heads += ["for xs[0] in [1, 2]:", f"for {n()} in reversed(range(3)):"]
        return self.loop(indent + self.random.choice(heads), depth, loops, indent)

    def try_(self, depth, loops, indent):
        inner = indent + "    "
        lines = [indent + "try:", *self.block(3, depth + 1, loops, inner)]
        caught = self.chance(60)
        if caught:
            kind = self.pick(
                "ValueError", "Exception", "UnboundLocalError", "(TypeError, NameError)"
            )
            as_name = f" as {self.name()}" if self.chance(60) else ""
            lines += [f"{indent}except {kind}{as_name}:", *self.block(2, depth + 1, loops, inner)]
            if self.chance(30):
                lines += [indent + "else:", *self.block(2, depth + 1, loops, inner)]
        if not caught or self.chance(40):
            lines += [indent + "finally:", *self.block(2, depth + 1, loops, inner)]
        return lines

    def with_(self, depth, loops, indent):
        as_name = f" as {self.name()}" if self.chance(30) else ""
        head = f"{indent}with Box(log, {self.test(0)}){as_name}:"
        return [head, *self.block(3, depth + 1, loops, indent + "    ")]

    def match(self, depth, loops, indent):
        inner, block = indent + "    ", indent + "        "
        lines = [f"{indent}match {self.pick('xs', '[a, b]', 'a', 'c')}:"]
        for pattern in (f"[{self.name()}, *_]", "1 | 2", f"{self.name()}"):
            guard = f" if {self.test(1)}" if pattern.isidentifier() or self.chance(30) else ""
            lines += [f"{inner}case {pattern}{guard}:", *self.block(2, depth + 1, loops, block)]
        return lines

    def function(self, depth, loops, indent):
        name, inner = f"inner_{next(self.numbers)}", indent + "    "
        outer = self.name()
        lines = [f"{indent}def {name}({self.pick('b', 'c')}={self.value(1)}, *, k={self.atom()}):"]
        if outer not in lines[0].partition("=")[0] and self.chance(50):
            # Before any use in a block of its own: a declaration must come first.
            lines = [lines[0], f"{inner}nonlocal {outer}"] if self.bound_above(outer) else lines
        lines += self.block(3, depth + 2, 0, inner)
        lines += [f"{inner}return {self.atom()}"] if self.chance(50) else []
        call = (
            f"{self.name()} = {name}({self.atom()})" if self.chance(80) else f"log.append({name}())"
        )
        return [*lines, indent + call]

    def bound_above(self, name):
        return name in ("a", "b")


def program(seed):
    """The text of a random module; only texts that compile count."""
    for attempt in itertools.count():
        text = Program(f"{seed}/{attempt}").text()
        try:
            compile(text, "<check>", "exec")
        except SyntaxError:
            continue
        return text


def module(text, name):
    """The names of a module made from text, whose lines tracebacks and `convert` can find."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"__name__": "programs"}
    exec(compile(text, name, "exec"), names)
    return names


def where(error, name):
    """The innermost line of the file in an error's traceback."""
    found, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == name:
            found = [(code.co_name, raised_at(code, trace.tb_lasti // 2))]
        trace = trace.tb_next
    return found


def raised_at(code, place):
    """The line of the instruction that raised. Python 3.11, once warm, runs a store and the load
    behind it as one: it then tells the store's line, though a name not bound is the load's."""
    stored = dis.opname[code.co_code[2 * place]] == "STORE_FAST"
    return next(itertools.islice(code.co_positions(), place + stored, None))[0]


def shown(thing):
    if isinstance(thing, (int, str, float, type(None), bool)):
        return repr(thing)
    if isinstance(thing, (list, tuple)):
        return [shown(item) for item in thing]
    if isinstance(thing, BaseException):
        return [type(thing).__name__, shown(thing.args)]
    return type(thing).__name__


def observed(function, names, arguments, file):
    """All that one call shows: result or error and its line, the log, the list, the global."""
    log, (a, b, xs) = [], arguments
    xs, names["shared"] = list(xs), 5
    try:
        outcome = ["result", shown(function(log, a, b, xs))]
    except BaseException as error:
        context = shown(error.__context__)
        outcome = ["error", shown(error), where(error, file), context]
    return [outcome, shown(log), shown(xs), shown(names["shared"])]
