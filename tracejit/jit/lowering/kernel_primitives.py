"""Primitives of the runner's text and of library kernels: calls by address, atomics, vectors.

In: calls of the primitives that `abi` names. Out: LLVM instructions. Part of `kernel_emitter`.
"""

from __future__ import annotations

import ast
import platform
from typing import Any

import numpy as np
from llvmlite import ir

from tracejit.jit.lowering.abi import VECTOR_BYTES
from tracejit.jit.lowering.kernel_expressions import Expressions, Pointer, llvm_type
from tracejit.jit.lowering.vector_math_intrinsics import Scalar

I64 = ir.IntType(64)
WORDS = I64.as_pointer()
BYTES = ir.IntType(8).as_pointer()
KERNEL_TYPE = ir.FunctionType(ir.VoidType(), [WORDS, WORDS, WORDS, BYTES, WORDS, I64, I64])
# The instruction that tells the core it is spinning, by machine.
_YIELD: tuple[str, list[Any]] = ("llvm.aarch64.hint", [ir.Constant(ir.IntType(32), 1)])
_SPIN: tuple[str, list[Any]] = ("llvm.x86.sse2.pause", [])
_PAUSE = {"x86_64": _SPIN, "AMD64": _SPIN, "aarch64": _YIELD, "arm64": _YIELD}


def _mask_of(kind: Any) -> Any:
    return ir.VectorType(ir.IntType(1), kind.count)


class Primitives(Expressions):
    """Primitives of `abi`, one method each."""

    def primitive(self, name: str, node: ast.Call) -> Any:
        return getattr(self, name)(*node.args)

    def _word(self, pointer: Any, index: Any) -> Any:
        found = self.expression(pointer)
        if not isinstance(found, Pointer):
            raise self.error(pointer, "is no pointer")
        return self.element(found, index)

    def _from_address(self, value: Any, kind: Any) -> Any:
        return self.builder.inttoptr(self.index(value), kind)

    def call_kernel(self, address: Any, *arguments: Any) -> Scalar:
        """Call a kernel. Tables, scratch and status are given as addresses."""
        function = self._from_address(address, KERNEL_TYPE.as_pointer())
        values = [
            self.index(given) if kind == I64 else self._from_address(given, kind)
            for given, kind in zip(arguments, KERNEL_TYPE.args, strict=True)
        ]
        self.builder.call(function, values)
        return Scalar(ir.Constant(I64, 0), "int64")

    def call_function(self, address: Any, *arguments: Any) -> Scalar:
        kind = ir.FunctionType(I64, [I64] * len(arguments))
        function = self._from_address(address, kind.as_pointer())
        return Scalar(self.builder.call(function, [self.index(a) for a in arguments]), "int64")

    def pointer_at(self, address: Any) -> Pointer:
        return Pointer(self._from_address(address, WORDS), "int64")

    def address_of(self, pointer: Any) -> Scalar:
        found = self.expression(pointer)
        if not isinstance(found, Pointer):
            raise self.error(pointer, "is no pointer")
        return Scalar(self.builder.ptrtoint(found.value, I64), "int64")

    def _lanes(self, element: str) -> Any:
        kind = llvm_type(element)
        return ir.VectorType(kind, VECTOR_BYTES // np.dtype(element).itemsize)

    def load_vector(self, pointer: Any, index: Any) -> Scalar:
        found = self.expression(pointer)
        where = self.builder.bitcast(
            self.element(found, index), self._lanes(found.element).as_pointer()
        )
        loaded = self.builder.load(where, align=np.dtype(found.element).itemsize)
        found.accesses.append(loaded)
        return Scalar(loaded, found.element + " vector")

    def store_vector(self, pointer: Any, index: Any, vector: Any) -> Scalar:
        found, value = self.expression(pointer), self.expression(vector)
        where = self.builder.bitcast(
            self.element(found, index), self._lanes(found.element).as_pointer()
        )
        align = np.dtype(found.element).itemsize
        found.accesses.append(self.builder.store(value.value, where, align=align))
        return Scalar(ir.Constant(I64, 0), "int64")

    def spread(self, scalar: Any) -> Scalar:
        found = self.value(scalar)
        kind = self._lanes(found.dtype)
        empty, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        one = self.builder.insert_element(empty, found.value, first)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
        return Scalar(self.builder.shuffle_vector(one, empty, mask), found.dtype + " vector")

    def load_part(self, pointer: Any, index: Any, count: Any) -> Scalar:
        found = self.expression(pointer)
        kind = self._lanes(found.element)
        where = self.element(found, index)
        align = ir.Constant(ir.IntType(32), np.dtype(found.element).itemsize)
        read = self._masked("load", kind, kind, [where.type, align.type, _mask_of(kind), kind])
        zeros = ir.Constant(kind, [0.0] * kind.count)
        loaded = self.builder.call(read, [where, align, self._first(kind, count), zeros])
        found.accesses.append(loaded)
        return Scalar(loaded, found.element + " vector")

    def store_part(self, pointer: Any, index: Any, vector: Any, count: Any) -> Scalar:
        found, value = self.expression(pointer), self.expression(vector).value
        kind = self._lanes(found.element)
        where = self.element(found, index)
        align = ir.Constant(ir.IntType(32), np.dtype(found.element).itemsize)
        write = self._masked("store", ir.VoidType(), kind,
                             [kind, where.type, align.type, _mask_of(kind)])  # fmt: skip
        stored = self.builder.call(write, [value, where, align, self._first(kind, count)])
        found.accesses.append(stored)
        return Scalar(ir.Constant(I64, 0), "int64")

    def _masked(self, what: str, result: Any, kind: Any, arguments: list[Any]) -> Any:
        letter = "f32" if kind.element == ir.FloatType() else "f64"
        name = f"llvm.masked.{what}.v{kind.count}{letter}.p0"
        module = self.builder.module
        found = module.globals.get(name)
        return found or ir.Function(module, ir.FunctionType(result, arguments), name)

    def _first(self, kind: Any, count: Any) -> Any:
        """Return the mask of the first `count` elements."""
        build, lanes = self.builder, ir.VectorType(I64, kind.count)
        numbers = ir.Constant(lanes, list(range(kind.count)))
        empty, zeros = ir.Constant(lanes, ir.Undefined), ir.VectorType(ir.IntType(32), kind.count)
        one = build.insert_element(empty, self.index(count), ir.Constant(ir.IntType(32), 0))
        spread = build.shuffle_vector(one, empty, ir.Constant(zeros, [0] * kind.count))
        return build.icmp_signed("<", numbers, spread)

    def vector_sum(self, vector: Any) -> Scalar:
        """Add the second half to the first until one element is left: an order that is fixed."""
        found = self.expression(vector)
        value, count = found.value, found.value.type.count
        while count > 1:
            count //= 2
            halves = [ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(k, k + count)))
                      for k in (0, count)]
            low, high = (self.builder.shuffle_vector(value, value, half) for half in halves)
            value = self.builder.fadd(low, high)
        first = self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))
        return Scalar(first, found.dtype.removesuffix(" vector"))

    def atomic_add(self, pointer: Any, index: Any, value: Any) -> Scalar:
        where = self._word(pointer, index)
        before = self.builder.atomic_rmw("add", where, self.index(value), "seq_cst")
        return Scalar(before, "int64")

    def atomic_load(self, pointer: Any, index: Any) -> Scalar:
        where = self._word(pointer, index)
        return Scalar(self.builder.load_atomic(where, "seq_cst", 8), "int64")

    def atomic_store(self, pointer: Any, index: Any, value: Any) -> Scalar:
        where = self._word(pointer, index)
        self.builder.store_atomic(self.index(value), where, "seq_cst", 8)
        return Scalar(ir.Constant(I64, 0), "int64")

    def atomic_swap_if(self, pointer: Any, index: Any, expected: Any, new: Any) -> Scalar:
        where = self._word(pointer, index)
        before, after = self.index(expected), self.index(new)
        pair = self.builder.cmpxchg(where, before, after, "seq_cst", "seq_cst")
        return Scalar(self.builder.extract_value(pair, 1), "bool")

    def pause(self) -> Scalar:
        name, arguments = _PAUSE.get(platform.machine(), ("", []))
        if name:
            kind = ir.FunctionType(ir.VoidType(), [a.type for a in arguments])
            module = self.builder.module
            function = module.globals.get(name) or ir.Function(module, kind, name)
            self.builder.call(function, arguments)
        return Scalar(ir.Constant(I64, 0), "int64")
