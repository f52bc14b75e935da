"""Products with a vector in eager mode, by the kernels that programs use.

In: NumPy's matrices of float32 or float64, or stacks of them, of which one has one row or one
column. Out: their product; None where NumPy shall compute it, which gives the same bits. Called by
`core.ops.vector_products`; `tracejit/__init__.py` installs `product` there.

NumPy serves until it has spent the time of a compile, unless the kernel is there already.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.core.memory import get_num_threads
from tracejit.jit.capture.unwatched import unwatched
from tracejit.jit.lowering.extern import MATMUL_SIZES
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.lowering.vector_products import Vectors, vectors
from tracejit.jit.runtime import cache, runner
from tracejit.jit.runtime.binding import SHARED_PROGRAM, WAKING_PROGRAM
from tracejit.jit.runtime.eager_fused import WORTH
from tracejit.jit.runtime.runner import JOB, ROW, STATUS_WORDS

_CALL, _TERMS = 100.0, 300.0  # microseconds of a call by NumPy; terms that it adds in one
_HELD = 1 << 17  # bytes that are read so fast that the interpreter's lock may be held
_OPERANDS = (0, 0, 2, 0, 1)  # of a vector kernel, as numbers of matrix, vector and result

_spent = 0.0  # microseconds that NumPy has spent
_ready: dict[str, int] = {}  # digest of a kernel -> address of its function


def product(a: Any, b: Any) -> Any:
    """Return the product of `a` (..., m, k) and `b` (..., k, n), where m or n is 1."""
    if a.ndim != b.ndim or a.ndim not in (2, 3) or not (a.size and b.size):
        return None
    given = _described(a, b)
    if given is None:
        return None
    a, b, sizes = given
    found = vectors(a.dtype.name, sizes)
    assert found is not None
    address = _ready.get(found.kernel.digest) or _loaded(found.kernel, a.size + b.size)
    if not address:
        return None
    result = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    matrix, vector = (b, a) if found.first else (a, b)
    _run(address, found, [x.ctypes.data for x in (matrix, vector, result)])
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
    return unwatched(_address, kernel, _spent >= WORTH)


def _address(kernel: Kernel, pays: bool) -> int:
    if not pays and cache.missing([kernel]):
        return 0
    found = cache.functions_of([kernel])[kernel.digest]
    _ready[kernel.digest] = found
    return found


def _run(address: int, found: Vectors, pointers: list[int]) -> None:
    """Run a kernel on matrix, vector and result."""
    threads = get_num_threads() if found.work >= SHARED_PROGRAM and runner.can_share() else 1
    shared = threads > 1 and found.total > found.chunk
    native = runner.runner()
    if shared and len(native.workers) < threads - 1:
        native.prepare(threads - 1)
    threads = threads if shared else 1
    chunk = found.chunk if shared else found.total
    stride = -(-found.scratch // 128) * 128
    scratch = np.empty(stride * threads, np.uint8)
    before = ROW + JOB + STATUS_WORDS
    sizes = (*(0,) * len(MATMUL_SIZES), *found.sizes)
    words = np.array([*(0,) * before, *pointers, *_OPERANDS, *sizes], np.int64)
    at = int(words.ctypes.data)
    operands = at + 8 * (before + len(pointers))
    chunks = math.ceil(found.total / chunk) if shared else 0
    words[:ROW] = (address, operands, operands + 8 * len(_OPERANDS), found.total, chunk,
                   int(shared), 0, chunks)  # fmt: skip
    job = words[ROW : ROW + JOB]
    job[runner.TABLE], job[runner.COUNT] = at, 1
    job[runner.BUFFERS], job[runner.STATUS] = at + 8 * before, at + 8 * (ROW + JOB)
    job[runner.SCRATCH], job[runner.SCRATCH_STRIDE] = scratch.ctypes.data, stride
    if shared:
        job[runner.POOL], job[runner.HELPERS] = native.pool, threads - 1
        job[runner.TICKETS], job[runner.WAKES] = chunks, int(found.work >= WAKING_PROGRAM)
    (native.hold if found.work <= _HELD else native.release)(at + 8 * ROW)
