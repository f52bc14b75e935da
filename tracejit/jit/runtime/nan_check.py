"""Stops a program at the first instruction that writes a NaN (`TRACEJIT_CHECK_NANS=1`).

In: a bound program and a frame whose addresses are written. Out: nothing, or NanFound with the
user's line. Called by `executable` instead of the native call: it runs instructions one by one, on
one thread, and looks at what each wrote. Much slower; for finding a NaN only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.jit.lowering.program import Instruction
from tracejit.jit.runtime import host
from tracejit.jit.runtime.binding import Binding


class NanFound(FloatingPointError):
    """Error of the instruction that wrote the first NaN; `instruction.locations` are the user's
    lines."""

    def __init__(self, instruction: Instruction, element: int, from_operands: bool):
        where = instruction.locations
        at = f" at {where[0]}: {where[0].text.strip()}" if where else ""
        ops = ", ".join(dict.fromkeys(instruction.ops)) or "a kernel"
        origin = "read a NaN and wrote one" if from_operands else "made the first NaN"
        super().__init__(f"{ops} {origin}, in element {element} of its result{at}")
        self.instruction, self.element, self.from_operands = instruction, element, from_operands


def run(executable: Any, binding: Binding, frame: Any) -> None:
    """Run every instruction and look at what it wrote. Raises NanFound, or what the run raises.

    What the caller's memory held before is put back then: a second run finds the same.
    """
    addresses = frame.addresses()
    written = {b for step in binding.steps for b in step.instruction.operands[
        len(step.instruction.operands) - step.instruction.outputs:]}
    memories = [_bytes(binding, addresses, b) for b in executable.program.inputs if b in written]
    before = [memory.copy() for memory in memories]
    try:
        _run(executable, binding, frame, addresses)
    except NanFound:
        for memory, content in zip(memories, before):
            memory[...] = content
        raise


def _run(executable: Any, binding: Binding, frame: Any, addresses: list[int]) -> None:
    for number, step in enumerate(binding.steps):
        instruction = step.instruction
        count = len(instruction.operands) - instruction.outputs
        arrays = [_floats(executable, binding, addresses, b) for b in instruction.operands]
        read = any(_first_nan(array) is not None for array in arrays[:count])
        executable.run_one(binding, frame, number)
        if instruction.host is not None and instruction.host.effect:
            continue  # other processes may write now: its result is there after the wait
        for array in arrays[count:]:
            element = _first_nan(array)
            if element is not None:
                raise NanFound(instruction, element, read)


def _floats(executable: Any, binding: Binding, addresses: list[int], number: int) -> np.ndarray:
    buffer = executable.program.buffers[number]
    if not buffer.dtype.is_floating_point:
        return np.empty(0)
    return _bytes(binding, addresses, number).view(buffer.dtype.numpy)


def _bytes(binding: Binding, addresses: list[int], number: int) -> np.ndarray:
    return host.bytes_at(addresses[binding.place[number]], binding.buffer_bytes[number])


def _first_nan(array: np.ndarray) -> int | None:
    found = np.isnan(array.astype(np.float64) if array.dtype.itemsize == 2 else array)
    return int(found.argmax()) if found.any() else None
