"""Translation of a kernel's text to LLVM IR by numba: any text numba's nopython mode takes.

In: a kernel's text and namespace. Out: LLVM IR of a module that defines its symbol in the one ABI,
not optimised. Called by `native` for texts that leave the subset of `kernel_emitter`. numba is
imported here, on first use: that costs about half a second, once.

Only numba's front end is used: bytecode, types, lowering. Its wrappers, rewrites, reference counts
and two optimiser runs are left out; `native` optimises all kernels of a program in one run.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import compiler, cpu, fastmathpass, funcdesc, lowering
from numba.core import typed_passes as typed
from numba.core import types as numba_types
from numba.core import untyped_passes as untyped
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import LoweringPass, PassManager, register_pass
from numba.core.cpu_options import FastMathOptions
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from tracejit.jit.lowering import abi
from tracejit.jit.lowering.kernel_emitter import function_definition, split_prologue
from tracejit.jit.lowering.kernel_primitives import I64, KERNEL_TYPE

types: Any = numba_types  # it takes most of its names from elsewhere at run time
_WORDS = types.CPointer(types.int64)
_ABI_TYPES = (_WORDS, _WORDS, _WORDS, types.CPointer(types.uint8), _WORDS, types.int64, types.int64)


class _Target(cpu.CPUContext):
    """numba's CPU target without the reference counting runtime."""

    def post_lowering(self, mod: Any, library: Any) -> None:
        if self.fastmath:
            fastmathpass.rewrite_module(mod, self.fastmath)


def _target() -> _Target:
    """Return numba's own context, with its table of implementations, under our class."""
    target = copy.copy(cpu_target.target_context)
    target.__class__ = _Target
    return target


class _Modules:
    """Stand-in for numba's code library: keeps the modules it is given, as they are."""

    def __init__(self, name: str, codegen: Any):
        self.name, self.codegen = name, codegen
        self.modules: list[Any] = []
        self.linked: list[Any] = []

    def create_ir_module(self, name: str) -> Any:
        return self.codegen._create_empty_module(name)

    def add_ir_module(self, module: Any) -> None:
        self.modules.append(module)

    def add_linking_library(self, library: Any) -> None:
        self.linked.append(library)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(LoweringPass):
    """Typed IR to LLVM IR, and no further."""

    _name = "tracejit_lowering"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        description = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes,
            mangler=state.targetctx.mangler, inline=False, noalias=True, abi_tags=(),
        )  # fmt: skip
        with state.targetctx.push_code_library(state.library):
            arguments = (state.targetctx, state.library, description, state.func_ir)
            lowering.Lower(*arguments, metadata=state.metadata).lower()
        state["cr"] = description
        return True


class _Compiler(compiler.CompilerBase):
    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("tracejit")
        for each in (
            untyped.TranslateByteCode, untyped.FixupArgs, untyped.IRProcessing,
            untyped.InlineClosureLikes, untyped.RewriteSemanticConstants, untyped.GenericRewrites,
            untyped.ReconstructSSA, typed.NopythonTypeInference, typed.PreLowerStripPhis,
            typed.InlineOverloads, typed.NopythonRewrites, typed.IRLegalization, _Lowering,
        ):  # fmt: skip
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


def emit_kernel(source: str, name: str, symbol: str, namespace: dict[str, Any]) -> list[str]:
    """Return LLVM IR of modules that together define `symbol`; numba's own errors pass through."""
    definition = function_definition(source, name)
    fetched, _ = split_prologue(definition, namespace)
    function = _hoisted(definition, fetched, namespace)
    arguments = tuple(
        types.int64 if element == "size" else types.CPointer(getattr(types, element))
        for _, element, _ in fetched
    )
    with global_compiler_lock:
        library, body = _compile(function, (*arguments, *_ABI_TYPES), namespace)
        linked = [str(each._get_module_for_linking()) for each in library.linked]
    _emit_entry(library.modules[-1], symbol, body, fetched)
    return [str(module) for module in library.modules] + linked


def _hoisted(
    definition: ast.FunctionDef, fetched: Sequence[tuple[str, str, int]], namespace: dict[str, Any]
) -> Callable[..., Any]:
    """Return the kernel with its leading fetches turned into parameters, so that they are
    `noalias`."""
    arguments = [ast.arg(name, lineno=1, col_offset=0) for name, _, _ in fetched]
    definition.args.args = arguments + definition.args.args
    skipped = len(fetched) + isinstance(getattr(definition.body[0], "value", None), ast.Constant)
    definition.body = definition.body[skipped:] or [ast.Pass(lineno=1, col_offset=0)]
    module = ast.fix_missing_locations(ast.Module([definition], []))
    scope = {key: _for_numba(value, namespace) for key, value in namespace.items()}
    exec(compile(module, f"<kernel {definition.name}>", "exec"), scope)
    return scope[definition.name]


def _for_numba(value: Any, namespace: dict[str, Any]) -> Any:
    if inspect.isfunction(value) and value in abi.POINTER_FUNCTIONS:
        return _pointer_intrinsic(*abi.POINTER_FUNCTIONS[value])
    in_package = (getattr(value, "__module__", None) or "").startswith("tracejit.")
    own = getattr(value, "__globals__", None) is namespace
    if inspect.isfunction(value) and (in_package or own):
        return _scalar_intrinsic(value)
    return value


def _compile(function: Any, arguments: tuple, namespace: dict[str, Any]) -> tuple[Any, Any]:
    flags = compiler.Flags()
    flags.error_model = "numpy"
    flags.fastmath = FastMathOptions(set(namespace.get("FASTMATH", ())))
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.release_gil = flags.noalias = True
    typing = cpu_target.typing_context
    target = _target()
    library = _Modules(function.__name__, target.codegen())
    run = _Compiler(typing, target, library, arguments, types.none, flags, {})
    description = run.compile_extra(function)
    return library, library.modules[-1].get_global(description.llvm_func_name)


def _emit_entry(
    module: Any, symbol: str, body: Any, fetched: Sequence[tuple[str, str, int]]
) -> None:
    """Emit the function in the one ABI: it fetches pointers and sizes, and calls numba's
    function."""
    body.linkage = "internal"
    body.attributes.add("noinline")
    entry = ir.Function(module, KERNEL_TYPE, symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    buffers, operands, sizes = entry.args[:3]
    result, error, *parameters = body.function_type.args
    values = [builder.alloca(result.pointee), builder.alloca(error.pointee)]
    for (_, element, k), kind in zip(fetched, parameters):
        table = sizes if element == "size" else operands
        value = builder.load(builder.gep(table, [ir.Constant(I64, k)]))
        if element != "size":
            value = builder.inttoptr(builder.load(builder.gep(buffers, [value])), kind)
        values.append(value)
    builder.call(body, [*values, *entry.args])
    builder.ret_void()


def _pointer_intrinsic(element: str, of_operands: bool) -> Any:
    kind = types.CPointer(getattr(types, element))

    @intrinsic
    def pointer(context, table, k):
        def codegen(context, builder, signature, arguments):
            where = builder.gep(arguments[0], [arguments[1]])
            result = context.get_value_type(kind)
            if of_operands:
                return builder.inttoptr(builder.load(where), result)
            return builder.bitcast(where, result)

        return kind(table, types.int64), codegen

    return pointer


def _scalar_intrinsic(function: Callable[..., Any]) -> Any:
    """Return a scalar function for whatever types it meets: its instructions are written in
    place."""
    from tracejit.jit.lowering.vector_math_intrinsics import as_intrinsic

    names = ", ".join(f"a{i}" for i in range(function.__code__.co_argcount))

    def typed_call(context, *found):
        kinds = [types.unliteral(kind) for kind in found]
        dtypes = ["bool" if kind == types.boolean else str(kind) for kind in kinds]
        return as_intrinsic(function, dtypes)._defn(context, *kinds)

    scope = {"typed_call": typed_call}
    exec(f"def {function.__name__}(context, {names}): return typed_call(context, {names})", scope)
    return intrinsic(scope[function.__name__])
