"""Runs a lowered program on a CUDA device: the same instructions, launched one after the other.

In: a Program; per shape, the values of its symbols; per call, addresses of the inputs. Out:
Storages of the outputs. The interface is that of `executable.Executable`; `placement` chooses
between the two.

Buffers, tables and temporaries lie on the device. Inputs that live on the CPU (numbers, the
generator's state) go up with the call's table in one copy. They come back where the program wrote
them. The call waits for the device only if the program may fail, has results on the CPU, or wrote
to inputs there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.core.memory import CPU, Storage, allocate, array_module, device
from tracejit.core.ops.stacks import may_hold_handles, stack_run
from tracejit.jit.ir.graph import Value
from tracejit.jit.ir.interpret import interpreted_regions, run_arrays
from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.ir.verify import GraphError
from tracejit.jit.lowering.extern import dtype_of
from tracejit.jit.lowering.program import Instruction, Program
from tracejit.jit.runtime import cuda_kernels, cuda_products
from tracejit.jit.runtime.binding import Binding, Step, bind
from tracejit.jit.runtime.cuda_kernels import Grid
from tracejit.jit.runtime.executable import ProgramError
from tracejit.jit.runtime.host import _element_arrays, bound, bytes_at
from tracejit.jit.runtime.placement import on_device

_ALIGNMENT = 256


def _written(instruction: Instruction) -> tuple[int, ...]:
    """Return the numbers of the buffers an instruction writes."""
    return instruction.operands[len(instruction.operands) - instruction.outputs :]


class CudaExecutable:
    """Program on a CUDA device; its kernels are compiled, or found in the cache, at once.

    Raises `KernelError` where a kernel has no CUDA form, `DeviceUnavailable` without a GPU.
    """

    mode = "compiled"

    def __init__(self, program: Program, where: device):
        self.program, self.device = program, where
        kernels = [
            i.kernel for i in program.instructions if i.kernel is not None and not i.extern
        ]  # fmt: skip
        self.cupy = array_module(where)
        self.functions = cuda_kernels.functions_of(kernels, where)
        self.inputs = len(program.inputs)

    def bind(self, values: Mapping[str, int]) -> Binding:
        """Fix the sizes: a value for each symbol of the program's graph.

        Raises KeyError where a symbol has no value.
        """
        binding = bind(self.program, values)
        with self.cupy.cuda.Device(self.device.index or 0):
            binding.native = _Plan(self, binding)
        return binding

    def run(
        self, binding: Binding, input_pointers: Sequence[int], inputs: Sequence[Any] = ()
    ) -> list[Storage | None]:
        """Run once on inputs at these addresses, on the current stream.

        Returns a fresh Storage for each output of the graph; None where the output is an input's
        own buffer. Raises ProgramError when a kernel reports a failed check.
        """
        with self.cupy.cuda.Device(self.device.index or 0), stack_run() as stacks:
            call = _Call(self, binding, input_pointers)
            for number, step in enumerate(binding.steps):
                call.step(number, step)
            found = call.results()
            for storage, value in zip(found, self.program.graph.outputs):
                if storage is not None and may_hold_handles(value.type):
                    stacks.keep(storage)
            return found


class _Plan:
    """Parts of a binding that do not change from call to call."""

    def __init__(self, executable: CudaExecutable, binding: Binding):
        program, place = executable.program, binding.place
        buffers = program.buffers
        self.first = executable.inputs
        numbers = sorted(range(len(place)), key=place.__getitem__)
        count = self.first + len(binding.output_bytes)
        self.outputs = numbers[self.first : count]
        self.output_places = [
            executable.device if on_device(program.graph.outputs[buffers[b].index]) else CPU
            for b in self.outputs
        ]  # fmt: skip
        written = {b for i in program.instructions for b in _written(i)}
        self.host_inputs = [
            (k, binding.buffer_bytes[b], b in written)
            for k, b in enumerate(numbers[: self.first])
            if not on_device(program.graph.inputs[buffers[b].index])
        ]  # fmt: skip
        self.may_fail = any(i.kernel and i.kernel.messages for i in program.instructions)
        self._tables(executable, binding)
        self._frame(binding)

    def _tables(self, executable: CudaExecutable, binding: Binding) -> None:
        """Put operands and sizes of all instructions on the device, and choose the grids."""
        words: list[int] = []
        self.tables: list[tuple[int, int]] = []
        self.grids: list[Grid] = []
        self.strides: list[int] = []
        scratch = 0
        for step in binding.steps:
            at = len(words)
            words += [*step.operands, *step.sizes]
            self.tables.append((8 * at, 8 * (at + len(step.operands))))
            over, stride = Grid(1, 1, 1), 0
            kernel = step.instruction.kernel
            if kernel is not None and not step.instruction.extern:
                stride = -(-kernel.scratch_bytes // 16) * 16
                kind = executable.functions[kernel.digest].kind
                over = cuda_kernels.grid_of(kind, step.total, stride)
            self.grids.append(over)
            self.strides.append(stride)
            scratch = max(scratch, over.workers * stride)
        self.words = executable.cupy.asarray(np.array([*words, 0], np.int64))
        self.scratch_at = -(-binding.arena_bytes // _ALIGNMENT) * _ALIGNMENT
        self.memory_bytes = self.scratch_at + scratch
        inputs = {b for b, x in enumerate(executable.program.buffers) if x.role == "input"}
        self.guarded = [
            int(not inputs.isdisjoint(_written(i))) for i in executable.program.instructions
        ]

    def _frame(self, binding: Binding) -> None:
        """Lay out the words of one call: addresses, status words, inputs from the CPU."""
        self.places = len(binding.place)
        self.failed = self.places  # one word, then (number, value) of each instruction
        end = self.failed + 1 + 2 * len(binding.steps)
        self.cells = []
        for _, nbytes, _ in self.host_inputs:
            end += end % 2  # cells start at multiples of 16 bytes
            self.cells.append(end)
            end += -(-nbytes // 8)
        self.frame_words = end


class _Call:
    """Run of a program on inputs at given addresses."""

    def __init__(self, executable: CudaExecutable, binding: Binding, inputs: Sequence[int]):
        self.executable, self.binding = executable, binding
        self.plan: _Plan = binding.native
        self.cupy = executable.cupy
        self.inputs = inputs
        plan, where = self.plan, executable.device
        self.outputs = [allocate(nbytes, where) for nbytes in binding.output_bytes]
        self.memory = allocate(plan.memory_bytes, where)
        self.frame = self.cupy.empty(plan.frame_words, np.int64)
        self.base = int(self.frame.data.ptr)
        self.words = int(plan.words.data.ptr)
        self.addresses = self._addresses()
        self.frame.set(self._content())

    def _addresses(self) -> list[int]:
        plan, binding = self.plan, self.binding
        addresses = list(self.inputs)
        for (k, _, _), cell in zip(plan.host_inputs, plan.cells):
            addresses[k] = self.base + 8 * cell
        addresses += [storage.ptr for storage in self.outputs]
        return addresses + [self.memory.ptr + offset for offset in binding.temporary_offsets]

    def _content(self) -> np.ndarray:
        plan = self.plan
        content = np.zeros(plan.frame_words, np.int64)
        content[: plan.places] = self.addresses
        for (k, nbytes, _), cell in zip(plan.host_inputs, plan.cells):
            content[cell:].view(np.uint8)[:nbytes] = bytes_at(self.inputs[k], nbytes)
        return content

    # -- instructions ----------------------------------------------------------------------------
    def step(self, number: int, step: Step) -> None:
        """Put one instruction on the current stream."""
        if step.instruction.kernel is None:
            self._host_call(number)
        elif step.instruction.extern == "matmul":
            dtype = dtype_of(step.instruction.kernel)
            addresses = [self.addresses[place] for place in step.operands[:3]]
            cuda_products.matmul(self.cupy, dtype, addresses, step.sizes)
        elif step.total > 0:
            self._launch(number, step)

    def _launch(self, number: int, step: Step) -> None:
        plan = self.plan
        kernel = step.instruction.kernel
        assert kernel is not None
        operands, sizes = plan.tables[number]
        failed = self.base + 8 * plan.failed
        arguments = (
            self.base, self.words + operands, self.words + sizes,
            self.memory.ptr + plan.scratch_at if plan.strides[number] else 0, failed,
            failed + 8 + 16 * number, step.total, plan.strides[number], plan.guarded[number],
        )  # fmt: skip
        function = self.executable.functions[kernel.digest]
        function.launch(plan.grids[number], arguments, step, self._arrays)

    def _arrays(self) -> list[Any]:
        return _element_arrays(self.executable.program, self.binding, self.addresses)

    def _host_call(self, number: int) -> None:
        """Run an op's eager form over CuPy arrays of the buffers."""
        instruction, values = self.executable.program.instructions[number], self.binding.values
        node = instruction.host
        operands = iter(instruction.operands)
        arguments = [self._array(next(operands), x) if isinstance(x, Value) else bound(x, values)
                     for x in node.inputs]
        if node.op.name == "to_device":
            results: Any = arguments[0]  # all values of a program are on its device
        else:
            attributes = {name: bound(given, values) for name, given in node.attributes.items()}
            results = self._evaluated(instruction, arguments, attributes)
        if not isinstance(results, tuple):
            results = (results,)
        for buffer, value, result in zip(operands, node.outputs, results):
            self._array(buffer, value)[...] = self.cupy.asarray(result)

    def _evaluated(self, instruction: Instruction, arguments: list, attributes: dict) -> Any:
        """Return the result of the op's eager form. Regions run op by op, not compiled."""
        node = instruction.host
        if not node.regions:
            return node.op.eager(self.cupy, *arguments, **attributes)
        attributes["regions"] = interpreted_regions(node, self.binding.values, run_arrays)
        try:
            return node.op.eager(self.cupy, *arguments, **attributes)
        except GraphError as error:
            raise ProgramError(str(error), 0, instruction) from error

    def _array(self, buffer: int, value: Value) -> Any:
        """Return the CuPy array of a value over its buffer's memory."""
        values, item = self.binding.values, value.dtype.itemsize
        shape = tuple(evaluate(s, values) for s in value.shape)
        steps = self.executable.program.graph.strides.get(value) if value.node is None else None
        strides = None if steps is None else tuple(evaluate(s, values) * item for s in steps)
        nbytes = max(1, self.binding.buffer_bytes[buffer])
        address = self.addresses[self.binding.place[buffer]]
        number = self.executable.device.index or 0
        memory = self.cupy.cuda.UnownedMemory(address, nbytes, self, number)
        pointer = self.cupy.cuda.MemoryPointer(memory, 0)
        return self.cupy.ndarray(shape, value.dtype.numpy, pointer, strides=strides)

    # -- results ---------------------------------------------------------------------------------
    def results(self) -> list[Storage | None]:
        """Check for failures and return the outputs. Inputs on the CPU get back what the program
        wrote."""
        plan = self.plan
        if plan.may_fail or any(written for _, _, written in plan.host_inputs):
            content = self.frame.get()
            self._raise_failure(content)
            self._write_back(content)
        stored = [self._stored(s, w) for s, w in zip(self.outputs, plan.output_places)]
        known = dict(zip(plan.outputs, stored))
        return [known.get(number) for number in self.executable.program.outputs]

    def _raise_failure(self, content: np.ndarray) -> None:
        failed = self.plan.failed
        if not content[failed]:
            return
        instructions = self.executable.program.instructions
        pairs = content[failed + 1 : failed + 1 + 2 * len(instructions)].reshape(-1, 2)
        number = int(np.flatnonzero(pairs[:, 0])[0])
        instruction, kernel = instructions[number], instructions[number].kernel
        assert kernel is not None
        message = kernel.messages[int(pairs[number, 0]) - 1]
        raise ProgramError(message, int(pairs[number, 1]), instruction)

    def _write_back(self, content: np.ndarray) -> None:
        for (k, nbytes, written), cell in zip(self.plan.host_inputs, self.plan.cells):
            if written:
                ctypes.memmove(self.inputs[k], content[cell:].ctypes.data, nbytes)

    def _stored(self, storage: Storage, where: device) -> Storage:
        if where.type != "cpu":
            return storage
        copied = allocate(storage.nbytes)
        copied.block[: storage.nbytes] = storage.block[: storage.nbytes].get()
        return copied
