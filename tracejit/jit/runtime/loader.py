"""Loader of object files into this process, with llvmlite alone: numba is not imported.

In: bytes of object files that `lowering.native` or the cache gave. Out: addresses of their symbols.
Called by `cache`. What is loaded stays for the life of the process: a program may be running in it.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
from collections.abc import Sequence
from typing import Any

from tracejit.core.memory import forks
from tracejit.jit.runtime import mappings

_lock = forks.rlock_awaited()
_numbers = itertools.count()
_apart: list[int] = []  # addresses of kernels whose mappings are not joined yet
KERNELS = 256  # after so many kernels mappings are joined


@functools.cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(opt=0, reloc="pic", codemodel="default", jit=True)
    # JITLink gives an object one piece of memory. LLVM's older loader may put code and constants
    # 2 GiB apart where memory is in use, out of reach of the code, and then ends the process.
    linker = llvm.create_lljit_compiler(
        machine, use_jit_link=sys.platform != "win32", suppress_errors=True
    )
    # A reference for ever: kernels may run until the interpreter, and llvmlite with it, is gone.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(linker))
    return linker


def load(objects: Sequence[bytes], symbols: Sequence[str]) -> list[int]:
    """Load object files and return the address of each symbol.

    Raises RuntimeError where LLVM does not take an object, or a symbol is in none of them.
    """
    from llvmlite.binding import JITLibraryBuilder

    library = JITLibraryBuilder().add_current_process()
    for data in objects:
        library.add_object_img(data)
    for symbol in symbols:
        library.export_symbol(symbol)
    with _lock:
        loaded = library.link(_linker(), f"kernels {next(_numbers)}")
        loaded.detach()
        addresses = [loaded[symbol] for symbol in symbols]
        _apart.extend(addresses)
        if len(_apart) >= KERNELS:
            mappings.join(_apart)
            _apart.clear()
    return addresses
