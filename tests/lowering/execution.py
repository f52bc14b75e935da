"""Graphs lowered and run on NumPy arrays, compared with the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.types import TensorType, float32
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.interpret import bind_symbols, interpret
from tracejit.jit.ir.sizes import evaluate
from tracejit.jit.lowering.lower import lower
from tracejit.jit.lowering.program import Program
from tracejit.jit.passes.open_composites import open_composites
from tracejit.jit.runtime.executable import Executable

HINTS = {"A": 5, "B": 7, "C": 19, "N": 300}


def graph_of(*specs: Any) -> tuple[Graph, list[Value]]:
    """A graph with inputs of these shapes (letters are symbols), or (shape, dtype)s."""
    graph, symbols = Graph("example"), {}
    for k, spec in enumerate(specs):
        shape, dtype = spec if spec and isinstance(spec[0], tuple) else (spec, float32)
        for d, size in enumerate(shape):
            if isinstance(size, str) and size not in symbols:
                symbols[size] = graph.scope.symbol(HINTS.get(size, 6), size)
                graph.symbol_sources[size] = ("size", k, d)
        graph.input(TensorType(dtype, tuple(symbols.get(s, s) for s in shape)), f"x{k}")
    return graph, list(graph.inputs)


def kept_strides(array: np.ndarray) -> np.ndarray:
    """A copy with the same strides."""
    if array.flags.c_contiguous or not array.size:
        return array.copy()
    length = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides)) // array.itemsize
    flat = np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,)).copy()
    return np.lib.stride_tricks.as_strided(flat, array.shape, array.strides)


def execute(
    program: Program, inputs: Sequence[np.ndarray], mode: str = "python"
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(outputs, what the inputs hold afterwards); the given arrays are not touched."""
    arrays = [kept_strides(x) for x in inputs]
    sizes = bind_symbols(program.graph, arrays)
    executable = Executable(program, mode)
    binding = executable.bind(sizes)
    with np.errstate(all="ignore"):
        storages = executable.run(binding, [x.ctypes.data for x in arrays])
    outputs = []
    for storage, number, v in zip(storages, program.outputs, program.graph.outputs):
        shape = [evaluate(s, sizes) for s in v.shape]
        if storage is None:
            outputs.append(arrays[program.buffers[number].index])
            continue
        count = int(np.prod(shape, dtype=int)) * v.dtype.itemsize
        data = ctypes.string_at(storage._ptr, count) if count else b""
        outputs.append(np.frombuffer(data, v.dtype.numpy).reshape(shape))
    return outputs, arrays


def check(
    graph: Graph,
    inputs: Sequence[Any],
    mode: str = "python",
    rtol: float = 2e-6,
    atol: float = 1e-6,
    numerics: str = "fast",
) -> Program:
    """Lower, run, and compare with the interpreter: outputs, writes, and inputs left alone."""
    program = lower(open_composites(graph, numerics), numerics)
    inputs = [np.asarray(x, v.dtype.numpy) for x, v in zip(inputs, graph.inputs)]
    expected = interpret(graph, [kept_strides(x) for x in inputs])
    outputs, after = execute(program, inputs, mode)
    for got, want in zip(outputs, expected.outputs, strict=True):
        compare(got, want, rtol, atol)
    held = {**dict(enumerate(inputs)), **dict(expected.writes)}
    for k, got in enumerate(after):
        compare(got, held[k], rtol, atol)
    return program


def compare(got: np.ndarray, want: Any, rtol: float, atol: float) -> None:
    """Equal shape and dtype; floats within the tolerance, all else exactly."""
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype, f"{got.dtype} {want.dtype}"
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol, atol)
