"""What a captured function did: compiles, variants, recompilations, breaks, kernels.

In: the counters a `CompiledFunction` keeps, its entries. Out: a `Report` that prints well. Called by users through `fn.report()`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracejit.ir.sizes import evaluate


@dataclass(frozen=True)
class Recompile:
    """One recompilation: what differed, where the function is, what to do about it."""

    path: str
    old: str
    new: str
    where: str
    hint: str

    @staticmethod
    def of(cause: Any, function: Any) -> Recompile:
        """From the guard that failed."""
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
        return Recompile(cause.path, cause.old, cause.new, where, _hint(cause))

    def __str__(self) -> str:
        return f"{self.path}: {self.old} -> {self.new} ({self.where}); {self.hint}"


def _hint(cause: Any) -> str:
    if "dimensions" in cause.old:
        return "a tensor of another kind needs its own program"
    if cause.path == "mode":
        return "call it under the same grad mode and default dtype"
    if "==" in cause.old and "*" not in cause.old:
        return "the program depends on this value; pass it as a float argument or a tensor"
    return "keep it the same between calls, or make it an argument"


@dataclass
class Statistics:
    """Counters of one captured function."""

    compiles: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    compile_seconds: dict[str, float] = field(default_factory=dict)
    recompiles: list[Recompile] = field(default_factory=list)
    breaks: list[Any] = field(default_factory=list)
    segments: dict[int, Any] = field(default_factory=dict)

    def add_compile(self, segment: Any) -> None:
        """Count the time a new segment took."""
        for stage, seconds in segment.seconds.items():
            self.compile_seconds[stage] = self.compile_seconds.get(stage, 0.0) + seconds


@dataclass(frozen=True)
class KernelReport:
    """One launch of a program: the kernel's name and text, the ops in it, loop nests, bytes at the last sizes."""

    name: str
    source: str
    ops: tuple[str, ...]
    loops: int
    bytes_read: int
    bytes_written: int
    locations: tuple[Any, ...] = ()

    def __str__(self) -> str:
        moved = (self.bytes_read + self.bytes_written) / 1024
        return f"{self.name:<34} {self.loops} loop nest{'s' * (self.loops != 1)}, {moved:9.1f} KiB: " + ", ".join(
            self.ops)


class Report:
    """A snapshot; attributes as DESIGN names them."""

    def __init__(self, name: str, statistics: Statistics, entries: list[Any]):
        self.name = name
        self.compiles = statistics.compiles
        self.variants = len(entries)
        self.cache_hits, self.cache_misses = statistics.cache_hits, statistics.cache_misses
        self.compile_seconds = dict(statistics.compile_seconds)
        self.recompiles = list(statistics.recompiles)
        self.breaks = list(statistics.breaks)
        segments = list(statistics.segments.values())
        self.kernels = [k for segment in segments for k in kernels_of(segment)]
        self.peak_bytes = max((peak_of(segment) for segment in segments), default=0)
        self.guards = [line for entry in entries for line in guard_lines(entry)]

    def __str__(self) -> str:
        total = sum(self.compile_seconds.values())
        lines = [
            f"{self.name}: {self.compiles} compiled, {self.variants} kept, {self.cache_hits} replayed, "
            f"{self.cache_misses} captured; {total * 1000:.0f} ms compiling",
        ]
        lines += [f"  {stage:<10} {seconds * 1000:8.1f} ms" for stage, seconds in self.compile_seconds.items()]
        lines += [f"  kernel {kernel}" for kernel in self.kernels]
        lines += [f"  recompiled: {r}" for r in self.recompiles]
        lines += [f"  break: {b}" for b in self.breaks]
        if self.peak_bytes:
            lines.append(f"  peak of temporaries: {self.peak_bytes / 1024:.1f} KiB")
        return "\n".join(lines)

    __repr__ = __str__


def _last_sizes(segment: Any) -> dict[str, int]:
    for bound in reversed(list(segment.bindings.values())):
        if bound is not None:
            return dict(bound.sizes)
    return dict(segment.graph.scope.hints)


def kernels_of(segment: Any) -> list[KernelReport]:
    """The launches of a segment's program in order."""
    if segment.program is None:
        return []
    sizes = _last_sizes(segment)
    found = []
    for instruction in segment.program.instructions:
        kernel = instruction.kernel
        name = kernel.name if kernel is not None else instruction.extern or f"host {instruction.ops[0]}"
        found.append(KernelReport(
            name, kernel.source if kernel is not None else "", tuple(instruction.ops),
            kernel.loops if kernel is not None else 1, evaluate(instruction.bytes_read, sizes),
            evaluate(instruction.bytes_written, sizes), tuple(instruction.locations)))
    return found


def peak_of(segment: Any) -> int:
    """Bytes of temporaries at the largest binding."""
    bindings = [b.binding for b in segment.bindings.values() if b is not None and b.binding is not None]
    return max((getattr(b, "peak_bytes", 0) for b in bindings), default=0)


def guard_lines(entry: Any) -> list[str]:
    """What an entry assumes, one line each."""
    lines = [line for line in str(entry.guards).splitlines() if line]
    return lines + [f"size: {guard}  ({guard.where})" for guard in entry.segment.guards]
