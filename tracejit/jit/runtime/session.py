"""Recording of one call: run the user's Python with deferred tensors, compile it, make an entry if
it can be replayed.

In: a function, its normalised arguments. Out: the plain function's result, and a `CacheEntry` or
the reasons why there is none. Called by `jit.CompiledFunction` when no entry serves a call.
"""

from __future__ import annotations

import dis
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import resolve_name
from time import perf_counter
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tracejit.config import flags
from tracejit.core.eager import global_hooks
from tracejit.core.eager.function import FunctionNode
from tracejit.core.eager.global_hooks import everywhere
from tracejit.core.eager.interrupts import HeldInterrupts
from tracejit.core.eager.modes import is_grad_enabled
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.views import canonical
from tracejit.core.memory.devices import default
from tracejit.core.ops import autocast
from tracejit.core.ops.random import default_generator
from tracejit.core.ops.types import get_default_dtype
from tracejit.jit.capture.access_path import Source
from tracejit.jit.capture.append_only import AppendOnlyLists
from tracejit.jit.capture.changing_constants import ChangingConstants
from tracejit.jit.capture.concretize import (
    concretize,
    concretize_objects,
    concretize_tree,
    is_object,
    replaced,
)
from tracejit.jit.capture.deferred_warnings import changes_filters
from tracejit.jit.capture.dynamic_names import RETURNED
from tracejit.jit.capture.epilogue import NotCacheable
from tracejit.jit.capture.fingerprint import first_argument
from tracejit.jit.capture.foreign_compilers import unseen_call
from tracejit.jit.capture.guards import try_read_from
from tracejit.jit.capture.host_program import concretize_for_callee, give_up, settle, settle_numbers
from tracejit.jit.capture.known_contents import stays
from tracejit.jit.capture.known_reads import OF_FILTERS
from tracejit.jit.capture.lift_numbers import (
    OF_SIZES,
    TELL_INTS,
    NumberLifter,
    Path,
    asks_for_types,
    objects_at,
    plain_exception,
    plain_inside,
    put_plain,
    suspends,
    tells_ints,
    write,
)
from tracejit.jit.capture.location import is_internal_code
from tracejit.jit.capture.looking import ABSENT, attribute_of, cell_contents, is_a, module_title
from tracejit.jit.capture.module_reads import Reads
from tracejit.jit.capture.plain_arguments import WANT_INTS, plain_numbers
from tracejit.jit.capture.recursion import deeper
from tracejit.jit.capture.rolled import materialize_lists
from tracejit.jit.capture.signature import Signature
from tracejit.jit.capture.source import original_code
from tracejit.jit.capture.state import ReachableState
from tracejit.jit.capture.tracer import Tracer
from tracejit.jit.capture.unwatched import give_back, is_watched_now
from tracejit.jit.capture.wants_numbers import wants_numbers
from tracejit.jit.capture.watcher import CodeNames, CodeWatcher, names_of
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.lowering.target import TargetError
from tracejit.jit.runtime import progress
from tracejit.jit.runtime.build import CacheEntryBuilder
from tracejit.jit.runtime.compiled_graph import CompiledGraph
from tracejit.jit.runtime.entry import CacheEntry
from tracejit.jit.runtime.executable import ProgramError
from tracejit.jit.runtime.op_by_op import op_by_op

Compile = Callable[[Graph], CompiledGraph]
_CATCHING = dis.opmap.get("PUSH_EXC_INFO")  # starts handlers, `finally`, the end of `with`


class CaptureSession:
    """Recording of one call. `run()` returns the result, then `entry` and `breaks` are set.

    watch  False: the call only runs its segments; nothing is watched and no entry is made
    """

    def __init__(
        self,
        name: str,
        signature: Signature,
        function: Callable[..., Any],
        invoke: Callable[[tuple], Any],
        arguments: tuple,
        compile: Compile,
        fullgraph: bool,
        static: bool,
        watch: bool,
        varying: frozenset[Path] = frozenset(),
        sources: Sequence[Source] = (),
        adapt: Callable[[Any], Any] | None = None,
        exact: bool = False,
        constants: ChangingConstants | None = None,
        may_fill: bool = False,
        may_know: bool = False,
    ):
        self.function, self.invoke = function, invoke
        self.may_fill = may_fill  # caches of functions; that is no break: see `filled`
        self.filled = False
        self.arguments, self.compile = arguments, compile
        self.watch = watch
        self.constants = None if exact else constants
        static = static or adapt is None and tells_ints(function)
        self.tracer = Tracer(name, self._run_segment, fullgraph, static)
        self.tracer.exact = exact
        self.state = ReachableState(self._unmodelled)
        if may_know:
            self.tracer.knows = lambda x: stays(self.state.source_of(x))
        self.sources = self.state.sources if watch else sources  # from an earlier call
        self.tracer.commit_to_state = self.state.commit_container
        self.state.exposes = self.tracer.exposes_what
        self.state.asked = self.tracer.asked
        self.tracer.cached = self.state.kept
        self.reads_source = adapt is not None  # rewritten code gives callees plain numbers itself
        if adapt is not None:
            self.tracer.adapt, self.tracer.reads_source = adapt, True
        self.lifter = NumberLifter(
            self.tracer.sym_env, self.state, varying, signature.spread
        )
        self.lifter.hidden = not asks_for_types(function, adapt)
        self.lifter.hidden &= not suspends(function)
        self.tracer.cacheable = watch
        self.append_only = AppendOnlyLists()
        self.names = signature.names
        self.spread = signature.spread
        self.entry: CacheEntry | None = None
        self.made_objects = False  # the call made objects of the user's classes
        self.catches = False  # code of the user's may catch what a program raises
        self.segments: list[CompiledGraph] = []
        self.seconds = {"recording": 0.0, "guards": 0.0}  # of this recording, by stage
        self.compiling = 0.0  # seconds that segments took to compile; not part of `seconds`
        self.ended = False  # Ctrl-C or an exit ended the call
        self.closed = False
        self.listened: Any = sys.getprofile()  # the profile function before the watcher's
        self.inner: set[CodeType] = set()  # code of functions that are defined inside the call

    @property
    def breaks(self) -> list:
        return self.tracer.breaks

    # -- running ---------------------------------------------------------------------------------
    def run(self) -> Any:
        tracer = self.tracer
        other = None if type(self.function) is FunctionType else self.function
        owner = attribute_of(self.function, "__self__", other)
        if self.watch and owner is not None:  # of a bound method, or a callable object
            self.state.add_root("constant", owner, None, owner, "self")
        if self.watch and everywhere:
            self.state.add_root("global", vars(global_hooks), "everywhere", everywhere,
                                "the hooks of all modules")
        target = attribute_of(self.function, "__func__", self.function)
        if self.watch and is_a(target, FunctionType):
            self.state.runs(target)
        # `pop` below leaves no reference here: numbers that died need no search at the end.
        values = [tuple(self._argument(k, v) for k, v in enumerate(self.arguments))]
        modes = (is_grad_enabled(), get_default_dtype(), autocast.switches.state, default.place)
        seeded = default_generator.array.copy()
        value, known = None, set() if self.watch else objects_at(self.sources, self.arguments)
        for source in () if self.watch else self.sources:
            if source.kind == "opaque":
                tracer.exposes_what(try_read_from(source, self.arguments))
        error: BaseException | None = None
        active.tracer = tracer
        try:
            started, others = perf_counter(), self.compiling
            value = self._user_code(values.pop())
            self.seconds["recording"] = perf_counter() - started - self.compiling + others
            materialize_lists(tracer.stacked_lists)
            now = (is_grad_enabled(), get_default_dtype(), autocast.switches.state, default.place)
            if self.watch and modes != now:
                tracer.add_break(
                    "the function leaves grad mode, autocast or a default changed",
                    "use `with tracejit.no_grad():`",
                )
            if self.may_fill and tracer.only_once and self.state.kept.filled():
                tracer.breaks.clear()  # the next call finds the result, and runs none of it
            drawn = (default_generator.array != seeded).any()
            if self.watch and not tracer.breaks and drawn:
                tracer.add_break(
                    "the function seeds the random generator",
                    "seed it outside the captured function",
                )
            if self.watch and not tracer.breaks:
                self._make_entry(value)
            tracer.flush()
            settle(tracer.pending)
            settle_numbers(tracer.loop_numbers)
        except BaseException as raised:
            error = raised
            raise
        finally:
            try:
                value = self._close(value, known, error)
            finally:
                if not self.closed:  # Ctrl-C came before it could be held
                    self._close(value, known, error)
                error = None  # its traceback holds this frame
        return concretize_tree(value)

    def _close(self, value: Any, known: set[int], error: BaseException | None) -> Any:
        """End the recording, with signals held back.

        Return `value` as the caller gets it. No deferred number or tensor stays in objects of the
        user's.
        """
        tracer = self.tracer
        with HeldInterrupts():
            self.closed = True
            if is_watched_now() and sys.getprofile() != self.listened:
                give_back(self.listened)  # Ctrl-C came as a watcher began or ended
            try:
                if error is not None:  # what ran before the error must have happened: compute it
                    self.ended = not is_a(error, Exception)
                    tracer.abandon()
                    plain_exception(error)
            finally:
                active.tracer = None
                # With an entry, of all that the call made only objects of the user's classes may
                # still hold recorded numbers.
                swept = self.entry is None or self.made_objects
                if self.watch:
                    self.lifter.restore(self.arguments, swept=swept)
                else:
                    put_plain(self.sources, self.arguments)
                if swept:
                    if self.watch:
                        found = (source.value for source in self.sources)
                        known = {id(x) for x in found if is_object(x)}
                    value = plain_inside(value, self.sources, self.arguments, known)
                if tracer.identity_results:
                    value = self._put_same(concretize_tree(value))
                self.state.release()
        return value

    def _put_same(self, value: Any) -> Any:
        """Put the caller's own tensors in place of results that turned out to be them.

        That covers `value`, which is returned, and what the call stored.
        """
        found, seen = self.tracer.identity_results, set[int]()

        def own(x: Any) -> Any:
            if not is_a(x, Tensor):
                return x
            x = canonical(x)
            other = next((other for one, other in found if one is x), None)
            return x if other is None else own(other)

        for source in self.sources:
            now = try_read_from(source, self.arguments)
            if (same := replaced(now, own, seen)) is not now:
                write(source, same, self.arguments)
        return replaced(value, own, seen)

    def _user_code(self, values: tuple) -> Any:
        with deeper():
            if not self.watch:
                return self.invoke(values)
            state = self.state
            state.kept.codes |= OF_FILTERS
            with CodeWatcher(
                self._entered, self._foreign, self._library, self._named, self._asking,
                state.registered.setdefault, self._gave, state.asked.setdefault, self._modules,
                self._converts, state.kept.codes, self._keeps,
            ):  # fmt: skip
                return self.invoke(values)

    def _argument(self, k: int, value: Any) -> Any:
        """Return an argument as the function sees it: a number may become a `SymNumber`."""
        if self.watch:
            self.state.add_root("argument", self, k, value, self.names[k])
            source = self.state.roots["argument", id(self), k]
            if k in self.spread:
                return self._spread(source, value)
            return self._number(source)
        return value

    def _spread(self, source: Source, value: Any) -> Any:
        """Return the tuple of `*args` or the dict of `**kwargs`, as the function sees it."""
        inside = {key: child for (_, key), child in source.children.items()}
        if len(inside) < len(value):  # too many to look at
            return value
        if is_a(value, tuple):
            return tuple(self._number(inside[key]) for key in range(len(value)))
        return {key: self._number(inside[key]) for key in value}

    def _number(self, source: Source) -> Any:
        """Return what is at a source of the arguments, with a `SymNumber` for a number that may
        change."""
        kind = type(source.value)
        if not self.lifter.hidden:
            return source.value
        if kind is float or kind is int and (self.reads_source or self.lifter.varies(source)):
            return self.lifter.argument(source)
        return source.value

    def _run_segment(self, graph: Graph, inputs: list[Any]) -> Callable[[], list[Tensor]]:
        """Compile a segment, and return a function that runs it."""
        active.tracer = None
        started = perf_counter()
        try:
            if self.ended:  # after Ctrl-C the user does not want to wait for a compiler
                return lambda: self._unrecorded(lambda: op_by_op(graph, inputs))
            if self.constants is not None and (self.tracer.breaks or not self.watch):
                graph, inputs = self.constants.as_inputs(graph, inputs)
            segment, bound = self._compiled(graph, inputs)
            self.segments.append(segment)
        finally:
            progress.hide()
            active.tracer = self.tracer
            self.compiling += perf_counter() - started

        def run() -> list[Tensor]:
            try:
                return segment.run(inputs, bound)
            except (ProgramError, GraphError):
                pass  # nothing visible is written yet
            return op_by_op(graph, inputs)  # for the op's own error

        return lambda: self._unrecorded(run)

    def _unrecorded(self, run: Callable[[], list[Tensor]]) -> list[Tensor]:
        active.tracer = None
        try:
            return run()
        finally:
            active.tracer = self.tracer

    def _compiled(self, graph: Graph, inputs: list[Any]) -> tuple[CompiledGraph, Any]:
        """Return a compiled graph, and its binding for these inputs."""
        try:
            segment = self.compile(graph)
            started = perf_counter()
            bound = segment.bound(inputs)  # compiles the kernels of loops
            self.seconds["kernels"] = self.seconds.get("kernels", 0.0) + perf_counter() - started
            return segment, bound
        except TargetError:  # no kernel can run here, and the user has asked for it
            raise
        except Exception as error:
            if flags.verify_passes:  # set in tests, where a graph that cannot be compiled is a bug
                raise
            why = f"{type(error).__name__}: {error}"
            reason = f"tracejit could not compile the graph ({why}), and runs it op by op"
            warnings.warn(f"{self.tracer.name}: {reason}", RuntimeWarning, stacklevel=2)
            self.tracer.add_break(reason, "please report this")
            segment = CompiledGraph(graph, "graph", "fast")
            return segment, segment.bound(inputs)

    # -- what the watcher and the state walker report --------------------------------------------
    def _entered(self, names: CodeNames, frame: FrameType) -> None:
        state = self.state
        saved, active.tracer = active.tracer, None
        try:
            state.add_names(names)
            self.lifter.add_names(names)
            code = original_code(frame.f_code)
            self.append_only.entered(code)
            self.inner.update(names.nested)
            if not is_internal_code(code):
                if not self.reads_source and wants_numbers(names, frame):
                    state.kept.codes.add(code)
                self.catches |= _CATCHING is None or _CATCHING in code.co_code[::2]
                self.tracer.identities.add_names(names, self.reads_source)
                if not self.reads_source:
                    self.tracer.static |= names.globals >= TELL_INTS or not (
                        names.uncertain.isdisjoint(OF_SIZES))
            for name in sorted(names.globals):
                container = frame.f_globals
                state.add_root("global", container, name, container.get(name, ABSENT), name)
                if name not in container:  # then a builtin, or nothing: it may come later
                    builtin = frame.f_builtins
                    state.add_root("global", builtin, name, builtin.get(name, ABSENT), name)
            self._imports(names, frame)
            module = sys.modules.get(frame.f_globals.get("__name__", ""))
            if module is not None and "modules" in names.dynamic_owners:
                self._any_of(module)
            self._cells(frame)
            self.lifter.look()
            if self.lifter.cached and not self.reads_source:
                # A cached function would keep a size: nothing can put a plain int in its place.
                self.tracer.static = self.tracer.keys = True
        finally:
            active.tracer = saved

    def _imports(self, names: CodeNames, frame: FrameType) -> None:
        """Add the modules that the code imports: it reads their names."""
        if is_internal_code(original_code(frame.f_code)):
            return
        for level, name in sorted(names.imported):
            package = frame.f_globals.get("__package__") or ""
            self._module(resolve_name("." * level + name, package))

    def _module(self, name: str) -> None:
        """Add an imported module, and the packages that it is in, to the roots."""
        parts = name.split(".")
        for k in range(1, len(parts) + 1):
            path = ".".join(parts[:k])
            module = sys.modules.get(path, ABSENT)
            self.state.add_root("global", sys.modules, path, module, path)

    def _cells(self, frame: FrameType) -> None:
        code = original_code(frame.f_code)
        if is_internal_code(code):
            if code.co_filename == "<string>":  # `__init__` of a dataclass: its defaults are read
                self._method(code, frame)
            return
        if self.state.add_code(code):
            return
        function = attribute_of(self.function, "__func__", self.function)
        if attribute_of(function, "__code__") is code:
            for name, cell in zip(code.co_freevars, function.__closure__ or ()):
                self.state.add_root("cell", cell, cell, cell_contents(cell), name)
        elif code in self.inner:  # what it closes over was made inside the call too
            return
        elif not self._method(code, frame) and code.co_freevars:
            self.tracer.add_break_later(
                f"tracejit cannot find the function {code.co_qualname}, which closes over "
                "variables")

    def _method(self, code: CodeType, frame: FrameType) -> bool:
        """Return True if the function that runs was found as a method of its first argument's
        class."""
        first = first_argument(code, frame)
        if issubclass(type(first), FunctionNode):  # of a Function: its methods are static
            first = type(first).function
        return first is not None and self.state.add_method(first, code)

    def _foreign(self, function: Any) -> None:
        if active.tracer is None:  # a segment is compiled or runs: no code of the user's
            return
        if self.tracer.output or self.tracer.pending:
            give_up(self.tracer)
        self.tracer.add_break_later(*unseen_call(function))

    def _keeps(self, frame: FrameType) -> None:
        """Handle the start of code whose results a cache keeps, or that changes the filters of
        warnings."""
        if frame.f_code not in OF_FILTERS:
            self.lifter.give_up(frame, self.arguments)
        elif not changes_filters(self.tracer, frame):
            self._foreign(warnings.filterwarnings)

    def _named(self, names: set[str] | None) -> None:
        if names is None:
            self.state.ask_any(modules=False)
        else:
            self.state.add_attribute_names(names)
        self.lifter.look()

    def _asking(self, frame: FrameType) -> None:
        """Note modules in variables from which `getattr` reads computed names."""
        for name in sorted(self.state.dynamic_owners):
            module = frame.f_locals.get(name)
            if is_a(module, ModuleType):
                self._any_of(module)
                self.lifter.look()

    def _gave(self, module: ModuleType) -> None:
        """Note that a function returned a module, from which code may read computed names."""
        if RETURNED in self.state.dynamic_owners and active.tracer is self.tracer:
            self._any_of(module)
            self.lifter.look()

    def _any_of(self, module: ModuleType) -> None:
        """Note that code reads attributes of a module by computed names: any of them may be
        read."""
        name = module_title(module)
        if self.state.source_of(module) is None:
            if sys.modules.get(name) is module:
                self._module(name)
            else:
                self.tracer.add_break_later(
                    f"the function reads attributes of the module {name!r}, which tracejit cannot "
                    "find")
        self.state.ask_all(module)

    def _modules(self, reads: Reads) -> None:
        """Note that the package's own code reads attributes of modules."""
        if reads not in self.state.reads:
            self.tracer.identities.of_modules |= reads.modules
            self.tracer.identities.compared |= reads.objects
            self.state.read_modules(reads)
            self.lifter.look()

    def _library(self, frame: FrameType) -> None:
        if frame.f_code is import_module.__code__:
            name, package = frame.f_locals["name"], frame.f_locals["package"]
            if package or not name.startswith("."):
                self._module(resolve_name(name, package))
        if self.tracer.pending:
            concretize_for_callee(self.tracer, frame)
        if not self.reads_source and active.tracer is self.tracer:
            given, home = frame.f_locals, str(frame.f_globals.get("__name__")).partition(".")[0]
            for name, value in list(given.items()):
                fresh = plain_numbers(value, home in WANT_INTS)
                if fresh is not value:
                    given[name] = fresh  # Python writes it back when the profile function returns

    def _converts(self, frame: FrameType | None) -> None:
        """Give plain numbers to code that handles numbers itself, and to a method's object.

        frame  of the code that begins; None: it ends
        """
        tracer = self.tracer
        tracer.converting = frame is not None and active.tracer is tracer
        if frame is not None and tracer.converting and not tracer.speculation_depth:
            given = frame.f_locals
            if names_of(original_code(frame.f_code)).of_numbers:
                given.update({name: plain_numbers(x, True) for name, x in given.items()})
            else:
                concretize_objects(first_argument(frame.f_code, frame), set(), concretize)

    def _unmodelled(self, path: str, what: str, hint: str = "") -> None:
        self.tracer.add_break_later(f"{path}: {what}", hint)

    # -- making an entry --------------------------------------------------------------------------
    def _make_entry(self, value: Any) -> None:
        started, others = perf_counter(), self.compiling
        progress.enter("guards")
        try:
            self.entry = CacheEntryBuilder(self, value).make()
            if self.entry is not None:
                self.entry.catches = self.catches
            self.seconds["guards"] = perf_counter() - started - self.compiling + others
        except NotCacheable as reason:
            self.tracer.add_break(str(reason))
