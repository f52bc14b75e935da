"""Products with a vector in eager mode, by the kernels that programs use.

In: NumPy's matrices of float32 or float64, or stacks of them, of which one has one row or one
column. Out: their product; None where NumPy shall compute it, which gives the same bits. Called by
`core.ops.vector_products`; `tracejit/__init__.py` installs `product` there.

NumPy serves until it has spent the time of a compile, unless the kernel is there already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.memory import address, get_num_threads
from tracejit.jit.capture.unwatched import unwatched
from tracejit.jit.lowering.extern import MATMUL_SIZES
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.lowering.vector_products import Vectors, vectors
from tracejit.jit.runtime import cache, runner
from tracejit.jit.runtime.runner import (
    JOB,
    ROW,
    SHARED_PROGRAM,
    STATUS_WORDS,
    WAKING_PROGRAM,
)

OPERANDS = (0, 0, 2, 0, 1)  # of a kernel, as numbers of matrix, vector and result
_CALL, _TERMS = 100.0, 300.0  # microseconds of a call by NumPy; terms that it adds in one
_WORTH = 50_000.0  # microseconds that a compile takes
_HELD = 1 << 20  # bytes that are read so fast that the interpreter's lock may be held
_KEPT = 4096
_BEFORE = ROW + JOB + STATUS_WORDS  # words before the addresses of a job

_spent = 0.0  # microseconds that NumPy has spent
_ready: dict[str, int] = {}  # digest of a kernel -> address of its function
watches: list[Callable[[str, int], None]] = []  # told of each kernel that is ready, and its address


class _Plan:
    """Product for known layouts: what every call shares.

    words  a row of the runner's table, a job, its status, three addresses, operands, sizes
    """

    __slots__ = ("found", "words", "chunks", "scratch")

    def __init__(self, found: Vectors, function: int):
        self.scratch = -(-found.scratch // 128) * 128  # bytes of each worker
        self.found, self.chunks = found, math.ceil(found.total / found.chunk)
        self.words = np.zeros(_BEFORE + 3 + len(OPERANDS) + len(MATMUL_SIZES) + len(found.sizes),
                              np.int64)  # fmt: skip
        self.words[0], self.words[3:5] = function, (found.total, found.total)
        self.words[_BEFORE + 3 :][: len(OPERANDS)] = OPERANDS
        self.words[-len(found.sizes) :] = found.sizes
        job = self.words[ROW:]
        job[runner.COUNT], job[runner.WAKES] = 1, found.work >= WAKING_PROGRAM
        job[runner.SCRATCH_STRIDE] = self.scratch


_plans: dict[tuple, _Plan] = {}


def product(a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    """Return the product of `a` (..., m, k) and `b` (..., k, n), where m or n is 1, in a shape."""
    key = (a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides)
    plan = _plans.get(key)
    if plan is None or not (a.flags.aligned and b.flags.aligned):
        if a.ndim != b.ndim or a.ndim not in (2, 3) or not (a.size and b.size):
            return None
        given = _described(a, b)
        if given is None:
            return None
        a, b, sizes = given
        found = vectors(a.dtype.name, sizes)
        assert found is not None
        function = _ready.get(found.kernel.digest) or _loaded(found.kernel, a.size + b.size)
        if not function:
            return None
        plan = _Plan(found, function)
        if len(_plans) >= _KEPT:
            _plans.clear()
        _plans[a.dtype, a.shape, a.strides, b.dtype, b.shape, b.strides] = plan
    result = np.empty(shape, a.dtype)
    _run(plan, b if plan.found.first else a, a if plan.found.first else b, result)
    return result


def _described(a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]] | None:
    """Return the operands, copied if they must be, and MATMUL_SIZES."""
    size = a.dtype.itemsize
    if size not in (4, 8) or a.dtype != b.dtype or not (a.dtype.isnative and b.dtype.isnative):
        return None
    a, b = (x if x.flags.aligned else x.copy() for x in (a, b))
    if b.shape[-1] == 1:
        a = _with_a_unit(a)
    else:
        b = _with_a_unit(b)
    if any(step % size for step in (*a.strides, *b.strides)):
        return None
    (m, k), n = a.shape[-2:], b.shape[-1]
    steps_a, steps_b = ([step // size for step in x.strides] for x in (a, b))
    if n == 1:
        turned_a, turned_b = steps_a[-1] != 1 and k > 1, False
    else:
        turned_a, turned_b = True, steps_b[-2] == 1 or k == 1
    stacked = a.ndim == 3
    return a, b, (
        int(turned_a), int(turned_b), m, n, k, steps_a[-1 if turned_a else -2],
        steps_b[-1 if turned_b else -2], n, a.shape[0] if stacked else 1,
        steps_a[0] if stacked else 0, steps_b[0] if stacked else 0, m * n,
    )  # fmt: skip


def _with_a_unit(x: Any) -> Any:
    """Return a matrix of which rows or columns lie side by side."""
    for step, count in zip(x.strides[-2:], x.shape[-2:]):
        if step == x.dtype.itemsize or count == 1:
            return x
    return np.ascontiguousarray(x)


def _loaded(kernel: Kernel, terms: int) -> int:
    """Return the address of a kernel's function; 0 while NumPy is to serve."""
    global _spent
    _spent += _CALL + terms / _TERMS
    return unwatched(_address, kernel, _spent >= _WORTH)


def _address(kernel: Kernel, pays: bool) -> int:
    if not pays and cache.missing([kernel]):
        return 0
    found = cache.functions_of([kernel])[kernel.digest]
    _ready[kernel.digest] = found
    for watch in watches:
        watch(kernel.name, found)
    return found


def ready() -> dict[str, int]:
    """Return the addresses of the kernels' functions that were called, by digest."""
    return _ready


def _run(plan: _Plan, matrix: Any, vector: Any, result: Any) -> None:
    found, native = plan.found, runner.runner()
    threads = 1
    if plan.chunks > 1 and found.work >= SHARED_PROGRAM and runner.can_share():
        threads = get_num_threads()
        if len(native.workers) < threads - 1:
            native.prepare(threads - 1)
    words = plan.words.copy()
    job, at = ROW, address(words)
    scratch = np.empty(plan.scratch * threads, np.uint8)
    buffers = at + 8 * _BEFORE
    words[_BEFORE : _BEFORE + 3] = (address(matrix), address(vector), address(result))
    words[1:3] = (buffers + 24, buffers + 24 + 8 * len(OPERANDS))
    words[job + runner.TABLE], words[job + runner.BUFFERS] = at, buffers
    words[job + runner.STATUS] = at + 8 * (ROW + JOB)
    words[job + runner.SCRATCH] = address(scratch)
    if threads > 1:
        words[4:8] = (found.chunk, 1, 0, plan.chunks)
        words[job + runner.POOL], words[job + runner.HELPERS] = native.pool, threads - 1
        words[job + runner.TICKETS] = plan.chunks
    (native.hold if found.work <= _HELD else native.release)(at + 8 * job)
