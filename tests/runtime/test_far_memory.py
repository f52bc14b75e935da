"""Kernels load where free memory lies in pieces that are further apart than code can reach."""

from __future__ import annotations

import subprocess
import sys

import pytest

# One page is free among what is mapped already, all else is further than 2 GiB away: an object's
# code and constants must come to lie beside each other all the same. In a process of its own,
# since LLVM ends the process where they do not.
PROGRAM = """
import ctypes, mmap
import llvmlite.binding as llvm
from tracejit.jit.runtime import loader

TEXT = "define double @far_{k}(double %x) {{ %y = fadd double %x, {k}.5 ret double %y }}"
loader._linker()
machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default")
codes = [machine.emit_object(llvm.parse_assembly(TEXT.format(k=k))) for k in range(8)]
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
RESERVED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE


def reserve(nbytes):
    return libc.mmap(None, nbytes, 0, RESERVED, -1, 0)


for k, code in enumerate(codes):
    pages = reserve(2 * mmap.PAGESIZE)
    far = reserve(3 << 30)
    while reserve(mmap.PAGESIZE) > far:
        pass
    libc.munmap(pages, mmap.PAGESIZE)
    (address,) = loader.load([code], [f"far_{k}"])
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(1.0) == 1 + k + 0.5
print("loaded")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_code_and_constants_of_a_kernel_lie_within_reach():
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert ran.stdout == "loaded\n", ran.stderr
