"""Kernels and programs written by hand, for the tests of the runtime."""

import hashlib

import numpy as np

from tracejit.core.ops import types
from tracejit.jit.ir.graph import Graph
from tracejit.jit.lowering import extern
from tracejit.jit.lowering.program import Buffer, Instruction, Kernel, Program

HEAD = """\
import numpy as np
from tracejit.jit.lowering.abi import *
from tracejit.jit.lowering.vector_math_exponential import exp_float32, tanh_float32


def {name}(buffers, operands, sizes, scratch, status, lo, hi):
"""


def kernel(name, body, **more):
    source = HEAD.format(name=name) + body
    return Kernel(name, source, hashlib.sha256(source.encode()).hexdigest()[:32], 1, **more)


ADD_ONE = kernel("add_one", """\
    x = float32_pointer(buffers, operands[0])
    out = float32_pointer(buffers, operands[1])
    for i in range(lo, hi):
        out[i] = x[i] + np.float32(1.0)
""")
ADD_ONE_IN_PLACE = kernel("add_one_in_place", """\
    x = float32_pointer(buffers, operands[0])
    for i in range(lo, hi):
        x[i] = x[i] + np.float32(1.0)
""")
ADD = kernel("add", """\
    x = float32_pointer(buffers, operands[0])
    y = float32_pointer(buffers, operands[1])
    out = float32_pointer(buffers, operands[2])
    for i in range(lo, hi):
        out[i] = x[i] + y[i]
""")
GELU = kernel("gelu", """\
    x = float32_pointer(buffers, operands[0])
    out = float32_pointer(buffers, operands[1])
    for i in range(lo, hi):
        a = x[i]
        inner = np.float32(0.7978845608) * (a + np.float32(0.044715) * a * a * a)
        out[i] = np.float32(0.5) * a * (np.float32(1.0) + tanh_float32(inner))
""")
# Rows of sizes[0]: their sums, in eight lanes, which lie in scratch.
ROW_SUM = kernel("row_sum", """\
    x = float32_pointer(buffers, operands[0])
    out = float32_pointer(buffers, operands[1])
    n = sizes[0]
    lanes = float32_scratch(scratch, 0)
    for row in range(lo, hi):
        for lane in range(8):
            lanes[lane] = np.float32(0.0)
        for start in range(0, n - n % 8, 8):
            for lane in range(8):
                lanes[lane] = lanes[lane] + x[row * n + start + lane]
        for j in range(n - n % 8, n):
            lanes[0] = lanes[0] + x[row * n + j]
        total = np.float32(0.0)
        for lane in range(8):
            total += lanes[lane]
        out[row] = total
""", scratch_bytes=32)
TAKE = kernel("take", """\
    x = float32_pointer(buffers, operands[0])
    index = int64_pointer(buffers, operands[1])
    out = float32_pointer(buffers, operands[2])
    n = sizes[0]
    for i in range(lo, hi):
        k = index[i]
        if k < 0 or k >= n:
            status[0] = 1
            status[1] = k
            k = 0
        out[i] = x[k]
""", messages=("take: index out of range for 4 rows",))


def buffer(numel, role="temporary", index=0, dtype=types.float32):
    return Buffer(dtype, numel, role, index)


def chain(kernels, numel, chunk=1 << 12):
    """x -> kernels[0] -> kernels[1] ... -> output, elementwise over float32."""
    program = Program(Graph(), {k.digest: k for k in kernels})
    program.buffers.append(buffer(numel, "input"))
    for step, each in enumerate(kernels):
        role = "output" if step == len(kernels) - 1 else "temporary"
        program.buffers.append(buffer(numel, role))
        program.instructions.append(Instruction(each, (step, step + 1), 1, (numel,), numel, chunk))
    program.inputs, program.outputs = [0], [len(kernels)]
    return program


def single(each, numels, outputs, sizes, total, chunk, dtypes=None):
    """One kernel; `numels` of its buffers, of which the last `outputs` are outputs."""
    program = Program(Graph(), {each.digest: each})
    first = len(numels) - outputs
    for k, numel in enumerate(numels):
        dtype = dtypes[k] if dtypes else types.float32
        role, index = ("output", k - first) if k >= first else ("input", k)
        program.buffers.append(buffer(numel, role, index, dtype))
    operands = tuple(range(len(numels)))
    program.instructions.append(Instruction(each, operands, outputs, sizes, total, chunk))
    program.inputs, program.outputs = list(range(first)), list(range(first, len(numels)))
    return program


def matmul(trans_a, trans_b, m, n, k, batch=1, dtype=types.float32):
    """out = op(a) @ op(b) of contiguous operands."""
    lda, ldb = (m if trans_a else k), (k if trans_b else n)
    sizes = (int(trans_a), int(trans_b), m, n, k, lda, ldb, n, batch, m * k, k * n, m * n, 0)
    numels = [batch * m * k, batch * k * n, batch * m * n]
    program = single(extern.matmul_kernel(dtype.name), numels, 1, sizes, 0, 0, [dtype] * 3)
    program.instructions[0].extern = "matmul"
    return program


def run(executable, binding, *arrays, shape=None, dtype=np.float32, output=0):
    """Run on NumPy arrays; the chosen output as an array (a view of its Storage)."""
    storages = executable.run(binding, [a.ctypes.data for a in arrays])
    size = np.dtype(dtype).itemsize
    shape = (storages[output].nbytes // size,) if shape is None else shape
    return np.ndarray(shape, dtype, buffer=storages[output].block)
