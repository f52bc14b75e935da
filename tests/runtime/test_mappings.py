"""Loading kernels takes few of the mappings that a process may have."""

from __future__ import annotations

import ctypes
import sys

import llvmlite.binding as llvm
import pytest

from tracejit.jit.runtime import loader
from tracejit.jit.runtime.mappings import mappings

TEXT = """
define double @of_mappings_{k}(double %x) {{
    %y = fadd double %x, {k}.5
    %z = fmul double %y, 3.25
    ret double %z
}}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems set no such limit")
def test_loads_share_mappings():
    loader._linker()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(reloc="pic", codemodel="default")
    before, found = len(mappings()), []
    for k in range(2 * loader.KERNELS):
        code = machine.emit_object(llvm.parse_assembly(TEXT.format(k=k)))
        found += loader.load([code], [f"of_mappings_{k}"])
    assert len(mappings()) - before < 1.5 * loader.KERNELS
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    assert [call(x)(1.0) for x in found] == [(1 + k + 0.5) * 3.25 for k in range(len(found))]
