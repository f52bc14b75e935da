"""Flow of a whole call of a captured function: `CompiledFunction.__call__`.

In: a Python function and options. Out: a callable with the same results, mutations and errors (C1),
plus `report()`, `graph()`, `graphs`. Called by `script` and `trace`.
"""

from __future__ import annotations

import copy
import functools
import os
import threading
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    overload,
)

from tracejit import config, logs
from tracejit.config import flags
from tracejit.core.eager.recording import active, ever
from tracejit.core.eager.saved import packing
from tracejit.core.eager.traceback_notes import add_context
from tracejit.core.memory import forks
from tracejit.core.ops import sealing
from tracejit.core.ops.generators import get_rng_state, set_rng_state
from tracejit.debug.report import Recompile, Report, Statistics, guard_lines
from tracejit.jit.call_notes import backward_line, notes_of
from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.breaks import CaptureError, GraphBreak, add_break_to
from tracejit.jit.capture.changing_constants import ChangingConstants
from tracejit.jit.capture.known_contents import DIFFERED, OTHER_CONTENTS
from tracejit.jit.capture.lift_numbers import Path, changed_numbers
from tracejit.jit.capture.recursion import deeper
from tracejit.jit.capture.script import rewritten
from tracejit.jit.capture.signature import Signature
from tracejit.jit.capture.speculation import is_raised_by_user
from tracejit.jit.capture.unrolled import note_loop
from tracejit.jit.capture.unwatched import Unprofiled
from tracejit.jit.ir.digest import digest
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.printer import print_graph
from tracejit.jit.runtime import cache, collective_waits
from tracejit.jit.runtime import pace as pace_of
from tracejit.jit.runtime.compiled_graph import CompiledGraph
from tracejit.jit.runtime.entry import CacheEntry, ReplayFailed
from tracejit.jit.runtime.native_replay import NativeReplay, native_replay
from tracejit.jit.runtime.pace import CAPTURE, PLAINLY, Pace
from tracejit.jit.runtime.progress import compiling
from tracejit.jit.runtime.session import CaptureSession

_flags = vars(flags)  # reading the attributes takes three times as long
_MODES = ("eager", "graph", "python", "compiled")
_segments: OrderedDict[tuple, CompiledGraph] = (
    OrderedDict()
)  # by structure: equal functions share programs
_segments_lock = forks.rlock()
_forbidden = threading.local()


class RecompileError(RuntimeError):
    """Error for a recompilation inside `no_recompile()`; the message names its cause.

    >>> import tracejit
    >>> issubclass(tracejit.RecompileError, RuntimeError)
    True
    """


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
# A mode, " nans" where programs look for NaN, " eager" for exact numerics: compared at each call.
Way = str


class CompiledFunction(Generic[P, R]):
    """Captured function. Calling it gives what the plain function would give.

    >>> import tracejit
    >>> @tracejit.script
    ... def f(x):
    ...     return x * 2 + 1
    >>> f(tracejit.tensor([1.0, 2.0]))
    tensor([3., 5.])
    >>> f.report().compiles
    1
    """

    # Its attributes; all others are the user's.
    OWN = frozenset({
        "constants", "differed", "dynamic", "entries", "filling", "full", "fullgraph", "function",
        "lock", "mode", "native", "numerics", "paces", "replay", "sources", "read_source",
        "signature", "static", "statistics", "varying",
    })  # fmt: skip

    def __init__(
        self,
        function: Callable[P, R],
        *,
        dynamic: bool | None = None,
        fullgraph: bool = False,
        numerics: str | None = None,
        mode: str | None = None,
        read_source: bool = True,
    ) -> None:
        if mode is not None and mode not in _MODES:
            raise ValueError(f"mode: expected one of {', '.join(_MODES)}; got {mode!r}")
        if numerics not in (None, "fast", "eager"):
            raise ValueError(f"numerics: expected 'fast' or 'eager', got {numerics!r}")
        functools.update_wrapper(self, function)
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.function = function
        self.read_source = read_source
        self.dynamic, self.fullgraph, self.numerics, self.mode = dynamic, fullgraph, numerics, mode
        self._reset()

    def _reset(self) -> None:
        self.signature = Signature(self.function)
        self.entries: list[tuple[Way, CacheEntry]] = []
        self.statistics = Statistics()
        self.lock = forks.rlock()
        self.static = self.dynamic is False  # one program per exact shape
        self.varying: frozenset[Path] = frozenset()  # sources whose number was seen to change
        self.constants = ChangingConstants()
        self.sources: Sequence[Source] = ()  # what the last capture found that the code can reach
        self.paces: dict[Way, Pace] = {}  # how calls run that no program serves
        self.filling = False  # the last recording did what the next finds done
        self.differed = 0  # entries that did not serve a call for the contents of tensors
        self.full: set[Way] = set()  # where no more programs are made
        # native call that serves calls like the last ones, and its owner
        self.native: Callable[[tuple], Any] | None = None
        self.replay: NativeReplay | None = None

    # -- a call -----------------------------------------------------------------------------------
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        native = self.native
        if native is not None and not kwargs:
            result = native(args)
            if result is not None:
                return result
        way = self.mode or _flags["mode"]
        # Captured inside captured is part of the outer one; anomaly mode wants each op's own node.
        plainly = active.tracer is not None or ever.op_by_op and active.op_by_op
        if plainly or way == "eager":
            return self.function(*args, **kwargs)
        if _flags["check_nans"] or (self.numerics or _flags["numerics"]) == "eager":
            way = self._way(way)
        if native is not None and not kwargs:
            self._end_native()
        signature, arguments = self.signature, args
        if kwargs or len(args) != signature.plain:
            if signature.outdated():
                signature = self.signature = Signature(self.function)
            arguments = signature.normalise(args, kwargs)  # type: ignore[assignment]
            if arguments is None:
                return self.function(*args, **kwargs)  # raises Python's own error
        for kind, entry in self.entries:  # as in `_find`, which would be one more call
            if kind == way and (found := entry.find(arguments)) is not None:
                break
        else:
            # Other processes may wait for this thread, and another's recording for them.
            if not self.lock.acquire(blocking=not collective_waits.may_happen()):
                self.statistics.plain += 1
                return self._plain(arguments)
            try:  # another thread may have compiled meanwhile
                again = self._find(way, arguments)
                if again is None:
                    if signature.outdated():  # the function has other code
                        self.signature = Signature(self.function)
                        return self(*args, **kwargs)
                    pace = self._pace(way)
                    if (turn := pace.turn()) != PLAINLY:
                        return self._capture(way, arguments, pace, turn)
            finally:
                self.lock.release()
            if again is None:  # plainly: no other thread has to wait
                self.statistics.plain += 1
                started = pace_of.clock()
                result = self._plain(arguments)
                pace.took(turn, pace_of.clock() - started)
                return result
            entry, found = again
        self.statistics.cache_hits += 1
        inputs, bound, snapshot = found
        entry.turns -= 1
        if entry.turns == 0 and not kwargs:
            self._begin_native(entry, args, inputs, bound, snapshot)
        try:
            return entry.replay(inputs, arguments, bound, snapshot)
        except ReplayFailed as failed:  # nothing visible was written yet
            reason = failed.__cause__
        return self._instead(entry, arguments, reason)

    def _begin_native(self, entry: CacheEntry, arguments: tuple, inputs: tuple, bound: Any,
                      snapshot: Any) -> None:
        """Let native code serve the calls to come, if they are like this one."""
        self._end_native()
        if snapshot is not None and len(arguments) == self.signature.plain:
            found = native_replay(entry, len(arguments), arguments, inputs, bound, snapshot)
            if found is not None:
                self.replay, self.native = found, found.call
                if found.begin(self):
                    return
                self.replay = self.native = None
        entry.wait(0)

    def _end_native(self) -> None:
        """Go on in Python: a call was not like the last ones."""
        replay, self.native, self.replay = self.replay, None, None
        if replay is not None:
            replay.entry.wait(self._count(replay))

    def _count(self, replay: NativeReplay | None) -> int:
        """Count the calls that native code has served since this was last asked."""
        served = 0 if replay is None else replay.served()
        self.statistics.cache_hits += served
        return served

    def _way(self, mode: str) -> Way:
        """Return the mode with what else programs are made for: calls find those of their own."""
        exact = (self.numerics or flags.numerics) == "eager"
        return mode + " nans" * flags.check_nans + " eager" * exact

    def _find(self, way: Way, arguments: tuple) -> tuple | None:
        """Find the entry that serves these arguments, and what its `find` returned."""
        for kind, entry in self.entries:
            if kind == way:
                found = entry.find(arguments)
                if found is not None:
                    return entry, found
        return None

    def _plain(self, arguments: tuple) -> Any:
        return self.signature.call(self.function, arguments)

    def _instead(self, entry: CacheEntry, arguments: tuple, reason: Any) -> Any:
        """Run the plain function after its program failed: it raises its own error, or catches
        it."""
        with collective_waits.repeating(reason):
            result = self._plain(arguments)
        if entry.catches:
            return result
        if getattr(reason, "takes_long", False):  # see `_must_have_ended` of loop_kernel.py
            self.statistics.plain += 1
            return result
        if is_raised_by_user(reason):  # by a handler of signals: the call is whole, and over
            raise reason
        error = "".join(traceback.format_exception_only(reason)).strip()
        warnings.warn(
            f"tracejit: the compiled program of {self.__name__} raised an error, and the function "
            f"itself does not. The result is the function's; please report this error: {error}",
            RuntimeWarning, stacklevel=3)
        return result

    def _adapted(self, arguments: tuple) -> Any:
        """Call the form of the function that is recorded: `script` shows its control flow."""
        function = rewritten(self.function) if self.read_source else self.function
        return self.signature.call(function, arguments)

    def _pace(self, way: Way) -> Pace:
        measured = way.startswith("compiled") and not self.fullgraph
        return self.paces.setdefault(way, Pace(measured))

    def _capture(self, way: Way, arguments: tuple, pace: Pace, turn: str = CAPTURE) -> Any:
        self.statistics.cache_misses += 1
        known = [e for kind, e in self.entries if kind == way]
        watch = turn == CAPTURE and way not in self.full
        if known and watch:
            self._record_miss(known, arguments)
            if len(known) >= flags.max_entries:
                self.full.add(way)
                self._note_breaks(
                    [
                        GraphBreak(
                            f"the function has {len(known)} programs already, and gets no more; "
                            f"last cause: {self.statistics.recompiles[-1]}",
                            None,
                            self.statistics.recompiles[-1].hint,
                        )
                    ]
                )
                watch = False
        call = CaptureSession(
            self.__name__,
            self.signature,
            self.function,
            self._adapted,
            arguments,
            lambda graph: self._compile(graph, way),
            self.fullgraph,
            self.static,
            watch,
            self.varying,
            self.sources,
            rewritten if self.read_source else None,
            way.endswith(" eager"),
            self.constants,
            not self.filling,
            self.differed < DIFFERED,
        )
        started = pace_of.clock()
        shown = compiling(self.__name__, "recording") if watch else nullcontext()
        with shown, Unprofiled(), packing(None):  # what a replay keeps cannot be packed either
            try:
                result = call.run()
            except BaseException:
                self._note(call)
                raise
        self.sources = call.sources
        self.static |= call.tracer.static
        self.filling = call.filled
        if call.entry is not None:
            self._end_native()
            self.entries.insert(0, (way, call.entry))
            self.statistics.compiles += 1
            self.statistics.add_seconds(call.seconds)
            if logs.enabled("guards"):
                lines = [f"{self.__name__}: {line}" for line in guard_lines(call.entry)]
                logs.emit("guards", "\n".join(lines))
        else:
            pace.took(turn, pace_of.clock() - started)
        self._note(call)
        return result

    def _note(self, call: CaptureSession) -> None:
        """Keep the breaks of a recording and its long loops for the report."""
        self._note_breaks(call.breaks)
        for loop in call.tracer.unrolled.values():
            note_loop(self.statistics.unrolled, loop)

    def _note_breaks(self, breaks: list[GraphBreak]) -> None:
        for found in breaks:
            add_break_to(self.statistics.breaks, found)
            logs.emit("breaks", f"{self.__name__}: {found}")

    def _record_miss(self, known: list[CacheEntry], arguments: tuple) -> None:
        cause = known[0].guard_failure(arguments)
        self.differed += cause.new == OTHER_CONTENTS
        self.varying |= changed_numbers(known[0].guards.guarded_numbers, arguments)
        found = Recompile.of(cause, self.function)
        self.statistics.recompiles.append(found)
        logs.emit("guards", f"{self.__name__}: failed: {cause.path}: {cause.old} -> {cause.new}")
        logs.emit("recompiles", f"{self.__name__}: {found}")
        if getattr(_forbidden, "depth", 0):
            raise RecompileError(f"{self.__name__} would be recompiled: {found}")

    def _compile(self, graph: Graph, way: Way) -> CompiledGraph:
        """Return the compiled form of a graph, shared by everything with the same structure."""
        mode = way.partition(" ")[0]
        numerics = "eager" if way.endswith(" eager") else "fast"
        assumed = tuple(map(str, graph.scope.guards))
        key = (digest(graph), assumed, mode, numerics, config.cache_key())
        with _segments_lock:
            segment = _segments.get(key)
            if segment is not None:
                _segments.move_to_end(key)
        if segment is None:
            if logs.enabled("graph"):
                logs.emit("graph", print_graph(graph))
            named = cache.compiling_for(self._full_name())
            # A gradient's expressions may be as deep as its body is long.
            with named, compiling(self.__name__, "passes"), deeper():
                segment = CompiledGraph(graph, mode, numerics)
            self.statistics.add_seconds(segment.seconds)
            with _segments_lock:
                _segments[key] = segment
                while len(_segments) > flags.max_segments:
                    _segments.popitem(last=False)
        self.statistics.keep(segment)
        return segment

    def _full_name(self) -> str:
        copied = vars(self)  # by `update_wrapper`
        name = copied.get("__qualname__", self.__name__)
        return f"{copied.get('__module__', type(self.function).__module__)}.{name}"

    # -- looking inside
    # -----------------------------------------------------------------------------
    def report(self, verbose: bool = False) -> Report:
        """Report what was compiled, why, and what it costs; prints well, `verbose`: all of it."""
        plainly = [pace.text for pace in self.paces.values() if pace.text]
        entries = [entry for _, entry in self.entries]
        self._count(self.replay)
        return Report(self.__name__, self.statistics, entries, plainly, verbose)

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> Graph:
        """Return the graph that serves these arguments, captured on copies of them if there is none
        yet.

        >>> import tracejit
        >>> f = tracejit.script(lambda x: x + 1)
        >>> len(f.graph(tracejit.ones(2)).nodes)
        1
        """
        return self.graph_and_inputs(*args, **kwargs)[0]

    def graph_and_inputs(self, *args: Any, **kwargs: Any) -> tuple[Graph, list[Any]]:
        """Return the graph that serves these arguments and its inputs (captured on copies if there
        is none yet)."""
        entry, (inputs, _, _) = self._served(args, kwargs)
        return entry.segment.captured, entry.concrete(inputs)

    def profile(self, *args: Any, **kwargs: Any) -> Report:
        """Time each kernel of the program that serves these arguments; return the report with the
        times.

        It works on copies and writes nothing of the caller's. Each kernel runs on this thread
        alone.

        >>> import tracejit
        >>> f = tracejit.script(lambda x: (x * 2).tanh())
        >>> report = f.profile(tracejit.ones(1000))
        >>> [kernel.ops for kernel in report.slowest]
        [('mul', 'tanh')]

        NotImplementedError for programs on other devices, CaptureError where there is no program.
        """
        from tracejit.jit.runtime.kernel_times import kernel_times

        entry, (inputs, bound, _) = self._served(args, kwargs)
        entry.segment.times = kernel_times(entry.segment, bound, entry.concrete(inputs))
        return self.report()

    def _served(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """Return the entry that serves these arguments and what its `find` returned."""
        mode = self.mode or flags.mode
        way = self._way("compiled" if mode == "eager" else mode)
        arguments = self.signature.normalise(args, kwargs)
        if arguments is None:
            raise TypeError(f"{self.__name__}{self.signature.signature} cannot be called like this")
        found = self._find(way, arguments)
        if found is None:
            given, state = arguments, get_rng_state()
            for _ in range(2):  # functions may keep what they give from the first one on
                arguments = copy.deepcopy(given)
                try:
                    self._capture(way, arguments, self._pace(way))
                finally:
                    set_rng_state(state)  # a question draws none of the program's numbers
                found = self._find(way, arguments)
                if found is not None or self.statistics.breaks:
                    break
        if found is None:
            reasons = "\n".join(map(str, self.statistics.breaks))
            raise CaptureError(f"{self.__name__} has no single graph:\n{reasons}")
        return found

    @property
    def graphs(self) -> dict[str, str]:
        """Text of the last program's graph after each stage."""
        segments = list(self.statistics.segments.values())
        return dict(segments[-1].stages) if segments else {}

    def __dir__(self) -> list[str]:
        """Return names for users: those of a function, what reports, and the function's own."""
        own = [name for name in vars(self) if name not in CompiledFunction.OWN]
        dunders = [name for name in dir(type(self)) if name.startswith("__")]
        return sorted({*own, *dunders, "graph", "graphs", "profile", "report"})

    def __repr__(self) -> str:
        """Name the function and its place: `<tracejit.script of step at train.py:12>`."""
        decorator = "script" if self.read_source else "trace"
        name = getattr(self.function, "__qualname__", self.__name__).rpartition("<locals>.")[2]
        code = getattr(self.function, "__code__", None)
        place = f" at {os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""
        return f"<tracejit.{decorator} of {name}{place}>"

    # -- being a method, a copy, a pickle
    # --------------------------------------------------------------
    @overload
    def __get__(self, instance: None, owner: type | None = None) -> CompiledFunction[P, R]: ...
    @overload
    def __get__(self: CompiledFunction[Concatenate[Any, Q], R], instance: object,
                owner: type | None = None) -> _Bound[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _Bound(self, instance)

    def __deepcopy__(self, memo: dict) -> CompiledFunction:
        return self._again(copy.deepcopy(self.function, memo))

    def __reduce__(self):
        return (_rebuild, (self.function, self._options()))

    def _again(self, function: Callable[..., Any]) -> CompiledFunction:
        return CompiledFunction(function, **self._options())

    def _options(self) -> dict[str, Any]:
        names = ("dynamic", "fullgraph", "numerics", "mode", "read_source")
        return {name: getattr(self, name) for name in names}


class _Bound(Generic[P, R]):
    """Captured method bound to its instance."""

    def __init__(self, compiled: Any, instance: Any) -> None:
        self.__func__, self.__self__ = compiled, instance

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        native = self.native
        if native is not None and not kwargs:
            result = native(args)
            if result is not None:
                return result
            self._end_native()
        return cast(R, self.__func__(self.__self__, *args, **kwargs))

    def __repr__(self) -> str:
        return f"<bound method {self.__func__!r}>"

    if TYPE_CHECKING:  # what `__getattr__` passes on, for editors
        graphs: dict[str, str]

        def report(self, verbose: bool = False) -> Report: ...
        def graph(self, *args: P.args, **kwargs: P.kwargs) -> Graph: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    def __dir__(self) -> list[str]:
        dunders = [name for name in object.__dir__(self) if name.startswith("__")]
        return sorted({*dunders, *dir(self.__func__)})


def _rebuild(function: Any, options: dict[str, Any]) -> CompiledFunction:
    return CompiledFunction(function, **options)


@contextmanager
def no_recompile() -> Iterator[None]:
    """Inside, a recompilation raises `RecompileError` naming its cause (this thread only).

    >>> import tracejit
    >>> f = tracejit.script(lambda x: x + 1)
    >>> y = f(tracejit.ones(3))
    >>> with tracejit.no_recompile():
    ...     y = f(tracejit.ones(5))
    """
    _forbidden.depth = getattr(_forbidden, "depth", 0) + 1
    try:
        yield
    finally:
        _forbidden.depth -= 1


sealing.seal_all(globals())
add_context(notes_of(CompiledFunction.__call__.__code__))
add_context(backward_line)
