"""Object files into this process, with llvmlite alone: numba is not imported.

In: bytes of object files that `lowering.native` or the cache gave. Out: addresses of their symbols.
Called by `runtime.cache`. What is loaded stays for the life of the process: a program may be
running in it.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from typing import Any

from tracejit.runtime import mappings

_lock = threading.Lock()
_apart: list[int] = []  # code of loads whose mappings are not joined yet
LOADS = 256  # after so many they are


@functools.cache
def _engine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(opt=0, reloc="pic", codemodel="default", jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    # Never disposed of: programs may run until the interpreter is gone, and llvmlite with it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return engine


def load(objects: Sequence[bytes], symbols: Sequence[str]) -> list[int]:
    """Load object files and return the address of each symbol.

    Raises RuntimeError where LLVM does not take an object, or a symbol is in none of them.
    """
    from llvmlite.binding import ObjectFileRef

    with _lock:
        engine = _engine()
        for data in objects:
            engine.add_object_file(ObjectFileRef.from_data(data))
        engine.finalize_object()
        addresses = [engine.get_function_address(symbol) for symbol in symbols]
        _apart.extend(addresses[:1])
        if len(_apart) >= LOADS:
            mappings.join(_apart)
            _apart.clear()
    if not all(addresses):
        missing = [s for s, a in zip(symbols, addresses) if not a]
        raise RuntimeError(f"the object does not define {', '.join(missing)}")
    return addresses
