"""Runs nodes with regions: branches and loops whose bodies are programs of their own.

In: a bound instruction and the executables of its regions; per call, the buffer table of the
program around it. Out: what the regions write there. Called by `executable` in place of a host
call.

A body runs on addresses that are put into its own table, so an iteration copies nothing and makes
no array. A carried value takes turns between two pieces of memory. A stacked item is written at its
place. A pushed item goes to memory that grows by chunks.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.core.memory import Storage, allocate
from tracejit.core.ops.stacks import new_stack, stack_of
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.lowering.program import Instruction
from tracejit.jit.runtime import region_loop
from tracejit.jit.runtime.binding import BRIEF, Step
from tracejit.jit.runtime.region_loop import STATE

_PATIENCE = 1 << 12  # iterations until Python gets a chance to handle signals such as Ctrl-C
_ALIGNMENT = 64
_FIRST_CHUNK = 16  # items; each chunk has twice as many as the one before
_LARGEST_CHUNK = 1 << 26  # bytes that a chunk has at most


def bind_regions(step: Step, executables: Sequence[Any], values: Mapping[str, int]) -> Any:
    """Return the runner of an instruction with regions at these sizes: `run(words)`, words of its
    frame."""
    node: Node = step.instruction.host
    return _KINDS[node.op.name](step, [_Region(e, values) for e in executables], values)


def pushes(instruction: Instruction) -> bool:
    """Return True if an instruction is a `while_loop` that leaves a stack."""
    node = instruction.host
    if node is None or not instruction.regions or node.op.name != "while_loop":
        return False
    return len(node.outputs) > node.attributes["carried"] + 1


class _Region:
    """Program of a region at given sizes, and the places of its outputs in its buffer table."""

    def __init__(self, executable: Any, values: Mapping[str, int]):
        self.executable = executable
        self.binding = executable.bind(values)
        self.native = self.binding.native
        self.outputs = [executable.inputs + k for k in self.native.returned]
        graph: Graph = executable.program.graph
        self.input_types = [_sized(v, values) for v in graph.inputs]
        self.output_types = [_sized(v, values) for v in graph.outputs]

    def take_frame(self) -> Any:
        """Return a frame that no other call uses until it is given back."""
        try:
            return self.binding.frames.pop()
        except IndexError:
            return self.native.frame()

    def give_frame(self, frame: Any) -> None:
        self.binding.frames.append(frame)


class _Sized(NamedTuple):
    """Type of an input or output of a region, sizes evaluated."""

    dtype: Any
    shape: tuple[int, ...]
    nbytes: int


def _sized(value: Value, values: Mapping[str, int]) -> _Sized:
    shape = tuple(evaluate(size, values) for size in value.shape)
    return _Sized(value.dtype.numpy, shape, math.prod(shape) * value.dtype.itemsize)


class _Control:
    """Instruction with regions; subclasses run it on addresses of its operands and outputs."""

    def __init__(self, step: Step, regions: Sequence[_Region], values: Mapping[str, int]):
        count = len(step.operands) - step.instruction.outputs
        self.operands, self.outputs = step.operands[:count], step.operands[count:]
        self.regions = regions

    def run(self, frame: Any) -> None:
        """Run on the addresses in a frame's table."""
        words = frame.words
        self.call([words[k] for k in self.operands], [words[k] for k in self.outputs])

    def call(self, operands: list[int], outputs: list[int]) -> None:
        raise NotImplementedError


class _Cond(_Control):
    def call(self, operands: list[int], outputs: list[int]) -> None:
        region = self.regions[0 if _truth(operands[0]) else 1]
        frame = region.take_frame()
        words = frame.words
        for k, address in enumerate(operands[1:]):
            words[k] = address
        for place, address in zip(region.outputs, outputs):
            words[place] = address
        try:
            region.executable.execute(region.binding, frame)
        finally:
            region.give_frame(frame)


def _truth(address: int) -> bool:
    return ctypes.c_bool.from_address(address).value


def _number(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)


class Paused:
    """Loop of one kernel that stops after some iterations, for Python to handle signals."""

    def __init__(self, executable: Any, binding: Any, number: int):
        step, row = binding.steps[number], binding.native.table[number]
        function, self.operands, self.sizes = (int(word) for word in row[:3])
        self.call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(function)
        self.executable, self.number, self.total = executable, number, step.total
        # A `while` leaves its decision behind its outputs: the count, and what it carries.
        count = len(step.operands) - step.instruction.outputs
        ends = step.instruction.host.op.name == "while_loop"
        carried = step.instruction.host.attributes.get("carried", 0)
        self.decision = step.operands[count + 1 + carried] if ends else -1

    def run(self, frame: Any) -> None:
        """Run on the addresses in a frame's table."""
        words, status, done = frame.words, frame.status, 0
        status_at = frame.at + 8 * frame.native.places
        while done < self.total:
            end = min(done + _PATIENCE, self.total)
            self.call(frame.at, self.operands, self.sizes, frame.scratch, status_at, done, end)
            if status[0]:
                raise self.executable.failure(frame, self.number)
            done = end
            if self.decision >= 0 and not _truth(words[self.decision]):
                break


# -- iterations -----------------------------------------------------------------------------------


class _Walk:
    """Iterations of a body in one frame. This class runs any body.

    Between two runs its table changes as `SWAPS` and `MOVES` of the native driver say.
    """

    def __init__(self, loop: _Loop, frame: Any):
        self.loop, self.frame, self.words = loop, frame, frame.words
        swaps, moves = len(loop.swaps), len(loop.moves)
        self._memory = np.zeros(STATE + 3 * swaps + 2 * moves, np.int64)
        self.state = state = memoryview(self._memory.data)
        self.at = int(self._memory.ctypes.data)
        self.swaps, self.moves = state[STATE : STATE + 3 * swaps], state[STATE + 3 * swaps :]
        for k, places in enumerate(loop.swaps):
            self.swaps[3 * k], self.swaps[3 * k + 1] = places
        for k, (place, nbytes) in enumerate(loop.moves):
            self.moves[2 * k], self.moves[2 * k + 1] = place, nbytes
        state[region_loop.INDEX_STEP] = loop.step
        self.index_at, self.go_at = self.at, self.at + 8 * region_loop.GO

    def start(self, index: int) -> None:
        """Set the number of the first iteration, and that the body goes on. A `while` body
        overwrites that."""
        self.state[region_loop.INDEX] = index
        self.state[region_loop.GO] = 1

    @property
    def ended(self) -> bool:
        """Return True if the body's last decision was to stop."""
        return not self.state[region_loop.GO]

    def run(self, limit: int) -> int:
        """Run at most `limit` iterations. Return how many ran until the body decided to stop."""
        region, words, state = self.loop.region, self.words, self.state
        execute, binding, frame = region.executable.execute, region.binding, self.frame
        for done in range(1, limit + 1):
            execute(binding, frame)
            self._between(words)
            state[region_loop.INDEX] += self.loop.step
            if self.ended:
                return done
        return limit

    def _between(self, words: Any) -> None:
        swaps = self.swaps
        for k in range(0, len(swaps), 3):
            written = words[swaps[k + 1]]
            words[swaps[k]], words[swaps[k + 1]] = written, swaps[k + 2] - written
        for place, nbytes in self.loop.moves:
            words[place] += nbytes


class _NativeWalk(_Walk):
    """Iterations without Python between them, for a body that is one native job."""

    def __init__(self, loop: _Loop, frame: Any):
        super().__init__(loop, frame)
        self.hold, self.release, run = region_loop.entry_points()
        native, state = loop.region.native, self.state
        state[region_loop.RUN], state[region_loop.JOB] = run, frame.job
        state[region_loop.TABLE] = frame.at
        state[region_loop.STATUS] = frame.at + 8 * native.places
        state[region_loop.SWAPS] = self.at + 8 * STATE
        state[region_loop.SWAP_COUNT] = len(loop.swaps)
        state[region_loop.MOVES] = self.at + 8 * (STATE + 3 * len(loop.swaps))
        state[region_loop.MOVE_COUNT] = len(loop.moves)
        self.takes_long = native.takes_long()

    def run(self, limit: int) -> int:
        call = self.release if self.takes_long or limit > BRIEF else self.hold
        state, frame, total = self.state, self.frame, 0
        while total < limit:
            state[region_loop.LIMIT] = min(limit - total, _PATIENCE)
            call(self.at)
            if frame.status[0]:
                raise self.loop.region.executable.failure(frame, 0)
            total += state[region_loop.DONE]
            if self.ended:
                break
        return total


class _Loop(_Control):
    """Base of loops. Input `read + k` of the body is what it wrote before to output `written + k`.

    Two pieces of memory take turns, the output of the loop and a spare one.

    step  the difference between the numbers of an iteration and the next
    """

    read = written = step = 0

    def __init__(self, step: Step, regions: Sequence[_Region], values: Mapping[str, int]):
        super().__init__(step, regions, values)
        (self.region,) = regions
        self.node: Node = step.instruction.host
        self.carried: int = self.node.attributes["carried"]
        self.nbytes = [t.nbytes for t in self._carried_types()]
        padded = [-(-n // _ALIGNMENT) * _ALIGNMENT for n in self.nbytes]
        self.offsets = [sum(padded[:k]) for k in range(len(padded))]
        self.spare_bytes = sum(padded)
        outputs = self.region.outputs
        self.swaps = [(self.read + k, outputs[self.written + k]) for k in range(self.carried)]
        self.moves: list[tuple[int, int]] = []
        native = self.region.native
        alone = native.compiled and native.simple and not native.shared
        self.walk_kind = _NativeWalk if alone else _Walk

    def _carried_types(self) -> list[_Sized]:
        return self.region.output_types[self.written : self.written + self.carried]

    def call(self, operands: list[int], outputs: list[int]) -> None:
        frame = self.region.take_frame()
        walk = frame.walk
        if walk is None:
            walk = frame.walk = self.walk_kind(self, frame)
        # The spare memory goes back to the pool when this call returns.
        spare = allocate(self.spare_bytes) if self.spare_bytes else None
        try:
            self.iterate(walk, operands, outputs, spare.ptr if spare is not None else 0)
        finally:
            self.region.give_frame(frame)

    def iterate(self, walk: _Walk, operands: list[int], outputs: list[int], spare: int) -> None:
        raise NotImplementedError

    def carry(self, walk: _Walk, starts: Sequence[int], ends: Sequence[int], spare: int,
              count: int) -> None:
        """Start with what lies at `starts`. After `count` iterations the last values are at `ends`.

        A `while` does not know its count, and calls `settle` at the end.
        """
        words, swaps = walk.words, walk.swaps
        for k, (read, written) in enumerate(self.swaps):
            words[read], other = starts[k], spare + self.offsets[k]
            words[written] = ends[k] if count % 2 else other
            swaps[3 * k + 2] = ends[k] + other

    def settle(self, walk: _Walk, ends: Sequence[int]) -> None:
        """Copy the carried values to `ends` where the last ones lie in the spare memory."""
        for (read, _), end, nbytes in zip(self.swaps, ends, self.nbytes):
            if walk.words[read] != end:
                ctypes.memmove(end, walk.words[read], nbytes)


class _For(_Loop):
    """Loop by count. Body: index, carried, items, captured -> carried, stacked."""

    read = 1

    def __init__(self, step: Step, regions: Sequence[_Region], values: Mapping[str, int]):
        super().__init__(step, regions, values)
        given, region = self.node.attributes, self.region
        self.trip_count = evaluate(given["trip_count"], values)
        self.start, self.step = (self.trip_count - 1, -1) if given["reverse"] else (0, 1)
        items = range(1 + self.carried, 1 + self.carried + given["scanned"])
        # (place in the body's table, bytes of an item)
        self.scanned = [(k, region.input_types[k].nbytes) for k in items]
        self.stacked = [(region.outputs[k], region.output_types[k].nbytes)
                        for k in range(self.carried, len(region.outputs))]
        self.moves = [(k, self.step * n) for k, n in (*self.scanned, *self.stacked)]

    def iterate(self, walk: _Walk, operands: list[int], outputs: list[int], spare: int) -> None:
        carried, words, start = self.carried, walk.words, self.start
        words[0] = walk.index_at
        series = operands[carried : carried + len(self.scanned)]
        for (place, nbytes), base in zip((*self.scanned, *self.stacked),
                                         (*series, *outputs[carried:])):
            words[place] = base + start * nbytes
        for k in range(carried + len(self.scanned), len(operands)):
            words[k + 1] = operands[k]
        self.carry(walk, operands, outputs, spare, self.trip_count)
        walk.start(start)
        walk.run(self.trip_count)
        self.settle(walk, outputs)


class _While(_Loop):
    """Loop by a decision. Body: carried, captured -> decision, carried, pushed."""

    written = 1

    def __init__(self, step: Step, regions: Sequence[_Region], values: Mapping[str, int]):
        super().__init__(step, regions, values)
        self.pushed = self.region.output_types[self.carried + 1 :]
        self.places = self.region.outputs[self.carried + 1 :]
        self.moves = [(place, kind.nbytes) for place, kind in zip(self.places, self.pushed)]

    def iterate(self, walk: _Walk, operands: list[int], outputs: list[int], spare: int) -> None:
        words, ends = walk.words, outputs[1:]
        for k in range(self.carried, len(operands) - 1):
            words[k] = operands[k + 1]
        words[self.region.outputs[0]] = walk.go_at
        self.carry(walk, operands[1:], ends, spare, 1)
        walk.start(0)
        going = _truth(operands[0])
        count = self._pushing(walk, going, ends) if self.pushed else self._plain(walk, going)
        _number(outputs[0]).value = count
        self.settle(walk, ends)

    def _plain(self, walk: _Walk, going: bool) -> int:
        count = 0
        while going:
            count += walk.run(_PATIENCE)
            going = not walk.ended
        return count

    def _pushing(self, walk: _Walk, going: bool, ends: Sequence[int]) -> int:
        stack = Pushed(self.pushed)
        while going:
            room = stack.more()
            for place, address in zip(self.places, stack.addresses(-1, 0)):
                walk.words[place] = address
            stack.chunks[-1].count = walk.run(room)
            going = not walk.ended
        _number(ends[self.carried]).value = new_stack(stack)
        return len(stack)


class _Unwind(_Loop):
    """Loop over the items that a `while` pushed, last first. Body: carried, popped, captured ->
    carried."""

    def __init__(self, step: Step, regions: Sequence[_Region], values: Mapping[str, int]):
        super().__init__(step, regions, values)
        captured = len(self.operands) - 2 - self.carried
        popped = self.region.input_types[self.carried : len(self.region.input_types) - captured]
        self.moves = [(self.carried + k, -t.nbytes) for k, t in enumerate(popped)]

    def iterate(self, walk: _Walk, operands: list[int], outputs: list[int], spare: int) -> None:
        words, behind = walk.words, self.carried + len(self.moves)
        for k in range(self.carried + 2, len(operands)):
            words[behind + k - self.carried - 2] = operands[k]
        count = _number(operands[0]).value
        self.carry(walk, operands[2:], outputs, spare, count)
        walk.start(0)
        if count:
            self._pop(walk, stack_of(_number(operands[1]).value), count)
        self.settle(walk, outputs)

    def _pop(self, walk: _Walk, stack: Sequence[tuple], count: int) -> None:
        if not isinstance(stack, Pushed):  # an interpreter made it
            for k in reversed(range(count)):
                arrays = [np.ascontiguousarray(x) for x in stack[k]]
                self._popped(walk, [x.ctypes.data for x in arrays])
                walk.run(1)
            return
        for number in reversed(range(len(stack.chunks))):
            there = stack.chunks[number].count
            self._popped(walk, stack.addresses(number, there - 1))
            walk.run(there)

    def _popped(self, walk: _Walk, addresses: Sequence[int]) -> None:
        for (place, _), address in zip(self.moves, addresses):
            walk.words[place] = address


class Pushed(Sequence):
    """Stack whose items lie in memory that grows by chunks: item k is a tuple of arrays."""

    def __init__(self, types: Sequence[_Sized]):
        self.types = types
        self.item_bytes = max(1, sum(t.nbytes for t in types))
        self.chunks: list[_Chunk] = []

    def more(self) -> int:
        """Open a new chunk and return how many items it has room for."""
        wanted = self.chunks[-1].room * 2 if self.chunks else _FIRST_CHUNK
        room = max(1, min(wanted, _LARGEST_CHUNK // self.item_bytes))
        self.chunks.append(_Chunk(self.types, room))
        return room

    def addresses(self, number: int, item: int) -> list[int]:
        """Return the addresses of the parts of item `item` in chunk `number`."""
        chunk = self.chunks[number]
        base = chunk.storage.ptr
        return [base + at + item * t.nbytes for at, t in zip(chunk.offsets, self.types)]

    def __len__(self) -> int:
        return sum(chunk.count for chunk in self.chunks)

    def __getitem__(self, k: Any) -> Any:
        for chunk in self.chunks:
            if 0 <= k < chunk.count:
                return tuple(
                    np.ndarray(t.shape, t.dtype, chunk.storage.block, at + k * t.nbytes)
                    for at, t in zip(chunk.offsets, self.types))
            k -= chunk.count
        raise IndexError("a stack has no such item")


class _Chunk:
    """Room for some items. The parts of one kind lie one after the other."""

    __slots__ = ("storage", "offsets", "room", "count")

    def __init__(self, types: Sequence[_Sized], room: int):
        self.room, self.count, self.offsets = room, 0, []
        end = 0
        for t in types:
            self.offsets.append(end)
            end += -(-t.nbytes * room // _ALIGNMENT) * _ALIGNMENT
        self.storage: Storage = allocate(end)


_KINDS: dict[str, type[_Control]] = {
    "cond": _Cond, "for_loop": _For, "while_loop": _While, "unwind_loop": _Unwind,
}
