"""Simulated grids: a kernel's text for a grid as a numba CUDA kernel, for numba's simulator.

In: a `GridKernel`. Out: a callable over NumPy arrays that runs the text as Python. Each CUDA thread
of a block is a Python thread, with barriers and shared memory. Called by the runtime when
`NUMBA_ENABLE_CUDASIM=1` is set, as users of numba know it: breakpoints hold in the texts. `ptx`
makes the machine code for a GPU, from the same text.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tracejit.jit.lowering import grid
from tracejit.jit.lowering.grid import GridKernel

_ENTRY = '''

def barrier():
    cuda.syncthreads()


def entry(buffers, operands, sizes, scratch, failed, status, total, scratch_stride, guarded):
    """Who this thread is, then the kernel."""
    if guarded != 0 and failed[0] != 0:
        return
    thread, threads = cuda.threadIdx.x, cuda.blockDim.x
    block, blocks = cuda.blockIdx.x, cuda.gridDim.x
    shared = cuda.shared.array({shared}, uint8)
    if {by_block}:
        worker, workers, lane, lanes = block, blocks, thread, threads
    else:
        worker, workers, lane, lanes = block * threads + thread, blocks * threads, 0, 1
    memory = scratch[worker * scratch_stride :]
    with errstate(all="ignore"):
        {name}(
            buffers, operands, sizes, memory, status, 0, total, shared, worker, workers, lane, lanes
        )
    if {checked} and status[0] != 0:
        failed[0] = 1
'''


def simulated() -> bool:
    """Return True if numba's CUDA target is its simulator in this process."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1"


@functools.lru_cache(maxsize=1024)
def simulated_kernel(dealt: GridKernel) -> Callable[..., None]:
    """Return a function of `(blocks, threads, *arguments)`: arguments as `ptx` lists them, NumPy
    arrays for addresses.

    Raises RuntimeError where numba's CUDA target is not the simulator.
    """
    if not simulated():
        raise RuntimeError("kernels run in numba's simulator with NUMBA_ENABLE_CUDASIM=1 only")
    from numba import cuda

    text = dealt.source + _ENTRY.format(
        shared=grid.SHARED_BYTES, by_block=dealt.kind in ("row", "column"),
        name=dealt.kernel.name, checked=dealt.checked,
    )  # fmt: skip
    # The simulator puts its own `cuda` into these globals while a kernel runs.
    space: dict[str, Any] = {"cuda": cuda, "__name__": f"tracejit.kernels.{dealt.kernel.name}"}
    exec(compile("from numpy import errstate, uint8\n" + text, _filename(dealt), "exec"), space)
    entry = cuda.jit(space["entry"])

    def run(blocks: int, threads: int, *arguments: Any) -> None:
        entry[blocks, threads](*arguments)

    return run


def _filename(dealt: GridKernel) -> str:
    return f"<CUDA kernel {dealt.kernel.name} {dealt.kernel.digest}>"
