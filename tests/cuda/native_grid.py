"""The LLVM code of kernels for a grid, run on the CPU as one worker with one lane.

In: a kernel and the arguments of its launch. Out: what it writes. `launch` takes the place of
`cuda_kernels.SimulatedKernel.launch`. It stands between the simulator, which runs the texts as
Python, and a GPU: the code is what `ptx` makes PTX from, up to barriers, which one lane does not
need, and the entry, which asks the hardware who it is.
"""

from __future__ import annotations

import ctypes

from llvmlite import ir

from tracejit.jit.lowering import grid, native, ptx
from tracejit.jit.lowering.kernel_emitter import function_definition, split_prologue
from tracejit.jit.lowering.kernel_expressions import FUNCTIONS
from tracejit.jit.lowering.kernel_primitives import I64
from tracejit.jit.lowering.vector_math_intrinsics import Scalar
from tracejit.jit.runtime import loader

_made = {}


class _Alone(ptx.GridStatements):
    def _barrier(self):
        return Scalar(ir.Constant(I64, 0), "int64")


def _compiled(dealt):
    kernel = dealt.kernel
    definition = function_definition(dealt.source, kernel.name)
    namespace = native.namespace_of(kernel) | ptx._GRID_NAMES
    fetched, body = split_prologue(definition, namespace)
    symbol = f"grid_{kernel.digest}"
    module = ir.Module(symbol)
    inner = ptx._body_function(module, fetched, symbol)
    inner.linkage = "external"
    names = [(n, "int64" if e == "size" else e, e != "size") for n, e, _ in fetched]
    flags = tuple(namespace.get("FASTMATH", (FUNCTIONS,)))
    _Alone(inner, names, namespace, flags, kernel.name).run(body)
    native._initialize()
    (address,) = loader.load([native._object([str(module)])], [symbol])
    return fetched, ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (len(fetched) + 12))(address)


def _word(table, k):
    return ctypes.c_int64.from_address(table + 8 * k).value


def launch(self, over, arguments, step, arrays):
    dealt = self.dealt
    if dealt.kernel.digest not in _made:
        _made[dealt.kernel.digest] = _compiled(dealt)
    fetched, function = _made[dealt.kernel.digest]
    buffers, operands, sizes, scratch, failed, status, total, _, guarded = arguments
    if guarded and _word(failed, 0):
        return
    first = [
        _word(sizes, k) if element == "size" else _word(buffers, _word(operands, k))
        for _, element, k in fetched
    ]
    shared = (ctypes.c_int64 * (grid.SHARED_BYTES // 8))()
    places = (ctypes.addressof(shared), 0, 1, 0, 1)
    function(*first, buffers, operands, sizes, scratch, status, 0, total, *places)
    if dealt.checked and _word(status, 0):
        ctypes.c_int64.from_address(failed).value = 1
