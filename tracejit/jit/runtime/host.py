"""Parts of a program that Python runs: host calls of an op's eager form, kernels as Python.

In: a bound program and the addresses of its buffers. Out: what they write there. Called by
`executable` between native stretches and for mode "python", and by `nan_check` and the CUDA files.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.core.eager.dispatch import by_library
from tracejit.jit.ir.graph import Value
from tracejit.jit.ir.interpret import evaluate_op
from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.lowering import extern
from tracejit.jit.lowering.abi import ELEMENTS
from tracejit.jit.lowering.library import libraries
from tracejit.jit.lowering.library_collectives import WAITS
from tracejit.jit.lowering.loop_kernel import LOOP
from tracejit.jit.lowering.program import Kernel, Program
from tracejit.jit.runtime import cache
from tracejit.jit.runtime.binding import Binding


def bytes_at(address: int, nbytes: int) -> np.ndarray:
    """Return the memory at an address as a uint8 array, which the caller must keep alive."""
    if not nbytes:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * nbytes).from_address(address)), np.uint8)


def word_at(address: int) -> int:
    """Return the 64-bit integer at an address."""
    return ctypes.c_int64.from_address(address).value


def python_kernel(kernel: Kernel) -> Callable[..., Any]:
    """Return the kernel's function as plain Python, from its file if there is one, for
    breakpoints."""
    path = cache.source_file(kernel)
    if kernel.name.startswith("matmul_") or not os.path.exists(path):
        from tracejit.jit.lowering.native import namespace_of

        return namespace_of(kernel, path)[kernel.name]
    namespace: dict[str, Any] = {"__name__": f"tracejit_kernel_{kernel.digest}", "__file__": path}
    exec(compile(kernel.source, path, "exec"), namespace)  # an import would keep bytecode
    return namespace[kernel.name]


def run_python(
    executable: Any, binding: Binding, addresses: Sequence[int], number: int
) -> np.ndarray:
    """Run one kernel as Python over NumPy arrays. Return the status that it left."""
    step = binding.steps[number]
    kernel = step.instruction.kernel
    assert kernel is not None
    buffers = _element_arrays(executable.program, binding, addresses)
    status = np.zeros(4, np.int64)
    with np.errstate(all="ignore"):
        if step.instruction.extern == "matmul":
            extern.python_matmul(np, [buffers[k] for k in step.operands[:3]], step.sizes)
            return status
        if step.instruction.extern == WAITS:
            return status  # what it waits for is done
        library = step.instruction.extern not in ("", LOOP)
        if library and libraries()[step.instruction.extern].compiled_only:
            call(executable.program, binding, number, addresses)
            return status
        function = executable.functions[kernel.digest]
        scratch = np.zeros(max(1, binding.scratch_bytes), np.uint8)
        for lo in range(0, step.total, step.chunk):
            hi = min(lo + step.chunk, step.total)
            function(buffers, step.operands, step.sizes, scratch, status, lo, hi)
    return status


def _element_arrays(
    program: Program, binding: Binding, addresses: Sequence[int]
) -> list[np.ndarray]:
    """Return one-dimensional arrays of the elements that kernels see, by place in the buffer
    table."""
    found: list[Any] = [None] * len(addresses)
    for number, buffer in enumerate(program.buffers):
        place = binding.place[number]
        memory = bytes_at(addresses[place], binding.buffer_bytes[number])
        found[place] = memory.view(ELEMENTS[buffer.dtype.name])
    return found


def call(program: Program, binding: Binding, number: int, addresses: Sequence[int]) -> None:
    """Run instruction `number`, a host call: the op's eager form over the buffers' memory."""
    instruction = program.instructions[number]
    node, values = instruction.host, binding.values
    count = len(instruction.operands) - instruction.outputs
    operands = iter(instruction.operands[:count])

    def array(buffer: int, value: Value) -> np.ndarray:
        memory = bytes_at(addresses[binding.place[buffer]], binding.buffer_bytes[buffer])
        shape = [evaluate(s, values) for s in value.shape]
        steps = program.graph.strides.get(value) if value.node is None else None
        item = value.dtype.itemsize
        strides = None if steps is None else [evaluate(s, values) * item for s in steps]
        return np.ndarray(shape, value.dtype.numpy, memory, 0, strides)

    arguments = [array(next(operands), x) if isinstance(x, Value) else bound(x, values)
                 for x in node.inputs]
    attributes = {name: bound(given, values) for name, given in node.attributes.items()}
    results = by_library(node.op, tuple(arguments), attributes) if node.op.by_kernel else None
    if results is None:
        with np.errstate(all="ignore"):
            results = evaluate_op(node.op, np, tuple(arguments), attributes)
    if not isinstance(results, tuple):
        results = (results,)
    for buffer, value, result in zip(instruction.operands[count:], node.outputs, results):
        np.copyto(array(buffer, value), result, casting="unsafe")


def bound(given: Any, values: Mapping[str, int]) -> Any:
    """Return an attribute with its sizes evaluated, in whatever containers they lie."""
    if isinstance(given, (tuple, list)) and not hasattr(given, "_fields"):
        return type(given)(bound(part, values) for part in given)
    if isinstance(given, dict):
        return {key: bound(part, values) for key, part in given.items()}
    return evaluate(given, values)
