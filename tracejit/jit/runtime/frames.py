"""Frames: memory that the calls of a binding write, kept for the next ones.

In: a binding made native. Out: frames, which hold the buffer table, the status, the jobs and the
arena of one call. Called by `executable`. All bindings together keep a few MB of frames between
calls. A frame whose program threads share knows their number, and is told when it changes.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np

from tracejit.core.memory import Storage, allocate, forks
from tracejit.core.memory import threads as thread_count
from tracejit.jit.lowering.library_collectives import FLOWN
from tracejit.jit.runtime import runner
from tracejit.jit.runtime.binding import Binding
from tracejit.jit.runtime.runner import JOB, STATUS_WORDS

KEPT_ARENA = 1 << 20  # larger arenas are taken from the pool for each call
_KEPT_TOTAL = 1 << 21  # bytes of arenas that frames of all bindings may keep between calls
_FRAME = 4096  # bytes of a frame without its arena, about
_keeping: deque[tuple[list[Any], int]] = deque()  # (frames of a binding, bytes of one frame)


def new_frame(native: Any) -> Frame:
    """Make a frame of a binding, and note that it may be kept."""
    nbytes = native.frame_bytes()
    if nbytes <= KEPT_ARENA:
        _keep(native.binding.frames, nbytes + _FRAME)
    return Frame(native)


def _keep(frames: list[Any], nbytes: int) -> None:
    """Note that a binding keeps one more frame. Past the limit, drop the frames that were kept
    first."""
    _keeping.append((frames, nbytes))
    total = _bytes_kept()
    while total > _KEPT_TOTAL and len(_keeping) > 1:
        try:
            oldest, freed = _keeping.popleft()
        except IndexError:
            return
        oldest.clear()
        total -= freed


def _bytes_kept() -> int:
    """Return the bytes of all frames that are kept."""
    while True:
        try:
            return sum(n for _, n in tuple(_keeping))
        except RuntimeError:  # another thread changed the deque during the copy
            continue


# Frames of programs whose calls do not ask for the number of threads.
_sharing: weakref.WeakSet[Frame] = weakref.WeakSet()


def _shared_frames() -> list[Frame]:
    while True:
        try:
            return list(_sharing)
        except RuntimeError:  # another thread made a frame meanwhile
            continue


def _change_threads() -> None:
    for frame in _shared_frames():
        frame.change_threads()


def _start_anew() -> None:
    """Have frames made anew in a forked child, which has no workers yet."""
    for frame in _shared_frames():
        idle = frame.native.binding.frames
        if frame in idle:
            idle.remove(frame)


thread_count.watches.append(_change_threads)
forks.in_child(_start_anew)


class Frame:
    """Memory that one call writes: the buffer table, the status, the jobs, the arena."""

    def __init__(self, native: Any):
        self.native = native
        binding = native.binding
        jobs = [(k, s) for k, s in enumerate(binding.stretches) if s[1]]
        words = native.places + STATUS_WORDS + JOB * max(1, len(jobs))
        self.lost = False  # other processes may still write its memory
        self._words: Any = np.zeros(words, np.int64)
        memory = memoryview(self._words.data)
        self.table = memory.cast("B")
        self.words = memory[: native.places]
        self.at = int(self._words.ctypes.data)
        self.walk: Any = None  # iterations of a loop's body: see `regions`
        self.status = memory[native.places : native.places + STATUS_WORDS]
        self.jobs: dict[int, int] = {}
        self._job_words = []
        start = native.places + STATUS_WORDS
        for number, (first, count) in jobs if native.compiled else []:
            job = self._words[start : start + JOB]
            job[runner.TABLE] = native.table[first:].ctypes.data
            job[runner.COUNT] = count
            job[runner.BUFFERS] = self._words.ctypes.data
            job[runner.STATUS] = self._words[native.places :].ctypes.data
            job[runner.SCRATCH_STRIDE] = native.scratch_stride
            job[runner.POOL] = native.runner.pool if native.shared else 0
            job[runner.WAKES] = int(binding.wakes)
            job[runner.TICKETS] = native.tickets[first + count - 1]
            job[runner.BLAS] = native.guard.ctypes.data if native.guard is not None else 0
            self.jobs[number] = int(job.ctypes.data)
            self._job_words.append(job)
            start += JOB
        self.job = next(iter(self.jobs.values()), 0)
        self.calls: dict[Any, Any] = {}  # `PostRun` -> native functions of this frame (`launch`)
        self.arena: Storage | None = None
        self.scratch = 0  # address
        self._arena_ptr, self._threads = -1, 0
        self._kept = native.frame_bytes() <= KEPT_ARENA
        if native.simple:
            self._share(native.threads())
            if native.shared:
                _sharing.add(self)

    def _share(self, threads: int) -> None:
        if threads > 1:
            self.native.runner.prepare(threads - 1)
        self.take_arena(self.native.binding, threads)

    def change_threads(self) -> None:
        """Use as many threads as are allowed now, fewer where it runs in another thread."""
        threads, idle = self.native.threads(), self.native.binding.frames
        try:
            idle.remove(self)
        except ValueError:
            for job in self._job_words:
                job[runner.HELPERS] = min(threads, self._threads) - 1
            return
        self._share(threads)
        idle.append(self)

    def take_arena(self, binding: Binding, threads: int) -> None:
        """Take memory for temporaries, and scratch for each thread. What did not change stays."""
        if self._threads != threads:
            self._threads, self.arena = threads, None
            for job in self._job_words:
                job[runner.HELPERS] = threads - 1
        if self.arena is not None:
            return
        self.arena = arena = allocate(binding.arena_bytes + self.native.scratch_stride * threads)
        if arena.ptr != self._arena_ptr:
            self._arena_ptr = arena.ptr
            offsets = np.array(binding.temporary_offsets, np.int64) + arena.ptr
            self._words[self.native.addressed : self.native.places] = offsets
            self.scratch = arena.ptr + binding.arena_bytes
            for job in self._job_words:
                job[runner.SCRATCH] = self.scratch

    def give_arena(self) -> None:
        if not self._kept:
            self.arena = None

    def run_row(self, row: int) -> None:
        """Run one row of the instruction table as a job of its own, on this thread."""
        job = self._job_words[0]
        names = [runner.TABLE, runner.COUNT, runner.POOL]
        before = job[names].tolist()
        job[names] = (self.native.table[row:].ctypes.data, 1, 0)
        self.native.call(int(job.ctypes.data))
        job[names] = before

    def clear_status(self) -> None:
        for k in range(FLOWN):
            self.status[k] = 0

    def addresses(self) -> list[int]:
        """Return the content of the buffer table."""
        return self._words[: self.native.places].tolist()
