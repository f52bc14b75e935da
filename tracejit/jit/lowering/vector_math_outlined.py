"""Functions that few elements need: a branch around a call, in loops that stay vectorised.

In: a scalar function marked `outlined`, a condition that seldom holds. Out: instructions that call
it where the condition does. Called by `vector_math_intrinsics`.

A loop with a plain call in it would not be vectorised. Here the called function names variants that
take a whole vector and a mask, and return at once where no lane needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LANES = (2, 4, 8)  # doubles in a vector of the processors there are
Write = Callable[[Any, Any], Any]  # (builder, argument) -> result


def outlined(function: Any) -> Any:
    """Mark a function of one float64 that is called, in a branch, rather than inlined."""
    function.outlined = True
    return function


def seldom(
    builder: Any, condition: Any, argument: Any, otherwise: Any, name: str, write: Write, cpu: bool
) -> Any:
    """Return the result of `write` for `argument` where `condition` holds, else `otherwise`."""
    before = builder.block
    with builder.if_then(condition, likely=False):
        result = builder.call(_function(builder.module, name, write, cpu), [argument])
        inside = builder.block
    merged = builder.phi(argument.type)
    merged.add_incoming(otherwise, before)
    merged.add_incoming(result, inside)
    return merged


def _function(module: Any, name: str, write: Write, cpu: bool) -> Any:
    """Return the function of that name in this module; `cpu`: with vector variants."""
    from llvmlite import ir

    name = f"tracejit_{name}"
    found = module.globals.get(name)
    if found is None:
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
        found = ir.Function(module, kind, name)
        found.linkage = "internal"
        found.attributes.add("noinline")
        builder = ir.IRBuilder(found.append_basic_block())
        builder.ret(write(builder, found.args[0]))
        if cpu:
            found.attributes = _attributes(name)
            _keep(module, [_variant(module, found, lanes) for lanes in LANES])
    return found


def _attributes(name: str) -> Any:
    """Return attributes of a function without effects that has vector variants."""
    from llvmlite import ir

    variants = ",".join(f"_ZGV_LLVM_M{n}v_{name}({name}_{n})" for n in LANES)
    names = ["nounwind", "readnone", "willreturn", "nosync", "nofree", "noinline", "cold"]
    names.append(f'"vector-function-abi-variant"="{variants}"')

    class Attributes(ir.values.FunctionAttributes):
        _known = frozenset(names)

    return Attributes(names)


def _variant(module: Any, scalar: Any, lanes: int) -> Any:
    """Make `scalar` of every lane of a vector; the function returns at once if the mask names
    none."""
    from llvmlite import ir

    kind, mask = ir.VectorType(ir.DoubleType(), lanes), ir.VectorType(ir.IntType(1), lanes)
    function = ir.Function(module, ir.FunctionType(kind, [kind, mask]), f"{scalar.name}_{lanes}")
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    bits = builder.bitcast(function.args[1], ir.IntType(lanes))
    result = ir.Constant(kind, ir.Undefined)
    with builder.if_then(builder.icmp_unsigned("==", bits, ir.Constant(bits.type, 0))):
        builder.ret(result)
    for lane in range(lanes):
        place = ir.Constant(ir.IntType(32), lane)
        one = builder.call(scalar, [builder.extract_element(function.args[0], place)])
        result = builder.insert_element(result, one, place)
    builder.ret(result)
    return function


def _keep(module: Any, functions: list[Any]) -> None:
    """Keep functions that nothing calls until loops are vectorised: LLVM must not drop them
    before."""
    from llvmlite import ir

    byte = ir.IntType(8).as_pointer()
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(byte, 0), "llvm.compiler.used")
        used.linkage, used.section, used.initializer = "appending", "llvm.metadata", None
    kept = [] if used.initializer is None else list(used.initializer.constant)
    kept += [function.bitcast(byte) for function in functions]
    used.value_type = ir.ArrayType(byte, len(kept))
    used.initializer = ir.Constant(used.value_type, kept)
