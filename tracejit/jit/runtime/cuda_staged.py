"""CUDA program's kernels as plain Python over host memory: mode "python" of programs on a device.

In: a Program and its device; pointers to inputs on that device. Out: Storages there. Called by
`placement`. Inputs are copied to the host, and results to the device. Between, the program runs as
on the CPU, so that breakpoints in its kernels work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.core.memory import Storage, allocate, array_module, device
from tracejit.core.ops.stacks import may_hold_handles, stack_run
from tracejit.jit.ir.graph import Value
from tracejit.jit.lowering.program import Program
from tracejit.jit.runtime.binding import Binding
from tracejit.jit.runtime.executable import Executable
from tracejit.jit.runtime.placement import on_device


class StagedExecutable:
    """Program on a device that runs on the host: inputs are copied there, and results back."""

    def __init__(self, program: Program, where: device, mode: str):
        self.program, self.device, self.mode = program, where, mode
        self.cupy = array_module(where)
        self.host = Executable(program, mode)
        self.functions = self.host.functions

    def bind(self, values: Mapping[str, int]) -> Binding:
        """Fix the sizes, as `Executable.bind`."""
        return self.host.bind(values)

    def run(
        self, binding: Binding, input_pointers: Sequence[int], inputs: Sequence[Any] = ()
    ) -> list[Storage | None]:
        """Run once on inputs at these addresses, as `CudaExecutable.run`."""
        staged: list[tuple[Any, Any]] = []
        pointers = list(input_pointers)
        with self.cupy.cuda.Device(self.device.index or 0), stack_run() as stacks:
            values = self.program.graph.inputs
            for k, (number, value) in enumerate(zip(self.program.inputs, values)):
                nbytes = binding.buffer_bytes[number]
                if on_device(value) and nbytes:
                    above = self._bytes(pointers[k], nbytes)
                    below = above.get()
                    staged.append((above, below))
                    pointers[k] = below.ctypes.data
            stored = self.host.run(binding, pointers)
            for above, below in staged:
                above.set(below)
            outputs = self.program.graph.outputs
            found = [self._raised(s, v) for s, v in zip(stored, outputs)]
            for storage, value in zip(found, outputs):
                if storage is not None and may_hold_handles(value.type):
                    stacks.keep(storage)
            return found

    def _bytes(self, address: int, nbytes: int) -> Any:
        memory = self.cupy.cuda.UnownedMemory(address, nbytes, self, self.device.index or 0)
        return self.cupy.ndarray((nbytes,), np.uint8, self.cupy.cuda.MemoryPointer(memory, 0))

    def _raised(self, storage: Storage | None, value: Value) -> Storage | None:
        if storage is None or not on_device(value):
            return storage
        above = allocate(storage.nbytes, self.device)
        above.block[: storage.nbytes].set(np.ascontiguousarray(storage.block[: storage.nbytes]))
        return above
