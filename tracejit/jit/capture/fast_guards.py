"""Fast guards: a check that skips what has not changed since an earlier call passed.

In: the lines of the generated check, the sources they read, the arguments of calls whose check
passed. Out: a `GuardSnapshot`, and `FastGuards.fast(arguments, snapshot)`. That returns what
`GuardSet.find` does, or None: then the whole check must run. Called by `guards.GuardSet` and by
entries.

The second call that passes gives a `GuardSnapshot`. The function generated here reads and checks in
Python what no snapshot covers, such as new arguments and numbers that change. One native comparison
checks everything else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.looking import ABSENT
from tracejit.jit.capture.snapshot import Coverage, GuardSnapshot, Owner, available

_PATIENCE = 16  # short-lived snapshots, after which no more are made
_SHORT = 64  # calls after which a snapshot has paid
_WORTHWHILE = 2  # checks that a snapshot must replace
_USED = re.compile(r"\b[vn]\d+\b")
_DEFINED = re.compile(r"^([vn]\d+) = ")
_RETURN = re.compile(r": return \d+$")


class Lines:
    """Lines of a check, with the source that each of them belongs to.

    read[k]      the line that reads source k
    checks[k]    the lines that check what is there
    aliases      lines that compare two sources
    must_differ  lines that check that the objects at many sources are different ones
    plain        lines that check that no module at many sources replaces a method
    modes        the number of lines, the first ones, that check modes
    unplaced     all other lines: modes, runtime numbers and their guards
    """

    def __init__(
        self,
        lines: Sequence[str],
        spans: Sequence[tuple[int, int]],
        aliases: dict[int, tuple[Source, Source]],
        must_differ: dict[int, Sequence[Source]],
        plain: dict[int, Sequence[Source]],
        modes: int,
    ):
        self.modes = modes
        self.lines = [_RETURN.sub(": return None", line) for line in lines]
        self.aliases, self.must_differ, self.plain = aliases, must_differ, plain
        self.read = [read for read, _ in spans]
        self.checks = [range(read + 1, end) for read, end in spans]
        defined = (_DEFINED.match(line) for line in self.lines)
        self.defined = {found[1]: n for n, found in enumerate(defined) if found}
        placed = {n for own in self.checks for n in own}
        placed |= {*self.read, *aliases, *must_differ, *plain}
        self.unplaced = set(range(len(lines))) - placed

    def asks_only(self, line: int, names: set[str]) -> bool:
        """Return True if a line depends on these variables alone."""
        used = _USED.findall(self.lines[line])
        return bool(used) and names.issuperset(used)

    def closure(self, wanted: set[int], expressions: Sequence[str]) -> list[str]:
        """Return these lines and, in order, those that define what they and the expressions use."""
        pending = [*expressions, *(self.lines[n] for n in wanted)]
        while pending:
            for name in _USED.findall(pending.pop()):
                n = self.defined.get(name)
                if n is not None and n not in wanted:
                    wanted.add(n)
                    pending.append(self.lines[n])
        return [self.lines[n] for n in sorted(wanted)]


class FastGuards:
    """Maker of snapshots and of the function that uses them; gives up if snapshots do not last."""

    def __init__(
        self,
        lines: Lines,
        sources: list[Source],
        variables: list[str],
        inputs: list[tuple[Source | None, str]],
        keys: list[str],
        constants: dict[str, Any],
    ):
        self.lines, self.sources, self.variables = lines, sources, variables
        self.inputs, self.keys, self.constants = inputs, keys, constants
        self.snapshot: GuardSnapshot | None = None
        self.fast: Callable[[tuple, GuardSnapshot], Any] | None = None
        self.made_for: Any = None
        self.patience = _PATIENCE if available() else 0
        self.short: Counter[Owner] = Counter()
        self.changing: set[Owner] = {
            (k, "root")
            for k, source in enumerate(sources)
            if source.how == "argument" and source.kind in ("tensor", "primitive")
        }
        self.ready = False
        self.placed = False  # the entry writes inputs: it asks where they lie

    def remember(self, arguments: tuple, check: Callable[[tuple], Any]) -> None:
        """Take a snapshot of the state after the whole check passed, from the second time on."""
        if not self.ready:
            self.ready = True
            return
        coverage = self._coverage(arguments)
        last = self.snapshot
        if last is not None and last.hits < _SHORT:
            self.patience -= 1
            self.short.update(last.differing(coverage))
            changing = {owner for owner, times in self.short.items() if times > 1}
            if not changing <= self.changing:
                self.changing |= changing
                coverage = self._coverage(arguments)
        self.snapshot = None
        if not self.patience or len(coverage.checks) < _WORTHWHILE:
            self.patience = 0
            return
        fixed = self._fixed(coverage.checks)
        self._compile(coverage, fixed)
        # Code may have written since the check passed: check again what the rows were taken of.
        found = check(arguments)
        if type(found) is tuple:
            numbers = [name in fixed for _, name in self.inputs]
            self.snapshot = GuardSnapshot(
                coverage, self._inputs(), self._must_differ(), found[0], numbers)

    def _fixed(self, covered: Iterable[int]) -> set[str]:
        """Return the variables that cannot change while the snapshot holds: those of covered
        sources, and numbers computed from these alone."""
        fixed = {self.variables[k] for k in covered}
        for name, n in self.lines.defined.items():
            used = _USED.findall(self.lines.lines[n].partition(" = ")[2])
            if name[0] == "n" and fixed.issuperset(used):
                fixed.add(name)
        return fixed

    def arguments_of(self, snapshot: GuardSnapshot) -> list[int] | None:
        """Return for each graph input the argument that it is, or -1 where the snapshot covers it.

        None: the check reads more than modes, the snapshot's rows and arguments that are tensors,
        or objects guarded by value.
        """
        covered, sources, lines = snapshot.covered, self.sources, self.lines
        fixed = self._fixed(covered)
        number = {id(source): k for k, source in enumerate(sources)}
        arguments = {k: source.key for k, source in enumerate(sources) if source.how == "argument"}
        others = [k for k in range(len(sources)) if k not in covered]
        if any(k not in arguments or sources[k].kind not in ("tensor", "primitive")
               for k in others):  # fmt: skip
            return None
        if any("_offset" in lines.lines[n] for k in others for n in lines.checks[k]):
            return None
        if any(k not in arguments for k in snapshot.roots):
            return None
        if any(n >= lines.modes and not lines.asks_only(n, fixed) for n in lines.unplaced):
            return None
        told = {k for k, what in snapshot.rows if what == "attributes"}
        compared = [*lines.aliases.values(), *lines.must_differ.values()]
        if any(number[id(p)] not in covered for of in compared for p in of):
            return None
        if any(number[id(p)] not in told for of in lines.plain.values() for p in of):
            return None
        snapshot.arguments = arguments
        snapshot.same = [arguments[k] for k in others if sources[k].kind == "primitive"]
        places = []
        for (_, name), k in zip(self.inputs, self._inputs()):
            if name not in fixed and (k is None or sources[k].kind != "tensor"):
                return None
            places.append(-1 if name in fixed else arguments[k])  # type: ignore[index]
        return places

    def _inputs(self) -> list[int | None]:
        number = {id(source): k for k, source in enumerate(self.sources)}
        return [None if p is None else number[id(p)] for p, _ in self.inputs]

    def _must_differ(self) -> list[int]:
        """Return the numbers of the sources whose objects must all be different ones."""
        number = {id(source): k for k, source in enumerate(self.sources)}
        return [number[id(p)] for sources in self.lines.must_differ.values() for p in sources]

    def _coverage(self, arguments: tuple) -> Coverage:
        values: dict[int, Any] = {}
        number: dict[int, int] = {}
        for k, source in enumerate(self.sources):
            number[id(source)] = k
            parent = values.get(number.get(id(source.parent), -1), ABSENT)
            values[k] = _now(source, parent, arguments)
        return Coverage(self.sources, values, self.changing)

    # -- the generated function -------------------------------------------------------------------
    def _compile(self, coverage: Coverage, fixed: set[str]) -> None:
        config = (frozenset(coverage.checks), tuple(coverage.roots))
        if config == self.made_for:
            return
        uncovered = [k for k in range(len(self.sources)) if k not in coverage.checks]
        wanted = {n for k in uncovered for n in self.lines.checks[k]}
        wanted |= {n for n in self.lines.unplaced if not self.lines.asks_only(n, fixed)}
        number = {id(source): k for k, source in enumerate(self.sources)}
        wanted |= {n for n, pair in self.lines.aliases.items()
                   if not all(number[id(p)] in coverage.checks for p in pair)}  # fmt: skip
        told = {k for k, what in coverage.rows if what == "attributes"}
        wanted |= {n for n, sources in self.lines.plain.items()
                   if not told.issuperset(number[id(source)] for source in sources)}
        numbers = self._inputs()
        others = [n for n, (_, name) in enumerate(self.inputs) if name not in fixed]
        given = [self.variables[k] for k in coverage.roots]
        given += [self.inputs[n][1] for n in others]
        keys = [self.keys[n] for n in others if self.keys[n]]
        moving = [self.inputs[n][1] for n in others if numbers[n] is not None
                  and self.sources[numbers[n]].kind == "tensor"]  # type: ignore[index]
        sources = "".join(f"{name}._storage._ptr, {name}._offset, " for name in moving)
        moved = [f"id({self.variables[k]})" for k in self._must_differ()
                 if k not in coverage.checks]
        again = [f"if len({{{', '.join(moved)}}}) != {len(moved)} "
                 f"or not snapshot.ids.isdisjoint(({', '.join(moved)},)): return None"]
        again = again if moved else []
        body = [
            *self.lines.closure(wanted, [*given, *keys, *again]),
            *again,
            f"inputs = snapshot.compare({', '.join(given)})",
            "if inputs is None: return None",
            f"return inputs, ({''.join(key + ', ' for key in keys)}), snapshot, "
            + (f"({sources})" if self.placed else "None"),
        ]
        text = check_text("fast(arguments, snapshot)", body, "None")
        exec(compile(text, "<guards>", "exec"), self.constants)  # our own text, made above
        self.fast, self.made_for = self.constants["fast"], config


def check_text(head: str, body: Sequence[str], otherwise: str) -> str:
    """Return a check as Python text; what cannot be read any more counts as changed."""
    inside = "\n        ".join(body)
    return (
        f"def {head}:\n"
        "    try:\n"
        f"        {inside}\n"
        "    except (AttributeError, LookupError, ValueError, TypeError, ArithmeticError):\n"
        f"        return {otherwise}\n"
    )


def _now(source: Source, parent: Any, arguments: tuple) -> Any:
    """Return the value at a source, given the one at its parent."""
    if source.how == "argument":
        return arguments[source.key]
    if source.how == "global":
        return source.container.get(source.key, ABSENT)
    if source.how == "constant":
        return source.value
    if source.how == "grad":
        return getattr(parent, "_grad", ABSENT)
    return source.read(parent)
