"""Choice of the executable that runs a program, by the device of its values.

In: a Program and a mode. Out: an `Executable`, or its counterpart for a CUDA device, which is
imported only then. Called by `compiled_graph`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.memory import device
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.lowering.program import Program


def executable_for(program: Program, mode: str = "compiled") -> Any:
    """Return the executable of a program, for the device of its values and this mode."""
    where = device_of(program.graph)
    if where is None:
        from tracejit.jit.runtime.executable import Executable

        return Executable(program, mode)
    if mode == "compiled":
        from tracejit.jit.runtime.cuda_executable import CudaExecutable

        return CudaExecutable(program, where)
    from tracejit.jit.runtime.cuda_staged import StagedExecutable

    return StagedExecutable(program, where, mode)


def device_of(graph: Graph) -> device | None:
    """Return the CUDA device a graph computes on; None where all of it is on the CPU.

    Raises RuntimeError where its values are on several CUDA devices.
    """
    values = [*graph.inputs, *(v for node in graph.nodes for v in node.outputs)]
    found = {v.device for v in values if on_device(v)}
    if len(found) > 1:
        names = ", ".join(sorted(map(str, found)))
        raise RuntimeError(f"a program runs on one CUDA device, this one has values on {names}")
    return found.pop() if found else None


def on_device(value: Value) -> bool:
    """Return True if a value lives on a CUDA device."""
    return value.device is not None and value.device.type == "cuda"
