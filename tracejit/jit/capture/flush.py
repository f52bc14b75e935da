"""End of a segment: the recorded ops are compiled and run, deferred tensors become concrete.

In: a tracer, its deferred tensors that are alive. Out: `flush` returns nothing, `finish` the
outputs of the program. Memory, versions, generators and shared tensors are as the recorded ops
leave them, and output that waited for values is shown. Called by the tracer when a value is needed,
and when an entry is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.interrupts import HeldInterrupts
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.readers import about_to_write
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.shapes import hint
from tracejit.jit.capture.inputs import values_of
from tracejit.jit.capture.materialise import laid_out, materialise
from tracejit.jit.capture.sharing import become
from tracejit.jit.capture.storage import UNKNOWN, FunctionalStorage, substitute
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Value

if TYPE_CHECKING:
    from tracejit.jit.capture.tracer import Tracer


def flush(tracer: Tracer) -> None:
    """Compile and run what was recorded; tensors that are still alive become concrete."""
    recorded = tracer.graph.nodes or tracer.deferred or tracer.generators
    if not recorded and not tracer.written():
        _show(tracer)
        return
    alive = tracer.alive()
    fresh = list(dict.fromkeys(
        t._traced.memory for t in alive if t._traced.memory.input_tensor is None))
    known = len(tracer.identity_results)
    if fresh or tracer.written() or tracer.token is not None or positions(alive, fresh):
        sources = tracer.input_sources()
        inputs = [v for v in tracer.graph.inputs if v in sources]  # tangents have none
        finish(tracer, inputs, [sources[v] for v in inputs], alive, fresh, [])
    else:
        with HeldInterrupts():  # nothing to run: what is alive are views of the caller's memory
            _settle(tracer, alive, [], [], {})
        _show(tracer)
    with tracer.paused():
        for tensor, input_tensor in tracer.identity_results[known:]:
            become(tensor, input_tensor, alive)


def finish(
    tracer: Tracer,
    inputs: list[Value],
    sources: list[Any],
    results: list[Tensor],
    fresh: list[FunctionalStorage],
    extra: list[Value],
) -> list[Tensor]:
    """Compile and run the graph from `inputs`; `results` become concrete.

    Return the program's outputs: the contents of `fresh`, then `extra`, then positions of views.
    """
    written = tracer.written()
    graph = tracer.graph
    graph.location, graph.detached = None, False
    places = positions(results, fresh)
    wanted = extract(
        graph,
        tracer.name,
        inputs,
        [*_apart(tracer, fresh), *extra, *places],
        [(m.input, m.value) for m in written if m.input is not None],
        effects=True,
    )
    run = tracer.run_segment(wanted, values_of(sources))
    for memory in written:
        about_to_write(memory.input_tensor._storage)
    with HeldInterrupts():
        roots = run()
        known = dict(zip(places, roots[len(fresh) + len(extra):]))
        _settle(tracer, results, fresh, roots, known)
        for memory in written:
            memory.input_tensor._storage.version = memory.version
        _uncount(tracer, written)
    _show(tracer)
    return roots


def positions(results: list[Tensor], fresh: list[FunctionalStorage]) -> list[Value]:
    """Return the positions of views that only the program knows, but for those in fresh memory."""
    held = {memory.value for memory in fresh}
    found = [x for t in results for _, operands, _ in t._traced.views for x in operands]
    return list(dict.fromkeys(x for x in found if x not in held))


def _uncount(tracer: Tracer, written: Iterable[FunctionalStorage]) -> None:
    """Subtract conditional writes that did not happen, once the segment has run.

    Correct the versions of the caller's memory, and those that the tape saved with its tensors.
    """
    for memory in written:
        storage = memory.input_tensor._storage
        missed = [count for count, flag in memory.conditional_writes if not bool(flag.array)]
        storage.version -= len(missed)
        for saved in (at() for at in tracer.kept) if missed else ():
            if saved is not None and saved.tensor._storage is storage:
                saved.version -= sum([count <= saved.version for count in missed])


def _apart(tracer: Tracer, fresh: list[FunctionalStorage]) -> list[Value]:
    """Return a value of its own for each piece of memory: clone inputs and shared values."""
    own: dict[Value, None] = {}
    for memory in fresh:
        value = memory.value
        if value.node is None or value in own:
            value = tracer.graph.append(REGISTRY["clone"], (value,), {})
        own[value] = None
    return list(own)


def _settle(
    tracer: Tracer, results: list[Tensor], fresh: list[FunctionalStorage], roots: list[Tensor],
    known: dict[Value, Tensor],
) -> None:
    possible = tracer.sharing.of_results(results)
    with tracer.paused():
        made = {m: _placed(m, root) for m, root in zip(fresh, roots)}
    tracer.sharing.unite(made)
    materialise(results, made, known | {m.value: root for m, root in made.items()})
    for tensor, input_tensor, flag in possible:
        if flag._storage is not None and bool(flag.array):
            tracer.identity_results.append((tensor, input_tensor))
    for draws in tracer.generators.values():
        if draws.untouched():
            draws.generator.take(hint(draws.count))
    tracer.start()
    tracer.restarted = True


def _placed(memory: FunctionalStorage, root: Tensor) -> Tensor:
    """Lay out a program's result as eager mode lays out this piece of memory."""
    if memory.strides is None or memory.strides is UNKNOWN:
        return root
    return laid_out(root, substitute(memory.strides, memory.value.graph.scope.hints))


def _show(tracer: Tracer) -> None:
    """Do the output that waited for its values, in order."""
    output, tracer.output = tracer.output, []
    for effect in output:
        with tracer.paused():
            effect.perform()
