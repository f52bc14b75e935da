"""Compiles library kernels on another core while the rest of their program is lowered.

In: a graph after its passes. Out: nothing. A thread fills the cache of kernels; the cache's lock
makes others wait that need one of them. LLVM runs without Python's lock, and the texts of library
kernels are known before anything is lowered. Called by `compiled_graph`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from tracejit.core.memory.threads import get_num_threads
from tracejit.jit.ir.graph import Graph
from tracejit.jit.lowering.library import library_of
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.runtime import cache


def compile_ahead(graph: Graph) -> None:
    """Begin to compile the library kernels of the graph that are neither in memory nor on disk."""
    if get_num_threads() == 1:
        return
    found = ((library_of(node), node) for node in graph.nodes)
    kernels = [library.kernel(node) for library, node in found if library is not None]
    missing = cache.missing({kernel.digest: kernel for kernel in kernels}.values())
    if missing:
        wanted = (missing, cache.function_at_work())
        thread = threading.Thread(target=_compile, args=wanted, name="tracejit-compile")
        with contextlib.suppress(RuntimeError):  # the interpreter is ending: lowering compiles them
            thread.start()


def _compile(kernels: Sequence[Kernel], function: str) -> None:
    from tracejit.jit.lowering.native import KernelError

    try:
        with cache.compiling_for(function):
            cache.functions_of(kernels, spared=1)
    except KernelError:
        pass  # making the program raises the error again
