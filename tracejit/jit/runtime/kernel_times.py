"""Times of a program's kernels and calls, one by one, on copies of the inputs.

In: a compiled graph, its binding and the inputs of a call. Out: seconds for each instruction; what
the program writes goes to the copies. Called by `CompiledFunction.profile`.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.stacks import stack_run
from tracejit.jit.runtime import host
from tracejit.jit.runtime.compiled_graph import BoundGraph, CompiledGraph, address_of
from tracejit.jit.runtime.executable import Executable

RUNS = 5  # of which the fastest counts


def kernel_times(segment: CompiledGraph, bound: BoundGraph, inputs: Sequence[Any]) -> list[float]:
    """Return seconds for each instruction of the program, in order: the least of some runs.

    Each runs on this thread alone. Raises NotImplementedError for a program that is interpreted or
    runs on another device.
    """
    executable = getattr(segment, "executable", None)
    if not isinstance(executable, Executable) or executable.mode != "compiled":
        raise NotImplementedError(
            "profile: only kernels that are compiled for the CPU are timed; use mode='compiled', "
            "and tensors on the CPU")
    kept: list[Any] = []
    pointers = _copied(inputs, kept)
    least = [float("inf")] * len(bound.binding.steps)
    with stack_run():
        for _ in range(RUNS):
            least = [*map(min, least, _run(executable, bound.binding, pointers))]
    return least


def _run(executable: Executable, binding: Any, pointers: Sequence[int]) -> list[float]:
    native = binding.native
    frame = native.frame()
    outputs: list[Any] = [take(nbytes) for take, nbytes in native.outputs]
    native.pack(frame.table, 0, *pointers, *[storage._ptr for storage in outputs])
    frame.take_arena(binding, 1)
    taken = []
    try:
        for number in range(len(binding.steps)):
            started = perf_counter()
            executable.run_one(binding, frame, number)
            taken.append(perf_counter() - started)
    finally:
        frame.give_arena()
    return taken


def _copied(inputs: Sequence[Any], kept: list[Any]) -> list[int]:
    """Return addresses of copies of the inputs; memory that two share, their copies share."""
    memory: dict[int, np.ndarray] = {}
    found = []
    for x in inputs:
        if not isinstance(x, Tensor) or not x._storage.nbytes:
            found.append(address_of(x, kept))
            continue
        storage: Any = x._storage
        if id(storage) not in memory:
            memory[id(storage)] = host.bytes_at(storage.ptr, storage.nbytes).copy()
        found.append(memory[id(storage)].ctypes.data + x._offset * x._dtype.itemsize)
    kept.append(memory)
    return found
