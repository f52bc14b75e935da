"""Collectives of a recording: nodes of its graph, where eager code calls MPI.

In: deferred tensors and a process group. Out: deferred tensors; entries keep the group's words,
which tell a program how to call MPI. Called by `collectives`, `exchanges` and `reducer` while a
function is recorded.

A program belongs to its group: a guard asks for the default one, any other must be found from the
caller's objects again. The words of a group that is destroyed lead to a function that does nothing,
so that the program fails and the plain function raises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tracejit.core.eager.recording import active
from tracejit.core.eager.state import of_array
from tracejit.core.ops import collectives as records
from tracejit.distributed import groups
from tracejit.distributed.buffers import reduced_in
from tracejit.distributed.debug_level import DebugLevel, get_debug_level
from tracejit.distributed.groups import ProcessGroup
from tracejit.distributed.reduce_op import ReduceOp, mpi_operation
from tracejit.distributed.work import Work
from tracejit.jit.lowering import library_collectives as layout

_FUNCTIONS = {
    "all_reduce": "Iallreduce", "broadcast": "Ibcast", "reduce": "Ireduce",
    "all_gather": "Iallgather", "reduce_scatter": "Ireduce_scatter_block",
    "barrier": "Ibarrier",
}  # fmt: skip
_known: WeakValueDictionary[int, ProcessGroup] = WeakValueDictionary()
_words: dict[int, Any] = {}  # by number of the group, until it is destroyed


def records_for(*tensors: Any) -> bool:
    """Return True if a function is recorded whose graph takes a collective of these tensors.

    At level DETAIL none does: programs do not compare their collectives.
    """
    if getattr(active.tracer, "collective", None) is None or get_debug_level() is DebugLevel.DETAIL:
        return False
    return all(tensor.device.type == "cpu" for tensor in tensors)


def words_of(group: ProcessGroup) -> Any:
    """Return the int64 tensor that tells programs how to call MPI for a group."""
    found = _words.get(group.number)
    if found is not None:
        return found
    group.posted.known = False  # programs count for themselves
    library, ring, words = group.library, group.ring, np.zeros(layout.WORDS, np.int64)
    words[layout.BEGIN], words[layout.LAND] = ring.functions["begin"], ring.functions["land"]
    words[layout.RING], words[layout.COMMUNICATOR] = ring.address, group.handle
    words[layout.NUMBER], words[layout.IN_PLACE] = group.number, library.in_place
    words[layout.SECONDS], words[layout.RANK] = math.ceil(group.seconds), group.rank()
    for k, name in enumerate(layout.COLLECTIVES):
        at = layout.FUNCTIONS + 2 * k
        words[at], words[at + 1] = library.functions_of(_FUNCTIONS[name])
    for k, name in enumerate(layout.DTYPES):
        halves = name in ("float16", "bfloat16")  # these only move
        words[layout.TYPES + k] = library.word(2) if halves else library.element(name)
    for k, name in enumerate(layout.COMBINED):
        words[layout.OPERATIONS + k] = library.operation(name)
    _words[group.number] = made = of_array(words)
    _known[group.number] = group
    return made


def forget(group: ProcessGroup) -> None:
    """Let programs that were made for a group fail: it is destroyed."""
    found = _words.pop(group.number, None)
    if found is not None:
        found.array[layout.BEGIN] = group.ring.functions["gone"]


def set_seconds(group: ProcessGroup) -> None:
    """Let programs wait as long as the group's timeout is now."""
    if group.number in _words:
        _words[group.number].array[layout.SECONDS] = math.ceil(group.seconds)


def _node(record: Any, group: ProcessGroup, *operands: Any, **attributes: Any) -> Any:
    tracer: Any = active.tracer
    groups.note_use(group)
    group.ring.check()
    group.ring.wake()  # its thread carries on what programs begin
    return tracer.collective(record, operands, words_of(group), attributes)


def _plain(tensor: Any, kind: Any = None) -> Any:
    """Return the elements as a value of their own: contiguous, of a dtype."""
    own = tensor.detach()
    own = own if kind is None or own.dtype is kind else own.to(kind)
    return own.contiguous().resolve_conj().resolve_neg()


def done(results: Sequence[Any]) -> Work:
    """Return a handle that has nothing to wait for: what reads the tensors comes behind anyway."""
    return Work([], list(results), None)


def _write(tensor: Any, result: Any) -> None:
    """Let the tensor's memory hold a result, which may have another shape and dtype."""
    if tuple(result.shape) != tuple(tensor.shape):
        result = result.reshape(tensor.shape)
    tensor.detach()._assign(result.to(tensor.dtype))


def _mean(result: Any, op: Any, group: ProcessGroup) -> Any:
    return result / group.size() if op is ReduceOp.AVG else result


def all_reduce(tensor: Any, op: Any, group: ProcessGroup, name: str = "all_reduce") -> Work:
    """Record the combination of a tensor over the group, in place."""
    _write(tensor, combined(tensor, op, group, name))
    return done([tensor])


def combined(tensor: Any, op: Any, group: ProcessGroup, name: str = "all_reduce") -> Any:
    """Return the combination of a tensor over the group, in the dtype in which it is computed."""
    asked = mpi_operation(name, op, tensor.dtype)
    found = _node(records.all_reduce, group, _plain(tensor, reduced_in(tensor.dtype)), op=asked)
    return _mean(found, op, group)


def broadcast(tensor: Any, root: int, group: ProcessGroup) -> Work:
    """Record a broadcast from a rank of the group, in place."""
    found = _node(records.broadcast, group, _plain(tensor), root=root)
    if group.rank() != root:
        _write(tensor, found)
    return done([tensor])


def reduce(tensor: Any, root: int, op: Any, group: ProcessGroup) -> Work:
    """Record the combination in one rank of the group; the other tensors stay."""
    found = combined_in(tensor, root, op, group)
    if group.rank() == root:
        _write(tensor, found)
    return done([tensor])


def combined_in(tensor: Any, root: int, op: Any, group: ProcessGroup) -> Any:
    """Return the combination of a tensor over the group in one rank, the own tensor elsewhere."""
    asked = mpi_operation("reduce", op, tensor.dtype)
    x = _plain(tensor, reduced_in(tensor.dtype))
    return _mean(_node(records.reduce, group, x, op=asked, root=root), op, group)


def all_gather(tensors: Sequence[Any], tensor: Any, group: ProcessGroup) -> Work:
    """Record that each process gets the tensors of all."""
    found = _node(records.all_gather, group, _plain(tensor), size=group.size())
    for k, one in enumerate(tensors):
        _write(one, found[k])
    return done(tensors)


def all_gather_single(output: Any, input: Any, group: ProcessGroup) -> Work:
    """Record that each process gets the tensors of all in one."""
    found = _node(records.all_gather, group, _plain(input), size=group.size())
    _write(output, found)
    return done([output])


def reduce_scatter(output: Any, stacked: Any, op: Any, group: ProcessGroup) -> Work:
    """Record the combination of each process's part. `stacked` has one part for each."""
    asked = mpi_operation("reduce_scatter", op, stacked.dtype)
    x = _plain(stacked, reduced_in(stacked.dtype))
    found = _node(records.reduce_scatter, group, x, op=asked)
    _write(output, _mean(found, op, group))
    return done([output])


def barrier(group: ProcessGroup) -> Work:
    """Record a barrier."""
    _node(records.barrier, group)
    return done([])


def _run(name: str, x: Any, words: Any, attributes: dict[str, Any]) -> Any:
    """Carry out a collective on an array: what interpreters of graphs call."""
    group = _known[int(words[layout.NUMBER])]
    library, handle = group.library, group.handle
    if name == "barrier":
        return _wait(group, name, 0, (handle, None), ())
    x = np.ascontiguousarray(x)
    size, root = group.size(), attributes.get("root", 0)
    word = int(words[layout.TYPES + layout.DTYPES.index(_name_of(x))])
    op = library.operation(attributes["op"]) if "op" in attributes else 0
    shape = {"all_gather": (size, *x.shape), "reduce_scatter": x.shape[1:]}.get(name, x.shape)
    out = np.empty(shape, x.dtype)
    if name in ("broadcast", "reduce"):
        out[...] = x
    a, b, count = x.ctypes.data, out.ctypes.data, x.size
    arguments: dict[str, tuple[int | None, ...]] = {
        "all_reduce": (a, b, count, word, op, handle, None),
        "broadcast": (b, count, word, root, handle, None),
        "all_gather": (a, count, word, b, count, word, handle, None),
        "reduce_scatter": (a, b, count // size, word, op, handle, None),
        "reduce": (library.in_place, b, count, word, op, root, handle, None)
        if root == group.rank() else (a, 0, count, word, op, root, handle, None),
    }  # fmt: skip
    _wait(group, name, count, arguments[name], (x, out))
    return out


def _name_of(array: np.ndarray) -> str:
    return str(array.dtype)


def _wait(group: ProcessGroup, name: str, count: int, arguments: Any, keep: Any) -> None:
    function = group.library.counting(_FUNCTIONS[name], count)
    group.ring.post(name, function, arguments, keep).wait(group.seconds)


records.install_runner(_run)
