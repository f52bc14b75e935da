"""CUDA kernels, in this process and on disk: PTX through CuPy's loader, or numba's simulator.

In: Kernels and a device. Out: for each digest an object that launches it over a range. Called by
`cuda_executable`.

PTX lies in the cache beside the objects for the CPU. Each processor has a directory of its own
(`native-<key>-sm_<processor>`), with the same packs under the same digests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tracejit import logs
from tracejit.core.memory import array_module, device, forks
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache
from tracejit.jit.runtime.binding import Step
from tracejit.jit.runtime.cache_folder import subfolder
from tracejit.jit.runtime.host import bytes_at
from tracejit.jit.runtime.packs import pack_of, read_pack

MOST_BLOCKS = 65535
_SCRATCH_BLOCKS = 2048  # blocks with scratch memory of their own
_THREADS = 256
_lock = forks.rlock_awaited()
_loaded: dict[tuple[int, str], Any] = {}


class Grid(NamedTuple):
    """Numbers of blocks, of threads in a block, and of workers that need their own scratch
    memory."""

    blocks: int
    threads: int
    workers: int


class CudaKernel(Protocol):
    """Interface of a loaded kernel.

    kind     as in `lowering.grid`
    launch   run over a grid; `arguments` as `lowering.ptx` lists them; `arrays()` gives the
             buffers as arrays, for the simulator
    """

    kind: str

    def launch(
        self, over: Grid, arguments: tuple[int, ...], step: Step, arrays: Callable[[], list[Any]]
    ) -> None: ...


def grid_of(kind: str, total: int, scratch_bytes: int = 0) -> Grid:
    """Return the grid of a kernel, by its kind and range alone.

    >>> grid_of("thread", 1000), grid_of("row", 10)
    (Grid(blocks=4, threads=256, workers=1024), Grid(blocks=10, threads=32, workers=10))
    """
    from tracejit.jit.lowering.grid import LANES

    if kind == "single":
        return Grid(1, 1, 1)
    most = _SCRATCH_BLOCKS if scratch_bytes else MOST_BLOCKS
    if kind == "thread":
        blocks = max(1, min(-(-total // _THREADS), most))
        return Grid(blocks, _THREADS, blocks * _THREADS)
    blocks = max(1, min(total, most))
    return Grid(blocks, LANES[kind], blocks)


def functions_of(kernels: Iterable[Kernel], where: device) -> dict[str, CudaKernel]:
    """Return each kernel, ready to launch on a device: from memory, from disk, else compiled.

    Numba's simulator runs the texts if `NUMBA_ENABLE_CUDASIM` is 1. Raises
    `lowering.native.KernelError` where a text has no CUDA form.
    """
    wanted = {kernel.digest: kernel for kernel in kernels}
    if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1":
        return {digest: SimulatedKernel(kernel) for digest, kernel in wanted.items()}
    number = where.index or 0
    with _lock:
        missing = [k for k in wanted.values() if (number, k.digest) not in _loaded]
        if missing:
            cupy = array_module(where)
            with cupy.cuda.Device(number) as current:
                processor = _processor(current.compute_capability)
                for digest, text in ptx_of(missing, processor).items():
                    _loaded[number, digest] = DriverKernel(cupy, digest, text)
        return {digest: _loaded[number, digest] for digest in wanted}


def _processor(capability: str) -> int:
    from tracejit.jit.lowering import ptx

    return ptx.supported(divmod(int(capability), 10))


# -- PTX -----------------------------------------------------------------------------------------


def ptx_of(kernels: Sequence[Kernel], processor: int) -> dict[str, str]:
    """Return the PTX of each kernel for sm_<processor>, from disk or compiled, by digest.

    Its first line is `// kind ` and the kind of grid that the kernel needs.
    """
    directory = _directory(processor)
    found = {}
    for kernel in kernels:
        text = _read(directory, kernel.digest) if directory is not None else None
        cache.counts["compiled" if text is None else "loaded"] += 1
        if text is None:
            text = _compiled(kernel, processor)
            if directory is not None:
                cache.keep(directory, [kernel], [text.encode()])
        found[kernel.digest] = text
    return found


def _compiled(kernel: Kernel, processor: int) -> str:
    from tracejit.jit.lowering import grid, ptx

    text = f"// kind {grid.deal(kernel).kind}\n{ptx.compile_kernel(kernel, processor)}"
    logs.emit("kernels", f"compiled {kernel.name} for sm_{processor}")
    return text


def _directory(processor: int) -> Path | None:
    return subfolder(f"native-{cache.environment_key()}-sm_{processor}")


def _read(directory: Path, digest: str) -> str | None:
    path = pack_of(directory, digest)
    if path is None:
        return None
    try:
        digests, texts = read_pack(path)
        return texts[digests.index(digest)].decode()
    except OSError:
        return None
    except ValueError as error:
        cache.damaged(path, error)
        return None


# -- launching -----------------------------------------------------------------------------------


class DriverKernel:
    """Kernel that the CUDA driver loaded onto the current device."""

    def __init__(self, cupy: Any, digest: str, text: str):
        from tracejit.jit.lowering.native import symbol_of

        self.kind = text.partition("\n")[0].removeprefix("// kind ")
        module = cupy.cuda.Module()
        module.load(text.encode() + b"\0")  # the driver reads up to a zero byte
        self.function = module.get_function(symbol_of(digest))

    def launch(
        self, over: Grid, arguments: tuple[int, ...], step: Step, arrays: Callable[[], list[Any]]
    ) -> None:
        """Put the kernel on the current stream."""
        self.function((over.blocks, 1, 1), (over.threads, 1, 1), arguments)


class SimulatedKernel:
    """Kernel in numba's simulator: its text as Python, over host memory at the addresses."""

    def __init__(self, kernel: Kernel):
        from tracejit.jit.lowering import grid, numba_cuda

        self.dealt = grid.deal(kernel)
        self.kind = self.dealt.kind
        self.run = numba_cuda.simulated_kernel(self.dealt)

    def launch(
        self, over: Grid, arguments: tuple[int, ...], step: Step, arrays: Callable[[], list[Any]]
    ) -> None:
        """Run to the end over a small grid. A kernel's text covers its range with a grid of any
        size."""
        _, operands, sizes, scratch, failed, status, *numbers = arguments
        words = [
            bytes_at(at, 8 * count).view(np.int64)
            for at, count in ((operands, len(step.operands)), (sizes, len(step.sizes)))
        ]
        memory = bytes_at(scratch, numbers[1] * over.workers) if scratch else np.empty(0, np.uint8)
        flags = [bytes_at(at, 8 * n).view(np.int64) for at, n in ((failed, 1), (status, 2))]
        blocks, threads = min(over.blocks, 3), min(over.threads, 4)
        self.run(blocks, threads, arrays(), *words, memory, *flags, *numbers)
