"""Runnable form of a graph: passes, lowering, and the mode it runs in.

In: a recorded Graph. Out: a `CompiledGraph`. Its `run(inputs, bound)` returns one tensor per graph
output, fresh or an alias of the input that is returned, and has written what the graph writes.
Called by the jit for recorded segments, replayed entries and backward programs.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit import logs
from tracejit.config import flags
from tracejit.core.eager.meta import is_meta
from tracejit.core.eager.saved import alias
from tracejit.core.eager.state import make, of_array
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.writing import writable_array
from tracejit.core.memory import CPU, forks
from tracejit.core.ops.stacks import may_hold_handles, stack_run
from tracejit.jit.ir.digest import free_symbols
from tracejit.jit.ir.graph import Graph
from tracejit.jit.ir.interpret import interpret
from tracejit.jit.ir.size_facts import known_sign
from tracejit.jit.ir.sizes import ShapeGuard, SymInt, evaluate, symbols_of
from tracejit.jit.passes.pipeline import run as run_passes
from tracejit.jit.passes.pipeline import stages
from tracejit.jit.runtime import progress
from tracejit.jit.runtime.launch import plan_of

_keeping = forks.rlock()


class CompiledGraph:
    """Graph made runnable. `seconds` holds the time by stage."""

    def __init__(self, graph: Graph, mode: str, numerics: str):
        if mode == "graph":  # ops one by one, as eager mode runs them: fused ones too
            numerics = "eager"
        self.mode, self.numerics = mode, numerics
        self.captured = graph
        self.seconds: dict[str, float] = {}
        self.bindings: dict[tuple, Any] = {}
        self.times: list[float] = []  # seconds of each instruction, once profiled
        self.given_away = False  # outputs are gradients, which leaves keep as their `.grad`
        self.free = free_symbols(graph)
        self.numbers = {k for kind, k, _ in graph.symbol_sources.values() if kind == "number"}
        started = time.perf_counter()
        progress.enter("passes")
        self.graph = run_passes(graph, numerics)
        self.seconds["passes"] = time.perf_counter() - started
        self.program: Any = None
        if mode != "graph":
            first = "tracejit.jit.lowering.lower" not in sys.modules
            started = time.perf_counter()
            from tracejit.jit.lowering.lower import lower
            from tracejit.jit.runtime.placement import executable_for
            from tracejit.jit.runtime.precompile import compile_ahead

            if first:  # of the process
                self.seconds["imports"] = time.perf_counter() - started
            started = time.perf_counter()
            progress.enter("lowering")
            if mode == "compiled":
                compile_ahead(self.graph)
            self.program = lower(self.graph, numerics)
            self.seconds["lowering"] = time.perf_counter() - started
            if logs.enabled("kernels"):
                _texts().emit_sources(self.program)
            started = time.perf_counter()
            progress.enter("kernels")
            self.executable = executable_for(self.program, mode)
            self.seconds["kernels"] = time.perf_counter() - started
        number = {v: k for k, v in enumerate(self.graph.inputs)}
        self.returned = [number.get(v, -1) for v in self.graph.outputs]
        self.output_types = [v.type for v in self.graph.outputs]
        # A copy: tape nodes may compare symbolic sizes later, whose guards would not be this
        # program's.
        self.guards = (*self.graph.scope.guards, *self._counts())

    def _counts(self) -> list[ShapeGuard]:
        """Return guards that no value has a negative size, where the terms of a size do not
        tell."""
        shapes = [v.type.shape for node in self.captured.nodes for v in node.outputs]
        found = {s.key: s for shape in shapes for s in shape if type(s) is SymInt}
        return [ShapeGuard(">=", s, 0, "") for s in found.values()
                if known_sign(s.terms, ">=") is None and symbols_of(s).isdisjoint(self.free)]

    @property
    def stages(self) -> list[tuple[str, str]]:
        """Pairs (name, text) of the graph as captured and after each pass."""
        return stages(self.captured, self.numerics)

    # -- binding ----------------------------------------------------------------------------------
    def key(self, inputs: Sequence[Any]) -> tuple:
        """Return the part of the inputs that a binding depends on.

        That is shapes, strides where they are not contiguous, and numbers that sizes are made of.
        """
        return tuple([
            (x._shape, x._strides) if isinstance(x, Tensor) else x if k in self.numbers else None
            for k, x in enumerate(inputs)
        ])

    def sizes(self, inputs: Sequence[Any], free: Mapping[str, int] = {}) -> dict[str, int]:
        """Return the values of the graph's symbols. `free` gives symbols that no input shows."""
        values = dict(free)
        for name, (kind, number, dimension) in self.graph.symbol_sources.items():
            x = inputs[number]
            if kind == "number":
                values[name] = x
            else:
                values[name] = x._shape[dimension] if kind == "size" else x._strides[dimension]
        self.graph.scope.complete(values)
        return values

    def bind(self, inputs: Sequence[Any]) -> BoundGraph | None:
        """Return the binding for inputs of these shapes; None where a size guard does not hold."""
        key = self.key(inputs)
        bound = self.bindings.get(key, False)
        if bound is False:
            sizes = self.sizes(inputs)
            held = all(guard.holds(sizes) for guard in self.guards)
            if held and self.bindings and logs.enabled("recompiles"):
                _texts().emit_binding(self.captured, sizes)
            bound = self._keep(key, BoundGraph(self, sizes) if held else None)
        return bound

    def bound(self, inputs: Sequence[Any]) -> BoundGraph:
        """Return the binding for the inputs this graph was just recorded from, whose guards hold.

        Raises RuntimeError where one does not.
        """
        bound = self.bind(inputs)
        if bound is None:
            raise RuntimeError(f"{self.captured.name}: {self.failing_guard(inputs)} does not hold")
        return bound

    def bind_given(self, inputs: Sequence[Any], sizes: Mapping[str, int]) -> BoundGraph:
        """Return the binding of a part of a larger program; `sizes` has the values that no input
        shows.

        Other values are read from the inputs. This segment may have been made for another function,
        whose symbols had other names.
        """
        free = {name: sizes[name] for name in self.free}
        key = ("given", self.key(inputs), tuple(free.values()))
        bound = self.bindings.get(key)
        if bound is None:
            bound = self._keep(key, BoundGraph(self, self.sizes(inputs, free)))
        return bound

    def _keep(self, key: tuple, bound: Any) -> Any:
        with _keeping:
            self.bindings[key] = bound
            if len(self.bindings) > flags.max_bindings:
                del self.bindings[next(iter(self.bindings))]
        return bound

    def failing_guard(self, inputs: Sequence[Any]) -> Any:
        """Return the first size guard that does not hold for these inputs, or None."""
        sizes = self.sizes(inputs)
        return next((g for g in self.guards if not g.holds(sizes)), None)

    # -- running ----------------------------------------------------------------------------------
    def run(self, inputs: Sequence[Any], bound: BoundGraph, snapshot: Any = None) -> list[Tensor]:
        """Return tensors for the outputs; written inputs hold their new content.

        snapshot  knows the addresses of all inputs but its `uncovered` ones
        """
        direct = bound.direct
        if direct is not None:
            return direct[0](tuple(inputs), direct[1])
        if self.mode == "graph":
            return self._interpret(inputs, bound)
        if not self.program.instructions and not bound.outputs:
            return []
        held: list[array] = []
        if snapshot is None:
            pointers = [address_of(x, held) for x in inputs]
        else:
            pointers = snapshot.addresses.copy()
            for number in snapshot.uncovered:
                pointers[number] = address_of(inputs[number], held)
        storages = self.executable.run(bound.binding, pointers, inputs)
        bound.direct = plan_of(self.executable, bound.binding, inputs, bound.outputs,
                               given_away=self.given_away)
        return [
            make(storage, 0, shape, None, dtype, device)
            if storage is not None
            else alias(inputs[self.returned[k]])
            for k, (storage, (shape, dtype, device)) in enumerate(zip(storages, bound.outputs))
        ]

    def _interpret(self, inputs: Sequence[Any], bound: BoundGraph) -> list[Tensor]:
        # No op reads the values of a tensor that has none: such ops are not recorded.
        arrays = [None if is_meta(x) else x.array if isinstance(x, Tensor) else np.asarray(x)
                  for x in inputs]
        with stack_run() as stacks:
            results = interpret(self.graph, arrays, symbols=bound.sizes)
            outputs = [
                of_array(a.copy(order="C"), t.device or CPU)
                for a, t in zip(results.outputs, self.output_types)
            ]
            for tensor, kind in zip(outputs, self.output_types):
                if may_hold_handles(kind):
                    stacks.keep(tensor._storage)
        for number, value in results.writes:
            target = inputs[number]
            array = writable_array(target) if target._device.type == "cpu" else target.array
            array[...] = value
        return outputs


def _texts() -> Any:
    from tracejit.jit.runtime import program_logs  # only a log needs it

    return program_logs


def address_of(x: Any, held: list[array]) -> int:
    """Return the address of an input's elements. A number gets a cell, which `held` keeps alive."""
    if isinstance(x, Tensor):
        return x._storage.ptr + x._offset * x._dtype.itemsize
    kind = "d" if type(x) is float else "q"
    cell = array(kind, (x,) if type(x) in (float, int) else x.tolist())
    held.append(cell)
    return cell.buffer_info()[0]


class BoundGraph:
    """Segment at given sizes: its binding, and the shape, dtype and device of each output."""

    __slots__ = ("sizes", "binding", "outputs", "direct")

    def __init__(self, segment: CompiledGraph, sizes: dict[str, int]):
        self.sizes = sizes
        self.binding: Any = None
        self.direct: tuple | None = None  # a launcher and its plan, once a call has shown the kinds
        if segment.mode != "graph":
            self.binding = segment.executable.bind(sizes)
            if logs.enabled("memory"):
                _texts().emit_memory(segment.program, self.binding)
        self.outputs = [
            (tuple(evaluate(s, sizes) for s in t.shape), t.dtype, t.device or CPU)
            for t in segment.output_types
        ]
