"""Reports of a captured function: compiles, variants, recompilations, breaks, kernels.

In: the counters a `CompiledFunction` keeps, its entries. Out: a `Report` that prints well. Called
by: users through `fn.report()`.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.config import flags
from tracejit.debug.collective_report import collectives_of
from tracejit.jit.ir.sizes import evaluate

_SHOWN = 9  # op names in a line of the report
_WIDTH = 110  # of a line of the summary
_KERNELS, _CAUSES = 20, 10  # shown unless all is asked for
STAGES = ("recording", "guards", "passes", "imports", "lowering", "kernels")


@dataclass(frozen=True)
class Recompile:
    """Cause of a recompilation: what differed, where the function is, and a hint."""

    path: str
    old: str
    new: str
    where: str
    hint: str

    @staticmethod
    def of(cause: Any, function: Any) -> Recompile:
        """Make one from the guard that failed."""
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        return Recompile(cause.path, cause.old, cause.new, where, _hint(cause))

    def __str__(self) -> str:
        return f"{self.path}: {self.old} -> {self.new} ({self.where}); {self.hint}"


def _hint(cause: Any) -> str:
    if "dimensions" in cause.old:
        return "a tensor of another kind needs its own program"
    if cause.path == "mode":
        return "call the function under the same grad mode and default dtype"
    if cause.path.startswith("size "):
        return "the line asks about this size; another answer needs another program"
    if cause.new == "another answer":
        return "the function asks this; another answer needs another program"
    if cause.old.startswith("== "):
        return _HINTS.get(_kind_of_text(cause.old.removeprefix("== ")), _HINTS[object])
    return "the program holds for this value only; keep it the same between calls"


_HINTS = {
    int: "each value of this int needs a program; pass few values (a loop over a tensor's size "
         "needs one program for all)",
    float: "if this float is used only in arithmetic with tensors, it is an input from now on; "
           "else each value needs a program, so pass few values",
    object: "each value needs a program of its own; pass few values",
}


def _kind_of_text(text: str) -> type:
    """Return the type of the number that a text is of; object for others."""
    try:
        return type(ast.literal_eval(text)) if text[:1] in "-0123456789" else object
    except (SyntaxError, ValueError):
        return object


@dataclass
class Statistics:
    """Counters of one captured function."""

    compiles: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    plain: int = 0
    compile_seconds: dict[str, float] = field(default_factory=dict)
    recompiles: list[Recompile] = field(default_factory=list)
    breaks: list[Any] = field(default_factory=list)
    unrolled: dict[Any, Any] = field(default_factory=dict)  # by line
    segments: dict[int, Any] = field(default_factory=dict)

    def keep(self, segment: Any) -> None:
        """Remember a segment for reports; drop the oldest ones."""
        self.segments[id(segment)] = segment
        while len(self.segments) > flags.max_entries:
            del self.segments[next(iter(self.segments))]

    def add_seconds(self, taken: dict[str, float]) -> None:
        """Count the time that a new program or segment took, by stage."""
        for stage, seconds in taken.items():
            self.compile_seconds[stage] = self.compile_seconds.get(stage, 0.0) + seconds


@dataclass(frozen=True)
class KernelReport:
    """Launch of a program: the kernel's name and text, its ops and loop nests, bytes moved.

    Bytes are those of the sizes that were bound last, seconds those of the last `profile`.
    """

    name: str
    source: str
    ops: tuple[str, ...]
    loops: int
    bytes_read: int
    bytes_written: int
    locations: tuple[Any, ...] = ()
    seconds: float | None = None

    @property
    def file(self) -> str:
        """File with the text, where breakpoints of `mode="python"` go."""
        from tracejit.jit.runtime.cache import source_file

        return source_file(self) if self.source else ""  # type: ignore[arg-type]

    @property
    def title(self) -> str:
        """Name without its digest, which tells readers nothing."""
        return re.sub(r"_[0-9a-f]{8}$", "", self.name)

    @property
    def kib_moved(self) -> float:
        """KiB that are read and written."""
        return (self.bytes_read + self.bytes_written) / 1024

    def lines(self) -> list[str]:
        """Return the user's lines that the kernel computes, each once."""
        return list(dict.fromkeys(f"{place}  {place.text.strip()}" for place in self.locations))

    def __str__(self) -> str:
        ops = abbreviated(self.ops)
        return f"{self.title:<24} {self.loops:>5} {self.kib_moved:>10.1f}  {ops}"


def abbreviated(ops: Sequence[str], most: int = _SHOWN) -> str:
    """Return op names in order, with counts for repetitions, and at most `most` names.

    >>> abbreviated(["add", "gelu"])
    'add gelu'
    >>> abbreviated(["mul", "add", "add", "add"])
    'mul add*3'
    >>> abbreviated(["mul", "sub", "mul", "sub"])
    '(mul sub)*2'
    >>> abbreviated(["exp", "sum", "div", "log", "neg"], most=3)
    'exp sum div + 2 more'
    """
    ops = tuple(ops)
    # The shortest run of names whose repetition gives all of them.
    period = next((n for n in range(1, len(ops)) if ops[:n] * (len(ops) // n) == ops), len(ops))
    runs = [(name, len(list(run))) for name, run in itertools.groupby(ops[:period])]
    names = [name if count == 1 else f"{name}*{count}" for name, count in runs[:most]]
    left = sum(count for _, count in runs[most:])
    text = " ".join(names) + (f" + {left} more" if left else "")
    times = len(ops) // period if period else 1
    if times == 1:
        return text
    return f"{text}*{times}" if period == 1 else f"({text})*{times}"


class Report:
    """Snapshot of a captured function's history. Its text begins with a summary.

    compiles, variants     programs made, programs kept
    cache_hits, _misses    calls that were replayed, calls that were recorded
    plain                  calls that ran as they are, since no program serves them and it is faster
    runs_plainly           reasons why calls do so now, with measured times; [] where they do not
    compile_seconds        by stage
    recompiles, breaks     reasons why a call was not replayed
    unrolled               loops of 16 and more iterations that the graph holds one by one, and why
    graphs                 captured graphs of all programs
    kernels                launches in the order they run, of all programs
    kernels_compiled       native kernels that this process compiled; 0 if all came from the cache
    collectives            with what runs beside each, of all programs
    slowest                those of them that `profile` timed, the slowest first
    peak_bytes             of temporaries, results and what backward needs, at the largest sizes
    guards                 conditions for a call to be replayed, one line per place
    verbose                True: the text has everything, also the guards and each kernel's lines

    >>> import tracejit
    >>> f = tracejit.script(lambda x: (x * 2).tanh())
    >>> y = f(tracejit.ones(8))
    >>> [kernel.ops for kernel in f.report().kernels]
    [('mul', 'tanh')]
    """

    def __init__(self, name: str, statistics: Statistics, entries: list[Any],
                 runs_plainly: Sequence[str] = (), verbose: bool = False):
        self.name, self.verbose = name, verbose
        self.compiles = statistics.compiles
        self.variants = len(entries)
        self.cache_hits, self.cache_misses = statistics.cache_hits, statistics.cache_misses
        self.plain, self.runs_plainly = statistics.plain, list(runs_plainly)
        self.compile_seconds = dict(statistics.compile_seconds)
        self.recompiles = list(statistics.recompiles)
        self.breaks = list(statistics.breaks)
        self.unrolled = list(statistics.unrolled.values())
        segments = list(statistics.segments.values())
        self.graphs = [segment.captured for segment in segments]
        self.kernels = [k for segment in segments for k in kernels_of(segment)]
        self.kernels_compiled = len({d for segment in segments for d in compiled_of(segment)})
        self.collectives = [
            one for segment in segments for one in collectives_of(segment, _last_sizes(segment))
        ]
        timed = [kernel for kernel in self.kernels if kernel.seconds is not None]
        self.slowest = sorted(timed, key=lambda kernel: -(kernel.seconds or 0.0))
        self.peak_bytes = max((peak_of(segment) for segment in segments), default=0)
        self.guards = [line for entry in entries for line in guard_lines(entry)]

    def summary(self) -> list[str]:
        """Return at most ten lines: programs, time of compiling, causes, the slowest kernels."""
        taken = [*STAGES, *(stage for stage in self.compile_seconds if stage not in STAGES)]
        stages = ", ".join(f"{stage} {self.compile_seconds[stage]:.2f}" for stage in taken
                           if stage in self.compile_seconds)
        total = sum(self.compile_seconds.values())
        lines = [
            f"{self.name}: calls recorded {self.cache_misses}, replayed {self.cache_hits}; "
            f"programs made {self.compiles}, kept {self.variants}"
            + (f"; run plainly {self.plain}" if self.plain else ""),
            f"  compiling {total:.2f} s{f' ({stages})' if stages else ''}",
            f"  {len(self.kernels)} kernels and calls; {len(self.guards)} guards; "
            f"memory {self.peak_bytes / 1024:.1f} KiB",
        ]
        for title, causes in (("recompiled", self.recompiles), ("broke", self.breaks)):
            if causes:
                times = "once" if len(causes) == 1 else f"for {len(causes)} causes, the last"
                lines.append(f"  {title} {times}: {_in_short(causes[-1])}")
        for kernel in self.slowest[:5]:
            where = f" at {kernel.locations[0]}" if kernel.locations else ""
            lines.append(f"  slow: {(kernel.seconds or 0.0) * 1e6:.1f} us  {kernel.title}{where}")
        return [line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in lines]

    def details(self) -> list[str]:
        """Return what the summary counts: kernels, causes, and all else if `verbose`."""
        lines = []
        if self.kernels:
            lines.append(f"  {'launched, in order':<24} {'loops':>5} {'KiB moved':>10}  ops")
        for kernel in self._first(self.kernels, _KERNELS):
            lines.append(f"  {kernel}")
            lines += [f"    {line}" for line in kernel.lines() if self.verbose]
        lines += self._left(self.kernels, _KERNELS, "kernels")
        if self.collectives:
            lines.append(f"  {'collectives, in order':<24} {'sent':>10}      while others run")
        lines += [f"  {one}" for one in self._first(self.collectives, _KERNELS)]
        lines += self._left(self.collectives, _KERNELS, "collectives")
        lines += [f"  runs plainly: {reason}" for reason in self.runs_plainly]
        for title, causes in (("recompiled", self.recompiles), ("break", self.breaks),
                              ("unrolled", self.unrolled)):
            lines += [f"  {title}: {cause}" for cause in self._first(causes, _CAUSES)]
            lines += self._left(causes, _CAUSES, "causes")
        lines += [f"  guard: {guard}" for guard in self.guards if self.verbose]
        return lines

    def _first(self, found: Sequence[Any], most: int) -> Sequence[Any]:
        return found if self.verbose else found[:most]

    def _left(self, found: Sequence[Any], most: int, what: str) -> list[str]:
        left = 0 if self.verbose else len(found) - most
        return [f"  ... and {left} more {what}: report(verbose=True)"] if left > 0 else []

    def __str__(self) -> str:
        details = self.details()
        return "\n".join([*self.summary(), *([""] if details else []), *details])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        from tracejit.debug.report_html import report_html

        return report_html(self)


def _in_short(cause: Any) -> str:
    """Return a cause in one line: of two long descriptions only what differs."""
    if not isinstance(cause, Recompile):
        return " ".join(str(cause).split())
    old, new = (re.split(r", (?![^\[(]*[\])])", text) for text in (cause.old, cause.new))
    gone, come = [p for p in old if p not in new], [p for p in new if p not in old]
    if not gone or not come:
        gone, come = old, new
    return f"{cause.path}: {', '.join(gone)} -> {', '.join(come)}"


def _last_sizes(segment: Any) -> dict[str, int]:
    for bound in reversed(list(segment.bindings.values())):
        if bound is not None:
            return dict(bound.sizes)
    return dict(segment.graph.scope.hints)


def kernels_of(segment: Any) -> list[KernelReport]:
    """Return the launches of a segment's program in order."""
    if segment.program is None:
        return []
    sizes = _last_sizes(segment)
    found = []
    timed = dict(zip(map(id, segment.program.instructions), segment.times))
    for instruction in segment.program.all_instructions():
        kernel = instruction.kernel
        host = instruction.extern or f"host {(instruction.ops or ('call',))[0]}"
        found.append(KernelReport(
            kernel.name if kernel is not None else host,
            kernel.source if kernel is not None else "", tuple(instruction.ops),
            kernel.loops if kernel is not None else 1, evaluate(instruction.bytes_read, sizes),
            evaluate(instruction.bytes_written, sizes), tuple(instruction.locations),
            timed.get(id(instruction))))
    return found


def compiled_of(segment: Any) -> list[str]:
    """Return the digests of a segment's kernels that this process compiled."""
    from tracejit.jit.runtime.cache import was_compiled

    instructions = [] if segment.program is None else segment.program.all_instructions()
    kernels = [i.kernel for i in instructions]
    bindings = [bound.binding for bound in segment.bindings.values() if bound is not None]
    kernels += [step.kernel for x in bindings for step in getattr(x, "steps", ())
                if getattr(step, "kernel", None) is not step.instruction.kernel]
    return [kernel.digest for kernel in kernels
            if kernel is not None and was_compiled(kernel.digest)]


def peak_of(segment: Any) -> int:
    """Return the bytes of temporaries and results at the largest binding."""
    bindings = [bound.binding for bound in segment.bindings.values() if bound is not None]
    return max((getattr(binding, "peak_bytes", 0) for binding in bindings), default=0)


def guard_lines(entry: Any) -> list[str]:
    """Return the conditions of an entry, one line for each place it looks at and for each size."""
    described = [(place.text if place else "mode", what)
                 for place, what in entry.guards.described if what]
    lines = [f"{path}: {', '.join(what for _, what in group)}"
             for path, group in itertools.groupby(described, key=lambda line: line[0])]
    for guard in entry.segment.guards:
        where = entry.lines.get(str(guard))
        at = f" ({os.path.basename(where)})" if where else ""
        lines.append(f"sizes: {entry.named(guard)}{at}")
    return lines
