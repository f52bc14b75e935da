"""Kernels to native code: LLVM IR, one optimiser run, an object file.

In: Kernels. Out: bytes of object files that define `symbol_of(digest)` for each. Called by the
runtime when its cache does not have a kernel. All kernels of a program share a module and a run of
the optimiser. Larger sets are split over the machine's cores: LLVM needs no lock as long as each
thread keeps to its own context.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm

from tracejit import logs
from tracejit.core.memory import forks
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.lowering.small_sizes import STRAIGHT
from tracejit.jit.lowering.target import processor

_PER_THREAD = 2  # fewer kernels than this are not worth a thread
_parsing = forks.rlock()  # CPython 3.11's `ast.parse` counts its depth for all threads together


class KernelError(RuntimeError):
    """Error: a kernel's text cannot be compiled. The message names the kernel and the line."""


def symbol_of(digest: str) -> str:
    """Return the name of a kernel's function in its object file."""
    return f"tracejit_{digest}"


def namespace_of(kernel: Kernel, filename: str | None = None) -> dict[str, Any]:
    """Return the names of a kernel's module: its text, run as Python."""
    if filename is None:
        # Functions of the module are parsed again from their text, tracebacks quote it.
        filename = f"<kernel {kernel.name} {kernel.digest}>"
        lines = kernel.source.splitlines(keepends=True)
        linecache.cache[filename] = (len(kernel.source), None, lines, filename)
    namespace: dict[str, Any] = {"__name__": f"tracejit.kernels.{kernel.name}"}
    exec(compile(kernel.source, filename, "exec"), namespace)
    return namespace


def is_straight(kernel: Kernel) -> bool:
    """Return True if short loops of a kernel are written out, which leaves code without loops."""
    return STRAIGHT in kernel.source


def _untold(what: str, kernels: int) -> None:
    pass


def compile_kernels(
    kernels: Sequence[Kernel], threads: int = 1, tell: Callable[[str, int], None] = _untold
) -> list[bytes]:
    """Return object files that together define every kernel, at most two per thread.

    tell  called from any thread with "written" or "compiled" and how many kernels now are

    Raises KernelError where a text is no kernel.
    """
    _initialize()
    shares = _shares(kernels, threads)
    if threads < 2 or len(shares) == 1:
        return [_compile(share, tell) for share in shares]
    from concurrent.futures import ThreadPoolExecutor

    try:
        with ThreadPoolExecutor(min(threads, len(shares))) as pool:
            return list(pool.map(lambda share: _compile(share, tell), shares))
    except KernelError:
        raise
    except RuntimeError:  # the interpreter ends, and starts no thread
        return [_compile(share, tell) for share in shares]


def _shares(kernels: Sequence[Kernel], threads: int) -> list[Sequence[Kernel]]:
    """Split kernels over threads, long ones first. Straight ones are optimised otherwise, so they
    share a module with no others."""
    found: list[Sequence[Kernel]] = []
    longest_first = sorted(kernels, key=lambda kernel: -len(kernel.source))
    for straight in (False, True):
        group = [kernel for kernel in longest_first if is_straight(kernel) is straight]
        count = max(1, min(threads, len(group) // _PER_THREAD))
        found += [group[i::count] for i in range(count) if group]
    return found


def _compile(kernels: Sequence[Kernel], tell: Callable[[str, int], None]) -> bytes:
    texts: list[str] = []
    with _parsing:
        for kernel in kernels:
            texts += emit_kernel(kernel)
            tell("written", 1)
    made = _object(texts, any(map(is_straight, kernels)))
    tell("compiled", len(kernels))
    return made


def emit_kernel(kernel: Kernel) -> list[str]:
    """Return LLVM IR, not optimised, of modules that define the kernel's symbol."""
    from tracejit.jit.lowering import kernel_emitter
    from tracejit.jit.lowering.vector_math_intrinsics import UnsupportedSyntax

    namespace = namespace_of(kernel)
    try:
        text = kernel_emitter.emit_kernel(
            kernel.source, kernel.name, symbol_of(kernel.digest), namespace
        )
        return [text]
    except UnsupportedSyntax as why:
        logs.emit("kernels", f"{kernel.name}: numba compiles it ({why})")
    except (ValueError, SyntaxError) as error:
        raise KernelError(f"kernel {kernel.name}: {error}") from error
    return _emit_with_numba(kernel, namespace)


def _emit_with_numba(kernel: Kernel, namespace: dict[str, Any]) -> list[str]:
    from numba.core.errors import NumbaError

    from tracejit.jit.lowering import numba_emitter

    try:
        return numba_emitter.emit_kernel(
            kernel.source, kernel.name, symbol_of(kernel.digest), namespace
        )
    except NumbaError as error:
        raise KernelError(f"kernel {kernel.name}: {error}") from error


def optimized_ir(kernels: Sequence[Kernel]) -> str:
    """Return LLVM IR after the optimiser: for tests that loops are vectorised, and for the
    curious."""
    _initialize()
    texts = [text for kernel in kernels for text in emit_kernel(kernel)]
    machine, context = _machine(), llvm.create_context()
    module = _parsed(texts, machine, context)
    _optimize(module, machine, any(map(is_straight, kernels)))
    return str(module)


@functools.cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _machine() -> Any:
    name, features = processor()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=name, features=features, opt=2, reloc="pic", codemodel="default", jit=True
    )


def _object(texts: Sequence[str], straight: bool = False) -> bytes:
    machine, context = _machine(), llvm.create_context()
    module = _parsed(texts, machine, context)
    _optimize(module, machine, straight)
    return _emit_object(module, machine)


def _parsed(texts: Sequence[str], machine: Any, context: Any) -> Any:
    layout = f'target triple = "{llvm.get_process_triple()}"\n'
    layout += f'target datalayout = "{machine.target_data}"\n'
    whole = None
    for text in texts:
        kept = [line for line in text.splitlines() if not line.startswith("target ")]
        module = llvm.parse_assembly(layout + "\n".join(kept), context)
        if whole is None:
            whole = module
        else:
            whole.link_in(module)
    return whole


def _optimize(module: Any, machine: Any, straight: bool = False) -> None:
    """Run the optimiser; `straight`: code without loops becomes vectors too."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    options.slp_vectorization = straight
    # Out-of-order cores overlap iterations by themselves, and the loops take less time to compile.
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def _emit_object(module: Any, machine: Any) -> bytes:
    from ctypes import string_at

    from llvmlite.binding import ffi

    with ffi.OutputString() as problem:
        emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")
        buffer = emit(machine, module, 1, problem)
        if not buffer:
            raise KernelError(f"LLVM cannot emit the object: {problem}")
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _unlocked(name: str) -> Any:
    """Return a function of llvmlite without its lock over all of LLVM: ours work on separate
    contexts."""
    from llvmlite.binding import ffi

    locked = getattr(ffi.lib, name)
    return getattr(locked, "_cfn", locked)
