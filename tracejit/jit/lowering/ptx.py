"""Kernels to PTX, by the LLVM that compiles them for the CPU: no CUDA toolkit, no GPU.

In: a Kernel and a compute capability. Out: PTX text that defines `symbol_of(digest)`, a CUDA kernel
with these parameters, addresses in device memory and 64-bit integers:

    buffers, operands, sizes, scratch   the tables of the one ABI, and scratch for all workers
    failed, status       the program's word, and this instruction's pair (number, value)
    total                the range the grid works on
    scratch_stride       bytes of scratch from one worker to the next
    guarded              not 0: it writes what a caller sees, so it does nothing after a failure

Called by the runtime when its cache does not have a kernel. The statements are those of `grid`,
translated by `kernel_emitter`, so that both targets agree on what a text means. PTX is of the
oldest version that knows the processor, so that older drivers load it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from tracejit.jit.lowering import abi, grid
from tracejit.jit.lowering.grid import GridKernel
from tracejit.jit.lowering.kernel_emitter import Statements, function_definition, split_prologue
from tracejit.jit.lowering.kernel_expressions import (
    FUNCTIONS,
    Pointer,
    is_float,
    is_unsigned,
    llvm_type,
)
from tracejit.jit.lowering.kernel_primitives import BYTES, I64, WORDS
from tracejit.jit.lowering.native import KernelError, symbol_of
from tracejit.jit.lowering.program import Kernel
from tracejit.jit.lowering.vector_math_intrinsics import Scalar, UnsupportedSyntax

_I32 = ir.IntType(32)
_GLOBAL, _SHARED = 1, 3  # address spaces
_TRIPLE = "nvptx64-nvidia-cuda"
CAPABILITIES = (70, 75, 80, 86, 89, 90, 100, 120)
PARAMETERS = (
    "buffers", "operands", "sizes", "scratch", "failed", "status", "total", "scratch_stride",
    "guarded",
)  # fmt: skip


def supported(capability: tuple[int, int]) -> int:
    """Return the newest processor PTX is made for that this one can run, e.g. 90 for (9, 0).

    Raises KernelError for processors older than all of them.

    >>> supported((9, 0)), supported((8, 7))
    (90, 86)
    """
    known = [c for c in CAPABILITIES if c <= capability[0] * 10 + capability[1]]
    if not known:
        oldest = divmod(CAPABILITIES[0], 10)
        raise KernelError(
            f"compute capability {capability[0]}.{capability[1]}: kernels need "
            f"{oldest[0]}.{oldest[1]} or newer"
        )
    return known[-1]


def compile_kernel(kernel: Kernel, processor: int) -> str:
    """Return PTX of a kernel for sm_<processor>.

    Raises KernelError where a text has no CUDA form, e.g. one of complex numbers.
    """
    try:
        text = emit_kernel(grid.deal(kernel))
    except (UnsupportedSyntax, ValueError, SyntaxError, KeyError) as error:
        raise KernelError(f"kernel {kernel.name} has no CUDA form: {error}") from error
    return _assembly(text, processor)


def emit_kernel(dealt: GridKernel) -> str:
    """Return LLVM IR of the kernel, not optimised."""
    from tracejit.jit.lowering.native import namespace_of

    kernel = dealt.kernel
    definition = function_definition(dealt.source, kernel.name)
    namespace = namespace_of(kernel) | _GRID_NAMES
    fetched, body = split_prologue(definition, namespace)
    module = ir.Module(symbol_of(kernel.digest))
    inner = _body_function(module, fetched)
    flags = tuple(namespace.get("FASTMATH", (FUNCTIONS,)))
    names = [(n, "int64" if e == "size" else e, e != "size") for n, e, _ in fetched]
    GridStatements(inner, names, namespace, flags, kernel.name).run(body)
    _Entry(module, symbol_of(kernel.digest)).write(dealt, inner, fetched)
    return str(module)


_GRID_NAMES: dict[str, Any] = {f.__name__: f for f in abi.SCRATCH.values()}
_GRID_NAMES["barrier"] = grid.barrier


def _body_function(
    module: ir.Module, fetched: Sequence[tuple[str, str, int]], name: str = "body"
) -> ir.Function:
    """Make the function of the statements. Its parameters are what they fetch first, the ABI's, and
    `grid.PLACES`."""
    first = [I64 if e == "size" else llvm_type(e).as_pointer() for _, e, _ in fetched]
    rest = [WORDS, WORDS, WORDS, BYTES, WORDS, I64, I64, BYTES, I64, I64, I64, I64]
    inner = ir.Function(module, ir.FunctionType(ir.VoidType(), [*first, *rest]), name)
    inner.linkage = "internal"
    inner.attributes.add("alwaysinline")
    for argument in inner.args[: len(first)]:
        if argument.type.is_pointer:
            argument.add_attribute("noalias")
    return inner


class GridStatements(Statements):
    """Statements of a text for a grid."""

    target = "ptx"

    def __init__(self, function: ir.Function, fetched: Sequence[tuple[str, str, bool]],
                 namespace: dict[str, Any], flags: tuple[str, ...], source_name: str):  # fmt: skip
        super().__init__(function, fetched, namespace, flags, source_name)
        for name, argument in zip(grid.PARAMETERS, function.args[len(fetched) :]):
            if argument.type == I64:
                self.fixed[name] = Scalar(argument, "int64")
            else:
                self.fixed[name] = Pointer(argument, "uint8" if argument.type == BYTES else "int64")

    def call(self, function: Any, node: ast.Call) -> Any:
        if function is grid.barrier:
            return self._barrier()
        return super().call(function, node)

    def _barrier(self) -> Scalar:
        _call(self.builder, "llvm.nvvm.barrier0", ir.VoidType())
        return Scalar(ir.Constant(I64, 0), "int64")

    def remainder(self, node: ast.Call) -> Scalar:
        """Compute the remainder, of floats exactly: the processor's own expansion of it is not
        exact."""
        a, b = self.pair(node, *node.args)
        if not is_float(a.dtype):
            return super().remainder(node)
        return Scalar(_exact_remainder(self, a, b), a.dtype)

    def convert(self, source: Scalar, dtype: str) -> Scalar:
        """Convert floats to integers as the CPU does: a value that does not fit becomes the least
        integer."""
        if not is_float(source.dtype) or is_float(dtype) or dtype == "bool" or is_unsigned(dtype):
            return super().convert(source, dtype)
        wide = _CONVERTED[dtype]
        build, kind = self.builder, source.value.type
        limit = ir.Constant(kind, float(2 ** (wide - 1)))
        fits = build.fcmp_ordered("<", source.value, limit)
        above = build.fcmp_ordered(">=", source.value, ir.Constant(kind, -float(2 ** (wide - 1))))
        width = ir.IntType(wide)
        least = ir.Constant(width, -(2 ** (wide - 1)))
        kept = build.select(build.and_(fits, above), source.value, ir.Constant(kind, 0.0))
        whole = build.fptosi(kept, width)
        found = build.select(build.and_(fits, above), whole, least)
        target = llvm_type(dtype)
        return Scalar(build.trunc(found, target) if target.width < wide else found, dtype)


# the CPU converts floats to small integers by way of 32 bits
_CONVERTED = {"int8": 32, "int16": 32, "int32": 32, "int64": 64}


def _exact_remainder(write: GridStatements, a: Scalar, b: Scalar) -> Any:
    """Compute C's fmod: |b| times the largest power of two that fits is taken off until nothing
    does.

    Every step is exact. The sign is that of a; NaN for an infinite a and for b = 0.
    """
    build, kind = write.builder, a.value.type
    zero, half = ir.Constant(kind, 0.0), ir.Constant(kind, 0.5)
    absolute = build.module.declare_intrinsic("llvm.fabs", [kind])
    x, y = build.call(absolute, [a.value]), build.call(absolute, [b.value])
    finite = build.fcmp_ordered("<", x, ir.Constant(kind, float("inf")))
    valid = build.and_(finite, build.fcmp_ordered(">", y, zero))
    names = ("outer", "grow", "take", "again", "after")
    start, (outer, grow, take, again, after) = build.basic_block, map(write.new_block, names)
    build.cbranch(valid, outer, after)
    build.position_at_end(outer)
    rest = build.phi(kind)
    rest.add_incoming(x, start)
    build.cbranch(build.fcmp_ordered(">=", rest, y), grow, after)
    build.position_at_end(grow)
    part = build.phi(kind)
    part.add_incoming(y, outer)
    # part <= rest / 2 keeps twice the part finite; halving a rest that is not tiny is exact
    build.cbranch(build.fcmp_ordered("<=", part, build.fmul(rest, half)), again, take)
    build.position_at_end(again)
    part.add_incoming(build.fadd(part, part), again)
    build.branch(grow)
    build.position_at_end(take)
    rest.add_incoming(build.fsub(rest, part), take)
    build.branch(outer)
    build.position_at_end(after)
    found = build.phi(kind)
    found.add_incoming(ir.Constant(kind, float("nan")), start)
    found.add_incoming(rest, outer)
    copysign = build.module.declare_intrinsic(
        "llvm.copysign", [kind], ir.FunctionType(kind, [kind, kind])
    )
    return build.call(copysign, [found, a.value])


class _Entry:
    """Writes the CUDA kernel: who this thread is, then the body."""

    def __init__(self, module: ir.Module, symbol: str):
        kind = ir.FunctionType(ir.VoidType(), [I64] * len(PARAMETERS))
        self.module = module
        self.function = ir.Function(module, kind, symbol)
        self.function.calling_convention = "ptx_kernel"
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.given = dict(zip(PARAMETERS, self.function.args))

    def write(self, dealt: GridKernel, inner: Any, fetched: Sequence[tuple[str, str, int]]) -> None:
        build, given = self.builder, self.given
        failed = self._pointer(given["failed"], WORDS)
        status = self._pointer(given["status"], WORDS)
        self._leave_after_failure(failed)
        worker, workers, lane, lanes = self._places(dealt.kind)
        scratch = build.add(given["scratch"], build.mul(worker, given["scratch_stride"]))
        tables = [self._pointer(given[n], WORDS) for n in ("buffers", "operands", "sizes")]
        values = [self._fetched(tables, element, k) for _, element, k in fetched]
        memory = [*tables, self._pointer(scratch, BYTES), status]
        span = [ir.Constant(I64, 0), given["total"]]
        build.call(inner, [*values, *memory, *span, self._shared(), worker, workers, lane, lanes])
        if dealt.checked:
            reported = build.icmp_signed("!=", build.load(status), ir.Constant(I64, 0))
            with build.if_then(reported):
                build.store(ir.Constant(I64, 1), failed)
        build.ret_void()

    def _leave_after_failure(self, failed: Any) -> None:
        build, zero = self.builder, ir.Constant(I64, 0)
        with build.if_then(build.icmp_signed("!=", self.given["guarded"], zero)):
            with build.if_then(build.icmp_signed("!=", build.load(failed), zero)):
                build.ret_void()

    def _places(self, kind: str) -> list[Any]:
        """Return worker, workers, lane, lanes."""
        thread, block = self._index("tid.x"), self._index("ctaid.x")
        threads, blocks = self._index("ntid.x"), self._index("nctaid.x")
        if kind in ("row", "column"):
            return [block, blocks, thread, threads]
        build = self.builder
        worker = build.add(build.mul(block, threads), thread)
        return [worker, build.mul(blocks, threads), ir.Constant(I64, 0), ir.Constant(I64, 1)]

    def _index(self, name: str) -> Any:
        return self.builder.zext(_call(self.builder, f"llvm.nvvm.read.ptx.sreg.{name}", _I32), I64)

    def _pointer(self, address: Any, kind: Any) -> Any:
        """Return a pointer said to be in global memory, so that loads need not ask where an address
        lies."""
        placed = kind.pointee.as_pointer(_GLOBAL)
        return self.builder.addrspacecast(self.builder.inttoptr(address, placed), kind)

    def _fetched(self, tables: Sequence[Any], element: str, k: int) -> Any:
        build, (buffers, operands, sizes) = self.builder, tables
        if element == "size":
            return build.load(build.gep(sizes, [ir.Constant(I64, k)]))
        number = build.load(build.gep(operands, [ir.Constant(I64, k)]))
        address = build.load(build.gep(buffers, [number]))
        return self._pointer(address, llvm_type(element).as_pointer())

    def _shared(self) -> Any:
        kind = ir.ArrayType(ir.IntType(8), grid.SHARED_BYTES)
        memory = ir.GlobalVariable(self.module, kind, "shared", _SHARED)
        memory.linkage, memory.align = "internal", 8
        memory.initializer = ir.Constant(kind, ir.Undefined)
        first = memory.gep([ir.Constant(_I32, 0), ir.Constant(_I32, 0)])
        return self.builder.addrspacecast(first, BYTES)


def _call(builder: ir.IRBuilder, name: str, result: Any) -> Any:
    """Call an intrinsic without arguments."""
    module = builder.module
    known = module.globals.get(name)
    if known is None:
        known = ir.Function(module, ir.FunctionType(result, []), name)
    return builder.call(known, [])


# -- LLVM ----------------------------------------------------------------------------------------


@functools.cache
def _target() -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(_TRIPLE)


def _assembly(text: str, processor: int) -> str:
    machine = _target().create_target_machine(cpu=f"sm_{processor}", opt=3)
    kept = [line for line in text.splitlines() if not line.startswith("target ")]
    head = f'target triple = "{_TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(head + "\n".join(kept), llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)
