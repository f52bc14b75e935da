"""Programs run on NumPy arrays: their kernels as plain Python, or compiled one by one."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import numpy as np

from tracejit.ir.interpret import at_size, bind_symbols, interpret, run_arrays
from tracejit.ir.sizes import evaluate
from tracejit.lowering.abi import ELEMENTS
from tracejit.lowering.extern import partition, python_matmul
from tracejit.lowering.lower import lower
from tracejit.lowering.program import Instruction, Program


class Results:
    """Outputs, and arrays that hold what the inputs hold after the run."""

    def __init__(self, outputs: list[np.ndarray], inputs: list[np.ndarray]):
        self.outputs, self.inputs = outputs, inputs


def storage(program: Program, number: int, sizes: dict[str, int], inputs: Sequence[np.ndarray]) -> np.ndarray:
    """The flat memory of a buffer, as the elements that kernels see."""
    buffer = program.buffers[number]
    element = np.dtype(ELEMENTS[buffer.dtype.name])
    if buffer.role == "input":
        array = inputs[buffer.index]
        length = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) // array.itemsize
        flat = np.lib.stride_tricks.as_strided(array, (length if array.size else 0,), (array.itemsize,))
        return flat.view(element)
    # Never-written memory shows: NaN or a number far away
    numel = evaluate(buffer.numel, sizes)
    return np.full(numel, 113, np.uint8).repeat(element.itemsize).view(element)


def execute(program: Program, inputs: Sequence[Any], compiled: bool = False, chunk: int | None = None) -> Results:
    """Run a program; inputs are copied, with their strides."""
    arrays = [kept_strides(np.asarray(x, v.dtype.numpy)) for x, v in zip(inputs, program.graph.inputs)]
    sizes = bind_symbols(program.graph, arrays)
    buffers = [storage(program, k, sizes, arrays) for k in range(len(program.buffers))]
    functions = compile_all(program) if compiled else {}
    for instruction in program.instructions:
        if instruction.host is not None:
            run_host(program, instruction, buffers, sizes, arrays)
        elif instruction.extern:
            given = [evaluate(s, sizes) for s in instruction.sizes]
            python_matmul(np, [buffers[k] for k in instruction.operands], given)
            assert partition(*given[2:5], given[8]).total >= 0
        else:
            run_kernel(instruction, buffers, sizes, functions, chunk)
    outputs = []
    for number, v in zip(program.outputs, program.graph.outputs):
        shape = [evaluate(s, sizes) for s in v.shape]
        if program.buffers[number].role == "input":
            outputs.append(arrays[program.buffers[number].index])
        else:
            outputs.append(buffers[number].view(v.dtype.numpy).reshape(shape))
    return Results(outputs, arrays)


def kept_strides(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides."""
    if array.flags.c_contiguous or not array.size:
        return array.copy()
    length = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) // array.itemsize
    flat = np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,)).copy()
    return np.lib.stride_tricks.as_strided(flat, array.shape, array.strides)


def run_host(program: Program, instruction: Instruction, buffers: list, sizes: dict, arrays: list) -> None:
    node = instruction.host
    operands = iter(instruction.operands)

    def array(v: Any) -> Any:
        number = next(operands)
        buffer = program.buffers[number]
        if buffer.role == "input" and v.node is None:
            return arrays[buffer.index]
        return buffers[number].view(v.dtype.numpy).reshape([evaluate(s, sizes) for s in v.shape])

    given = tuple(array(x) if hasattr(x, "node") else at_size(x, sizes) for x in node.inputs)
    attributes = {k: at_size(x, sizes) for k, x in node.attributes.items()}
    results = run_arrays(node, given, attributes)
    for number, result, v in zip(operands, results, node.outputs):
        buffers[number][:] = np.ascontiguousarray(result, v.dtype.numpy).reshape(-1).view(buffers[number].dtype)


def run_kernel(instruction: Instruction, buffers: list, sizes: dict, functions: dict, step: int | None) -> None:
    kernel = instruction.kernel
    given = [evaluate(s, sizes) for s in instruction.sizes]
    total, chunk = evaluate(instruction.total, sizes), step or evaluate(instruction.chunk, sizes)
    status, scratch = np.zeros(4, np.int64), np.zeros(kernel.scratch_bytes + 64, np.uint8)
    if functions:
        def call(lo: int, hi: int) -> None:
            functions[kernel.digest](buffers, instruction.operands, given, scratch, status, lo, hi)
    else:
        namespace: dict[str, Any] = {}
        exec(compile(kernel.source, kernel.name, "exec"), namespace)

        def call(lo: int, hi: int) -> None:
            namespace[kernel.name](buffers, instruction.operands, given, scratch, status, lo, hi)
    with np.errstate(all="ignore"):
        for lo in range(0, total, chunk):
            call(lo, min(lo + chunk, total))
    if status[0]:
        raise IndexError(kernel.messages[status[0] - 1].format(int(status[1]), ""))


def compile_all(program: Program) -> dict[str, Any]:
    """Each kernel's native function, by digest."""
    import llvmlite.binding as llvm

    from tracejit.lowering.native import compile_kernels, symbol_of

    kernels = [k for k in program.kernels.values() if not k.name.startswith("matmul_")]
    if not kernels:
        return {}
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(""), llvm.Target.from_default_triple().create_target_machine())
    objects = compile_kernels(kernels)
    for data in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    functions = {}
    for kernel in kernels:
        address = engine.get_function_address(symbol_of(kernel.digest))
        native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5, ctypes.c_int64, ctypes.c_int64)(address)
        functions[kernel.digest] = _caller(native, engine)
    return functions


def _caller(native: Any, engine: Any) -> Any:
    def call(buffers: list, operands: Any, sizes: Any, scratch: Any, status: Any, lo: int, hi: int) -> None:
        table = np.array([b.ctypes.data for b in buffers], np.int64)
        numbers, extents = np.array(operands, np.int64), np.array([*sizes, 0], np.int64)
        native(*(x.ctypes.data for x in (table, numbers, extents, scratch, status)), lo, hi)

    call.engine = engine
    return call


def check(graph: Any, inputs: Sequence[Any], compiled: bool = False, rtol: float = 2e-6, atol: float = 1e-6,
          numerics: str = "fast") -> Program:
    """Lower, run, and compare with the interpreter."""
    program = lower(graph, numerics)
    inputs = [np.asarray(x, v.dtype.numpy) for x, v in zip(inputs, graph.inputs)]
    expected = interpret(graph, [kept_strides(x) for x in inputs])
    found = execute(program, inputs, compiled)
    for got, want in zip(found.outputs, expected.outputs, strict=True):
        compare(got, want, rtol, atol)
    written = {k for k, _ in expected.writes}
    for k, want in expected.writes:
        compare(found.inputs[k], want, rtol, atol)
    for k, before in enumerate(inputs):
        if k not in written:
            compare(found.inputs[k], before, 0, 0)
    return program


def compare(got: np.ndarray, want: Any, rtol: float, atol: float) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape, got.dtype, want.dtype)
    if want.dtype.kind in "fV" or want.dtype.itemsize == 2 and want.dtype.kind not in "iu":
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol, atol)
    else:
        np.testing.assert_array_equal(got, want)
