"""Doctor: names what works on this machine, what is missing, and how to get it.

In: nothing. Out: `Finding`s. Called by: `python -m tracejit doctor`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
from collections.abc import Callable

from tracejit.commands.findings import Finding, environment, one_line, packages

VECTORS = ("avx512f", "avx2", "fma", "f16c", "neon", "sve")


def examine() -> list[Finding]:
    """Ask about everything a captured call depends on, compiling and running one kernel.

    >>> {finding.subject for finding in examine()} >= {"tracejit", "cache", "kernels", "cuda"}
    True
    """
    found = []
    for subject, ask in QUESTIONS.items():
        try:
            found.append(ask())
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a doctor names what is broken, whatever it is
            found.append(Finding(subject, "broken", one_line(error)))
    return found


def _tracejit() -> Finding:
    from tracejit import version

    return Finding("tracejit", "ok", f"{version.tracejit}, Python {platform.python_version()}, "
                                     f"{platform.system()} {platform.machine()}")


def _processor() -> Finding:
    from tracejit.config import flags
    from tracejit.jit.lowering.target import (
        BASELINES,
        TargetError,
        host_cpu,
        missing_features,
        processor,
    )

    name, features = host_cpu()
    have = [vector for vector in VECTORS if f"+{vector}" in features.split(",")]
    runs = ["native", *(one for one in BASELINES if not missing_features(one))]
    text = (f"{name}: {', '.join(have) or 'no vector extension we know'}; "
            f"runs {', '.join(runs)}; target {flags.target}")
    try:
        processor()
    except TargetError as error:
        return Finding("processor", "broken", text, str(error))
    return Finding("processor", "ok", text)


def _threads() -> Finding:
    from tracejit.core.memory.threads import available_threads, get_num_threads

    text = (f"{get_num_threads()} for kernels; affinity and cgroup quota allow "
            f"{available_threads()} of {os.cpu_count()} (TRACEJIT_NUM_THREADS)")
    return Finding("threads", "ok", text)


def _blas() -> Finding:
    from tracejit.jit.runtime.blas import blas

    found = blas()
    switch = "its threads are set to 1 during our calls"
    if not found.set_threads:
        switch = "its thread count cannot be switched from here: set OPENBLAS_NUM_THREADS=1"
    return Finding("blas", "ok", f"sgemm and dgemm of {os.path.basename(found.library)}; {switch}")


def _cache() -> Finding:
    from tracejit.config import flags
    from tracejit.jit.runtime import cache_folder, cache_upkeep

    root = cache_folder.root_directory()
    if root is None:
        text = f"{flags.cache_dir} cannot be used; every process compiles again"
        return Finding("cache", "broken", text, "set TRACEJIT_CACHE_DIR to a directory of your own")
    packs = cache_upkeep.entries()
    damaged = sum(not pack.kernels for pack in packs)
    text = (f"{root}: {sum(pack.kernels for pack in packs)} kernels, "
            f"{sum(pack.nbytes for pack in packs) / 1e6:.1f} MB")
    if damaged:
        return Finding("cache", "broken", f"{text}, {damaged} files damaged",
                       "python -m tracejit cache prune")
    return Finding("cache", "ok", text)


def _kernels() -> Finding:
    """Capture, compile and run; the answer is compared with eager mode's."""
    import tracejit
    from tracejit.jit.runtime import cache

    before = dict(cache.counts)
    x = tracejit.linspace(-2.0, 2.0, 97)
    compiled = tracejit.script(lambda x: (x * x + 1.0).sum(), mode="compiled")
    difference = abs(compiled(x).item() - (x * x + 1.0).sum().item())
    how = "compiled" if cache.counts["compiled"] > before["compiled"] else "loaded from disk"
    if not difference < 1e-3:
        return Finding("kernels", "broken", f"a sum is off by {difference:g}")
    return Finding("kernels", "ok", f"a fused kernel was {how}, ran, and agrees with eager mode")


def _cuda() -> Finding:
    from tracejit import cuda

    missing = [name for name in ("cupy", "numba_cuda") if importlib.util.find_spec(name) is None]
    if missing:
        return Finding("cuda", "absent", f"{' and '.join(missing)} not installed: CPU only",
                       "with an NVIDIA GPU: pip install tracejit[cuda]")
    for name in ("cupy", "numba_cuda"):
        importlib.import_module(name)  # an error is the finding
    if not cuda.is_available():
        return Finding("cuda", "absent", "CuPy and numba-cuda are installed; no usable GPU",
                       "check the NVIDIA driver with nvidia-smi")
    names = ", ".join(cuda.get_device_name(k) for k in range(cuda.device_count()))
    return Finding("cuda", "ok", names)


def _processes() -> Finding:
    from tracejit.distributed import mpi, mpi_settings, nccl_library

    if not mpi.is_installed():
        return Finding("processes", "absent", "mpi4py is not installed: one process",
                       "for more: pip install 'tracejit[distributed]'")
    lines = [*mpi_settings.lines(), *nccl_library.lines()]
    return Finding("processes", "ok", "; ".join(lines))


QUESTIONS: dict[str, Callable[[], Finding]] = {
    "tracejit": _tracejit, "packages": packages, "environment": environment,
    "processor": _processor, "threads": _threads, "blas": _blas, "cache": _cache,
    "kernels": _kernels, "cuda": _cuda, "processes": _processes,
}
