"""The end of a segment: what was recorded is compiled and runs, deferred tensors become concrete.

In: a recorder, the results somebody holds. Out: nothing, or the roots of the memory that was asked
for: memory, versions, generators and shared tensors are as the recorded ops leave them, and what
waited for values is printed. Called by the recorder when a value is needed, and when an entry is
made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tracejit.core.eager.interrupts import HeldInterrupts
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory.readers import about_to_write
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.shapes import hint
from tracejit.jit.capture.aliasing import UNKNOWN, Memory, concrete
from tracejit.jit.capture.materialise import laid_out, materialise
from tracejit.jit.capture.sharing import become
from tracejit.jit.capture.sources import values_of
from tracejit.jit.ir.extract import extract
from tracejit.jit.ir.graph import Value

if TYPE_CHECKING:
    from tracejit.jit.capture.recorder import Recorder


def flush(recorder: Recorder) -> None:
    """Compile and run what was recorded; tensors that are still alive become concrete."""
    recorded = recorder.graph.nodes or recorder.deferred or recorder.generators
    if not recorded and not recorder.written():
        _show(recorder)
        return
    alive = recorder.alive()
    fresh = list(dict.fromkeys(t._traced.memory for t in alive if t._traced.memory.owner is None))
    known = len(recorder.found_same)
    if fresh or recorder.written() or positions(alive, fresh):
        sources = recorder.input_sources()
        inputs = [v for v in recorder.graph.inputs if v in sources]  # no tangents
        finish(recorder, inputs, [sources[v] for v in inputs], alive, fresh, [])
    else:
        with HeldInterrupts():
            _settle(recorder, alive, [], [], {})
        _show(recorder)
    with recorder.paused():
        for tensor, owner in recorder.found_same[known:]:
            become(tensor, owner, alive)


def finish(
    recorder: Recorder,
    inputs: list[Value],
    sources: list[Any],
    results: list[Tensor],
    fresh: list[Memory],
    extra: list[Value],
) -> list[Tensor]:
    """Run the graph from `inputs`; `results` become concrete. Returns the roots of `fresh`,
    then `extra`."""
    written = recorder.written()
    graph = recorder.graph
    graph.location, graph.detached = None, False
    places = positions(results, fresh)
    wanted = extract(
        graph,
        recorder.name,
        inputs,
        [*_apart(recorder, fresh), *extra, *places],
        [(m.input, m.value) for m in written if m.input is not None],
    )
    run = recorder.run_segment(wanted, values_of(sources))
    for memory in written:
        about_to_write(memory.owner._storage)
    with HeldInterrupts():
        roots = run()
        known = dict(zip(places, roots[len(fresh) + len(extra):]))
        _settle(recorder, results, fresh, roots, known)
        for memory in written:
            memory.owner._storage.version = memory.version
        _uncount(recorder, written)
    _show(recorder)
    return roots


def positions(results: list[Tensor], fresh: list[Memory]) -> list[Value]:
    """Where views look that look at a place which only the program knows, as far as no piece of
    fresh memory holds it."""
    held = {memory.value for memory in fresh}
    found = [x for t in results for _, operands, _ in t._traced.views for x in operands]
    return list(dict.fromkeys(x for x in found if x not in held))


def _uncount(recorder: Recorder, written: Iterable[Memory]) -> None:
    """The segment has run: versions of the caller's memory, and those in what the tape keeps of it,
    count no writes that did not happen."""
    for memory in written:
        storage = memory.owner._storage
        missed = [count for count, flag in memory.maybe if not bool(flag.array)]
        storage.version -= len(missed)
        for saved in (at() for at in recorder.kept) if missed else ():
            if saved is not None and saved.tensor._storage is storage:
                saved.version -= sum([count <= saved.version for count in missed])


def _apart(recorder: Recorder, fresh: list[Memory]) -> list[Value]:
    """What each piece of memory holds, as a value of its own: no input, and no other's."""
    own: dict[Value, None] = {}
    for memory in fresh:
        value = memory.value
        if value.node is None or value in own:
            value = recorder.graph.append(REGISTRY["clone"], (value,), {})
        own[value] = None
    return list(own)


def _settle(
    recorder: Recorder, results: list[Tensor], fresh: list[Memory], roots: list[Tensor],
    known: dict[Value, Tensor],
) -> None:
    possible = recorder.sharing.of_results(results)
    with recorder.paused():
        made = {m: _placed(m, root) for m, root in zip(fresh, roots)}
    recorder.sharing.unite(made)
    materialise(results, made, known | {m.value: root for m, root in made.items()})
    for tensor, owner, flag in possible:
        if flag._storage is not None and bool(flag.array):
            recorder.found_same.append((tensor, owner))
    for draws in recorder.generators.values():
        if draws.untouched():
            draws.generator.take(hint(draws.count))
    recorder.start()
    recorder.restarted = True


def _placed(memory: Memory, root: Tensor) -> Tensor:
    """What a program made of memory, laid out as plain code does."""
    if memory.strides is None or memory.strides is UNKNOWN:
        return root
    return laid_out(root, concrete(memory.strides, memory.value.graph.scope.hints))


def _show(recorder: Recorder) -> None:
    """Print and log what was waiting for its values, in order."""
    output, recorder.output = recorder.output, []
    for effect in output:
        with recorder.paused():
            effect.perform()
