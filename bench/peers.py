"""Who takes part: tracejit and the peers that are installed, and what machine they run on.

In: names from the command line. Out: modules to build workloads with; a peer that is not
installed is named in the report instead.
"""

import importlib
import importlib.metadata
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = ("tracejit", "jax", "jaxlib", "torch", "numpy", "numba", "llvmlite", "scipy")
THREAD_VARIABLES = ("TRACEJIT_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                    "MKL_NUM_THREADS", "XLA_FLAGS")


@dataclass(frozen=True)
class Peers:
    """The modules present, None for one that is not."""

    tracejit: ModuleType | None
    jax: ModuleType | None
    torch: ModuleType | None
    torch_compile: bool
    missing: dict[str, str]

    def torch_like(self) -> list[tuple[str, Any, Callable[[Any], Any]]]:
        """(column, namespace, what to wrap a step in) for all that share PyTorch's names."""
        columns: list[tuple[str, Any, Callable[[Any], Any]]] = []
        if self.tracejit is not None:
            columns.append(("tracejit", self.tracejit, self.tracejit.script))
            columns.append(("tracejit eager", self.tracejit, lambda step: step))
        if self.torch is not None:
            columns.append(("torch eager", self.torch, lambda step: step))
            if self.torch_compile:
                columns.append(("torch.compile", self.torch, self.torch.compile))
        return columns


def find(wanted: list[str], torch_compile: bool) -> Peers:
    """Import what is wanted and installed; the rest is listed with the reason."""
    found: dict[str, ModuleType | None] = dict.fromkeys(("tracejit", "jax", "torch"))
    missing = {}
    for name in wanted:
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            missing[name] = str(error)
    return Peers(found["tracejit"], found["jax"], found["torch"], torch_compile, missing)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    model = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line for line in lines if line.startswith("flags")), "")
    return (model[0] if model else platform.machine()) + (", AVX-512" * ("avx512f" in flags))


def conditions(peers: Peers) -> dict[str, Any]:
    """Machine, threads and versions: what a figure means nothing without."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "processor": _processor(),
        "cores usable": len(os.sched_getaffinity(0)),
        "load before": round(os.getloadavg()[0], 2),
        "torch threads": peers.torch.get_num_threads() if peers.torch else None,
        "variables": {k: os.environ[k] for k in THREAD_VARIABLES if k in os.environ},
        "python": platform.python_version(),
        "versions": versions,
        "missing": peers.missing,
    }
