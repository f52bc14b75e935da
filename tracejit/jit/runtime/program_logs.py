"""Texts for `TRACEJIT_LOGS` about programs: sources of kernels, new bindings, the memory plan.

In: programs and bindings. Out: lines on stderr. Called by `compiled_graph`, which asks first if an
artifact is wanted: nothing is made of what is not.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracejit import logs
from tracejit.jit.ir.graph import Graph, size_names
from tracejit.jit.lowering.program import Buffer, Program
from tracejit.jit.runtime.binding import Binding


def emit_sources(program: Program) -> None:
    """Write the text of each kernel of a program, and its calls of libraries and of eager mode."""
    seen = set()
    for instruction in program.all_instructions():
        ops = ", ".join(dict.fromkeys(instruction.ops))
        if instruction.kernel is None:
            logs.emit("kernels", f"{program.graph.name}: a call without a kernel: "
                                 f"{instruction.extern or ops}")
        elif instruction.kernel.digest not in seen:
            seen.add(instruction.kernel.digest)
            logs.emit("kernels", f"{program.graph.name}: {instruction.kernel.name}: {ops}\n"
                                 f"{instruction.kernel.source}")


def emit_binding(graph: Graph, sizes: Mapping[str, int]) -> None:
    """Write that a program met new sizes: it is bound again, not compiled."""
    shown = ", ".join(f"{name} = {sizes[symbol]}" for symbol, name in size_names(graph).items())
    logs.emit("recompiles", f"{graph.name}: a new binding of the same program: {shown}")


def emit_memory(program: Program, binding: Binding) -> None:
    """Write the plan of a binding: each buffer, its bytes, and when it shares them."""
    numbers = _temporaries(program)
    apart = sum(binding.buffer_bytes[number] for number in numbers)
    lines = [
        f"{program.graph.name}: {len(numbers)} temporaries of {apart} bytes share "
        f"{binding.arena_bytes}; peak {binding.peak_bytes} bytes with the outputs"
    ]
    offset = dict(zip(numbers, binding.temporary_offsets))
    for number, buffer in enumerate(program.buffers):
        where = f" at {offset[number]}" if number in offset else ""
        used = [k for k, i in enumerate(program.instructions) if number in i.operands]
        when = f", kernels {used[0]} to {used[-1]}" if used else ", not used"
        made = _made(program, number)
        lines.append(f"  {_titled(program.graph, buffer)}{made}: {buffer.dtype.name}, "
                     f"{binding.buffer_bytes[number]} bytes{where}{when}")
    logs.emit("memory", "\n".join(lines))


def _temporaries(program: Program) -> list[int]:
    given = {*program.inputs}
    return [k for k, b in enumerate(program.buffers) if b.role != "output" and k not in given]


def _made(program: Program, number: int) -> str:
    """Return the ops and the line that write a buffer first; nothing for an input."""
    for instruction in program.instructions:
        if number in instruction.operands[len(instruction.operands) - instruction.outputs:]:
            lines = instruction.locations
            where = f" at {lines[-1].file.rpartition('/')[2]}:{lines[-1].line}" if lines else ""
            return f" of {', '.join(dict.fromkeys(instruction.ops))}{where}"
    return ""


def _titled(graph: Graph, buffer: Buffer) -> str:
    if buffer.role == "input":
        return f"input {buffer.index} {graph.inputs[buffer.index].source}".rstrip()
    return buffer.role if buffer.role == "temporary" else f"{buffer.role} {buffer.index}"
