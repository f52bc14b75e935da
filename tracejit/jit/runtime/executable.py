"""Runs a lowered program: natively, or its kernels as plain Python.

In: a Program; per shape, the values of its symbols; per call, addresses of the inputs. Out:
Storages of the outputs. Made by `placement` and `eager_kernels`, run by `compiled_graph`; `launch`
generates a shorter path for small programs. The path of one call is short on purpose: take a frame,
write addresses into its table, one native call, look at the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any

import numpy as np

from tracejit.config import flags
from tracejit.core.memory import Storage, get_num_threads
from tracejit.core.memory.allocator import bucket_for
from tracejit.core.ops.stacks import Run, may_hold_handles, stack_run
from tracejit.jit.ir.graph import Location
from tracejit.jit.lowering import extern
from tracejit.jit.lowering.library_collectives import FLOWN, LANDING, LATE_STATUS, WAITS
from tracejit.jit.lowering.loop_kernel import LOOP, TAKES_LONG
from tracejit.jit.lowering.program import Instruction, Kernel, Program
from tracejit.jit.runtime import (
    blas,
    cache,
    collective_waits,
    host,
    nan_check,
    region_loop,
    regions,
    runner,
)
from tracejit.jit.runtime.binding import BRIEF, Binding, Step, bind
from tracejit.jit.runtime.frames import KEPT_ARENA, Frame, new_frame
from tracejit.jit.runtime.runner import ROW, Runner


class ProgramError(RuntimeError):
    """Failed check in a kernel. The content of what the program writes is unspecified then.

    value        the operand's value that failed the check, e.g. an index
    instruction  the instruction that reported it; its `locations` are the user's lines
    takes_long   a `while` in a loop goes on; nothing is wrong, but nothing would notice Ctrl-C
    """

    def __init__(self, message: str, value: int, instruction: Instruction):
        where: tuple[Location, ...] = instruction.locations
        at = f" ({where[0]}: {where[0].text.strip()})" if where else ""
        super().__init__(f"{message}, got {value}{at}")
        self.message, self.value, self.instruction = message, value, instruction
        self.takes_long = message == TAKES_LONG


class Executable:
    """Program made ready to run.

    mode "compiled" compiles its kernels (or finds them in the cache) at once; where some are
    compiled for sizes, when these are bound. "python" runs the same texts as Python over NumPy
    arrays, from files, so that a debugger steps through them.

    Raises ValueError for another mode, `KernelError` where a kernel cannot be compiled.
    """

    def __init__(self, program: Program, mode: str = "compiled"):
        if mode not in ("compiled", "python"):
            raise ValueError(f"Executable: expected mode compiled or python, got {mode!r}")
        self.program, self.mode = program, mode
        instructions = list(program.all_instructions())
        kernels = {i.kernel.digest: i.kernel for i in instructions if i.kernel is not None}
        self.inputs = len(program.inputs)
        self.functions: Mapping[str, Any]
        if mode == "python":
            self.functions = {d: host.python_kernel(kernel) for d, kernel in kernels.items()}
        elif kernels:
            driver = [region_loop.kernel()] if any(i.regions for i in instructions) else []
            for_sizes = [i.kernel.digest for i in instructions
                         if i.kernel is not None and _depends_on_sizes(i)]
            for digest in for_sizes:
                kernels.pop(digest, None)  # a binding knows their text: `_build`
            self.waiting = [*kernels.values(), *runner.kernels(), *driver]
            self.functions = {}
            if not for_sizes:
                self.compiled(())
            self.runner = runner.runner()
        self.regions = {
            k: [Executable(region, mode) for region in i.regions]
            for k, i in enumerate(program.instructions)
            if i.regions
        }
        self.makes_stacks = any(regions.pushes(i) for i in instructions)
        # The buffers of collectives' tokens: in the order in which they begin, and are waited for.
        ordered = [i for i in program.instructions if i.host is not None and i.host.effect]
        self.begun = [i.operands[-1] for i in ordered]
        self.landed = [i.operands[-1] for i in program.instructions if i.extern == WAITS]
        self.waits = bool(self.landed)

    def compiled(self, bound: Iterable[Kernel]) -> Mapping[str, Any]:
        """Return the functions of all kernels by digest, with those of a binding. The first time,
        all are compiled together, on several threads."""
        new = [kernel for kernel in bound if kernel.digest not in self.functions]
        found = cache.functions_of([*new, *self.waiting])
        if self.waiting:
            self.functions, self.waiting = found, []
        return {**self.functions, **found}

    def bind(self, values: Mapping[str, int]) -> Binding:
        """Fix the sizes: a value for each symbol of the program's graph.

        Raises KeyError where a symbol has no value.
        """
        binding = bind(self.program, values)
        numbers = [b for b in self.program.outputs if self.program.buffers[b].role == "output"]
        first = self.inputs
        binding.native = _Native(self, binding)
        binding.native.returned = [
            binding.place[b] - first if b in numbers else -1 for b in self.program.outputs
        ]
        binding.native.controls = {
            k: regions.bind_regions(binding.steps[k], found, values)
            for k, found in self.regions.items()
            if binding.steps[k].instruction.kernel is None
        }
        if self.mode == "compiled":
            paused = [k for k, step in enumerate(binding.steps) if step.paused]
            binding.native.controls |= {k: self._conductor(binding, k) for k in paused}
        return binding

    def _conductor(self, binding: Binding, number: int) -> Any:
        """Return what runs a loop that is not one native call."""
        step = binding.steps[number]
        if step.apart is None:
            return regions.Paused(self, binding, number)
        if number not in self.regions:
            programs = step.apart.instruction.regions
            self.regions[number] = [Executable(region, self.mode) for region in programs]
        return regions.bind_regions(step.apart, self.regions[number], binding.values)

    def run(
        self, binding: Binding, input_pointers: Sequence[int], inputs: Sequence[Any] = ()
    ) -> list[Storage | None]:
        """Run once on inputs at these addresses.

        inputs  what has the memory there; kept where other processes may still read it

        Returns a fresh Storage for each output of the graph; None where the output is an input's
        own buffer. Raises ProgramError when a kernel reports a failed check. Any number of threads
        may run one binding at once.
        """
        native = binding.native
        try:
            frame = binding.frames.pop()
        except IndexError:
            frame = native.frame()
        outputs: list[Any] = [take(nbytes) for take, nbytes in native.outputs]
        try:
            native.pack(frame.table, 0, *input_pointers, *[storage._ptr for storage in outputs])
            if native.simple:
                native.call(frame.job)
                if frame.status[0]:
                    raise self.failure(frame, 0)
            elif self.makes_stacks:
                with stack_run() as stacks:
                    self._run_stretches(binding, frame, (outputs, inputs))
                    self._keep(stacks, binding, outputs)
            else:
                self._run_stretches(binding, frame, (outputs, inputs))
        finally:
            if not frame.lost:
                binding.frames.append(frame)
        if native.plain:
            return outputs
        return [outputs[k] if k >= 0 else None for k in native.returned]

    def _keep(self, stacks: Run, binding: Binding, outputs: Sequence[Storage]) -> None:
        """Keep the run's stacks as long as the outputs that may hold their handles."""
        for k, value in zip(binding.native.returned, self.program.graph.outputs):
            if k >= 0 and may_hold_handles(value.type):
                stacks.keep(outputs[k])

    def execute(self, binding: Binding, frame: Any) -> None:
        """Run once on the addresses in the frame's table. `regions` runs bodies so."""
        if binding.native.simple:
            binding.native.call(frame.job)
            if frame.status[0]:
                raise self.failure(frame, 0)
        else:
            self._run_stretches(binding, frame)

    def _run_stretches(
        self, binding: Binding, frame: Any, memory: Sequence[Sequence[Any]] = ()
    ) -> None:
        """Run the general case: large arenas, workers, host calls, kernels as Python.

        memory  outputs and inputs: what has the memory that the program reads or writes
        """
        native = binding.native
        threads = native.threads()
        frame.take_arena(binding, threads)
        frame.status[FLOWN] = 0
        try:
            if native.checked:
                nan_check.run(self, binding, frame)
                return
            if self.mode == "python":
                for number in range(len(binding.steps)):
                    self.run_one(binding, frame, number)
                return
            if threads > 1 and len(self.runner.workers) < threads - 1:
                self.runner.prepare(threads - 1)
            for number, (first, count) in enumerate(binding.stretches):
                if count == 0:
                    self._host_call(binding, frame, first)
                    continue
                native.call(frame.jobs[number])
                while frame.status[0]:
                    self._look(frame, first)
                    native.call(frame.jobs[number])
        except BaseException:
            if self.waits:
                aloft = self._aloft(binding, frame)
                frame.lost = bool(aloft)
                held = [getattr(x, "_storage", x) for part in memory for x in part]
                collective_waits.give_up(aloft, frame, frame.arena, held)
            raise
        finally:
            frame.give_arena()

    def _aloft(self, binding: Binding, frame: Any) -> list[int]:
        """Return the places of collectives that were begun and not waited for."""
        landed, begun = divmod(frame.status[FLOWN], LANDING)
        tokens = set(self.begun[:begun]) - set(self.landed[:landed])
        at = [frame.words[binding.place[token]] for token in tokens]
        return [place for place in (host.word_at(address) for address in at) if place]

    def _look(self, frame: Any, first: int) -> None:
        """Raise the error that the frame's status stands for, unless it says that a collective
        takes long: then wait for it."""
        number, place, row = frame.status[:3]
        instruction = self.program.instructions[first + row]
        if instruction.extern != WAITS or number != LATE_STATUS:
            raise self.failure(frame, first)
        frame.clear_status()
        collective_waits.wait(place)

    def run_one(self, binding: Binding, frame: Any, number: int) -> None:
        """Run one instruction on this thread, in either mode."""
        if binding.steps[number].instruction.kernel is None or number in binding.native.controls:
            self._host_call(binding, frame, number)
        elif self.mode == "compiled":
            frame.run_row(number)
            while frame.status[0]:
                self._look(frame, number)
                frame.run_row(number)
        else:
            status = host.run_python(self, binding, frame.addresses(), number)
            if status[0]:
                instruction = self.program.instructions[number]
                raise _error(instruction, int(status[0]), int(status[1]))

    def _host_call(self, binding: Binding, frame: Any, number: int) -> None:
        control = binding.native.controls.get(number)
        if control is not None:
            control.run(frame)
        else:
            host.call(self.program, binding, number, frame.addresses())

    def failure(self, frame: Any, first: int) -> ProgramError:
        """Return the error that the frame's status stands for, and clear the status."""
        number, value, row = frame.status[:3]
        frame.clear_status()
        return _error(self.program.instructions[first + row], number, value)


def _error(instruction: Instruction, number: int, value: int) -> ProgramError:
    """Return the error that a status stands for."""
    assert instruction.kernel is not None
    return ProgramError(instruction.kernel.messages[number - 1], value, instruction)


class _Native:
    """Parts of a binding that do not change from call to call: rows, operands, sizes."""

    returned: list[int]  # for each result the number of its output, or -1
    controls: dict[int, Any]  # instruction -> its runner, if it has regions

    def __init__(self, executable: Executable, binding: Binding):
        self.binding = binding
        self.addressed = executable.inputs + len(binding.output_bytes)
        # Looked up once: small calls spend their time in such look-ups.
        self.outputs = [(bucket_for(n).take, n) for n in binding.output_bytes]
        self.pack = Struct(f"={self.addressed}q").pack_into
        self.places = self.addressed + len(binding.temporary_offsets)
        ordered = [binding.place[b] - executable.inputs for b in executable.program.outputs]
        self.plain = ordered == list(range(len(binding.output_bytes)))
        self.compiled = executable.mode == "compiled"
        self.shared = binding.shared and self.compiled and runner.can_share()
        whole = len(binding.stretches) == 1 and binding.stretches[0][1] > 0
        self.scratch_stride = -(-binding.scratch_bytes // 128) * 128
        small = self.frame_bytes() <= KEPT_ARENA
        self.checked = flags.check_nans
        self.waits = executable.waits
        alone = not (self.waits or self.checked)
        self.simple = self.compiled and whole and small and alone
        calls_blas = any(map(_calls_blas, binding.steps))
        self.guard = blas.guard() if calls_blas and self.compiled else None
        if self.compiled and hasattr(executable, "runner"):
            self.runner: Runner = executable.runner
            self.call = self.runner.release if self.takes_long() else self.runner.hold
            self._build(executable, binding)

    def threads(self) -> int:
        """Return the number of threads that a run of it uses now."""
        return get_num_threads() if self.shared else 1

    def frame_bytes(self) -> int:
        """Return the bytes of temporaries, and of scratch for each thread."""
        return self.binding.arena_bytes + self.scratch_stride * self.threads()

    def takes_long(self) -> bool:
        """Return True if the call should release the interpreter's lock, which costs a
        microsecond."""
        if self.shared or self.waits or self.guard is not None:
            return True
        loops = (step for step in self.binding.steps if step.instruction.extern == LOOP)
        if any(step.total > BRIEF for step in loops):
            return True
        return sum(self.binding.buffer_bytes) > 1 << 17

    def _build(self, executable: Executable, binding: Binding) -> None:
        steps = binding.steps
        # Loops and products with a vector: their kernels depend on the sizes.
        functions = executable.compiled([s.kernel for s in steps if s.kernel and s.apart is None])
        sizes = [self._sizes(step) for step in steps]
        words = [w for step, numbers in zip(steps, sizes) for w in (*step.operands, *numbers)]
        self.words = np.array([*words, 0], np.int64)
        self.table = np.zeros((max(1, len(steps)), ROW), np.int64)
        at, tickets = int(self.words.ctypes.data), 0
        self.tickets = []
        for k, (step, numbers) in enumerate(zip(steps, sizes)):
            kernel = step.kernel if step.apart is None else None
            if kernel is None or step.paused or step.instruction.extern == WAITS:
                tickets = 0  # the next stretch is a job of its own
            chunks = -(-step.total // step.chunk) if step.shared and self.shared else 0
            sizes_at, shared = at + 8 * len(step.operands), int(chunks > 1)
            row = (at, sizes_at, step.total, step.chunk, shared, tickets)
            at += 8 * (len(step.operands) + len(numbers))
            tickets += chunks if chunks > 1 else 0
            address = functions[kernel.digest] if kernel is not None else 0
            self.table[k] = (address, *row, tickets)
            self.tickets.append(tickets)

    def _sizes(self, step: Any) -> tuple[int, ...]:
        if not _calls_blas(step):
            return step.sizes
        return (*step.sizes, blas.blas().gemm(extern.dtype_of(step.kernel)))

    def frame(self) -> Frame:
        return new_frame(self)


def _depends_on_sizes(instruction: Instruction) -> bool:
    """Return True if another kernel than the instruction's may run: a loop's for small sizes, or
    that of a product with a vector."""
    vector = instruction.extern == "matmul" and any(
        type(size) is int and size == 1 for size in instruction.sizes[2:4])  # m and n
    return vector or instruction.extern == LOOP


def _calls_blas(step: Step) -> bool:
    """Return True for a product that is not a vector kernel's."""
    return step.instruction.extern == "matmul" and step.kernel is step.instruction.kernel
