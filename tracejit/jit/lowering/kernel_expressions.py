"""Expressions of a kernel's text to LLVM values.

In: an `ast` expression, an LLVM builder, and the types of the names in it. Out: a typed value. Used
by `kernel_emitter`, which does statements. An expression outside the subset raises
UnsupportedSyntax, and the kernel is left to numba. An operation takes operands of one type.
Literals adapt to the type they meet when they fit it exactly. Integers wrap, `//` and `%` round
down, x / 0 is 0.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
from llvmlite import ir

from tracejit.jit.lowering import abi
from tracejit.jit.lowering.vector_math_intrinsics import Scalar, UnsupportedSyntax, emit

WIDTHS = {
    "bool": 1, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32,
    "int64": 64, "uint64": 64,
}  # fmt: skip
# A module's FASTMATH: products fuse into sums within functions of vector math, where error bounds
# count on it, and not between operations of the program, each of which rounds as in NumPy.
FUNCTIONS = "functions"
LITERAL = "literal"  # the dtype of a number in the text, until it meets a typed value

_FLOAT_OPS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INT_OPS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.LShift: "shl",
}  # fmt: skip
_COMPARE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_BUILTINS = {"abs": abs, "min": min, "max": max, "int": int, "float": float, "bool": bool}
_ROUNDING = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint",
             "abs": "fabs", "fabs": "fabs"}  # fmt: skip


class Pointer:
    """Typed pointer: an argument of the kernel's body, or computed.

    - `indices`: it leads to sizes and places, not to elements
    - `local`: its memory is the kernel's own, which LLVM sees
    - `accesses`: loads and stores through it, for `separate`
    """

    def __init__(self, value: Any, element: str, indices: bool = False, local: bool = False):
        self.value, self.element, self.indices, self.local = value, element, indices, local
        self.accesses: list[Any] = []


def llvm_type(dtype: str) -> Any:
    """Return the LLVM type of a scalar of this dtype; KeyError where there is none (complex)."""
    if dtype == "float32":
        return ir.FloatType()
    return ir.DoubleType() if dtype == "float64" else ir.IntType(WIDTHS[dtype])


def constant(value: Any, dtype: str) -> Scalar:
    if dtype != "bool":
        value = float(value) if is_float(dtype) else int(value)
    near = dtype == "int64" and abs(value) < 1 << 31
    return Scalar(ir.Constant(llvm_type(dtype), value), dtype, near)


def is_float(dtype: str) -> bool:
    return dtype.startswith("float")


def is_unsigned(dtype: str) -> bool:
    return dtype.startswith("u") or dtype == "bool"


def reads_memory(node: ast.AST) -> bool:
    return any(isinstance(part, (ast.Subscript, ast.Call)) and not _is_cast(part)
               for part in ast.walk(node))  # fmt: skip


def _is_cast(node: ast.AST) -> bool:
    """Return True for np.float32(1.5) and the like, which touch no memory."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


class Expressions:
    """Evaluates expressions at the builder's position."""

    builder: Any
    globals: dict[str, Any]
    flags: tuple[str, ...]  # of operations
    contract: bool  # of functions
    source_name: str
    target = "cpu"

    def load_name(self, name: str) -> Any:
        """Return the value of a local, or None."""
        raise NotImplementedError

    def error(self, node: Any, why: str) -> UnsupportedSyntax:
        line = getattr(node, "lineno", 0)
        return UnsupportedSyntax(f"{self.source_name}:{line}: {ast.unparse(node)!r}: {why}")

    def expression(self, node: Any) -> Any:
        method = getattr(self, "visit_" + type(node).__name__, None)
        if method is None:
            raise self.error(node, "is not in the subset")
        return method(node)

    def value(self, node: Any) -> Scalar:
        """Return a typed scalar. A literal alone is int64, float64 or bool."""
        return self.typed(self.expression(node), node)

    def typed(self, found: Any, node: Any) -> Scalar:
        if not isinstance(found, Scalar):
            raise self.error(node, "is no scalar")
        if found.dtype != LITERAL:
            return found
        kind = type(found.value)
        return constant(found.value, {bool: "bool", int: "int64", float: "float64"}[kind])

    def condition(self, node: Any) -> Any:
        found = self.value(node)
        if found.dtype == "bool":
            return found.value
        zero = ir.Constant(found.value.type, 0)
        if is_float(found.dtype):
            return self.builder.fcmp_unordered("!=", found.value, zero)
        return self.builder.icmp_unsigned("!=", found.value, zero)

    def index(self, node: Any) -> Any:
        found = self.value(node)
        if is_float(found.dtype):
            raise self.error(node, "is no integer")
        return self.convert(found, "int64").value

    # -- leaves ----------------------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> Scalar:
        if not isinstance(node.value, (bool, int, float)):
            raise self.error(node, "is no number")
        return Scalar(node.value, LITERAL)

    def visit_Name(self, node: ast.Name) -> Any:
        found = self.load_name(node.id)
        return found if found is not None else self.of_python(self.globals.get(node.id), node)

    def of_python(self, value: Any, node: Any) -> Any:
        if isinstance(value, np.generic):
            dtype = value.dtype.name
            if dtype in WIDTHS or is_float(dtype):
                return constant(value.item(), dtype)
        if isinstance(value, (bool, int, float)):
            return Scalar(value, LITERAL)
        raise self.error(node, "is neither a local nor a number of the module")

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.globals.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if inspect.ismodule(owner):
            return self.of_python(getattr(owner, node.attr, None), node)
        raise self.error(node, "is not in the subset")

    def visit_Subscript(self, node: ast.Subscript) -> Scalar:
        pointer = self.expression(node.value)
        if not isinstance(pointer, Pointer):
            raise self.error(node, "indexes what is no pointer")
        loaded = self.builder.load(self.element(pointer, node.slice))
        pointer.accesses.append(loaded)
        return Scalar(loaded, pointer.element, pointer.indices)

    def element(self, pointer: Pointer, index: Any) -> Any:
        return self.builder.gep(pointer.value, [self.index(index)], inbounds=True)

    # -- operators -------------------------------------------------------------------------------

    def pair(self, node: Any, left: Any, right: Any) -> tuple[Scalar, Scalar]:
        a, b = self.expression(left), self.expression(right)
        if not isinstance(a, Scalar) or not isinstance(b, Scalar):
            raise self.error(node, "takes scalars")
        if a.dtype == LITERAL and b.dtype == LITERAL:
            return self.typed(a, node), self.typed(b, node)
        a, b = self.adapt(a, b.dtype, node), self.adapt(b, a.dtype, node)
        if a.dtype != b.dtype:
            raise self.error(node, f"mixes {a.dtype} and {b.dtype}")
        return a, b

    def adapt(self, literal: Scalar, dtype: str, node: Any) -> Scalar:
        if literal.dtype != LITERAL or dtype == LITERAL:
            return literal
        number = literal.value
        if is_float(dtype):
            exact = float(np.dtype(dtype).type(number)) == number or number != number
        else:
            exact = not isinstance(number, float) and (dtype == "bool") == isinstance(number, bool)
            if exact and dtype != "bool":
                bounds = np.iinfo(dtype)
                exact = bounds.min <= number <= bounds.max
        if not exact:
            raise self.error(node, f"{number!r} is no {dtype}")
        return constant(number, dtype)

    def visit_BinOp(self, node: ast.BinOp) -> Scalar:
        a, b = self.pair(node, node.left, node.right)
        kind = type(node.op)
        if is_float(a.dtype):
            if kind not in _FLOAT_OPS:
                raise self.error(node, "is no float operation here")
            operation = getattr(self.builder, _FLOAT_OPS[kind])
            return Scalar(operation(a.value, b.value, flags=self.flags), a.dtype)
        if kind in (ast.FloorDiv, ast.Mod):
            found = self.floor_divide(a, b, kind is ast.Mod)
            return Scalar(found, a.dtype, a.is_index and b.is_index)
        if kind is ast.RShift:
            shift = self.builder.lshr if is_unsigned(a.dtype) else self.builder.ashr
            return Scalar(shift(a.value, b.value), a.dtype)
        if kind not in _INT_OPS or (a.dtype == "bool" and kind in (ast.Add, ast.Sub, ast.Mult)):
            raise self.error(node, "is no integer operation here")
        # Index arithmetic that overflows is a wrong program anyway; saying so helps LLVM.
        index = a.is_index and b.is_index
        wraps = {"flags": ("nsw",)} if index and kind in (ast.Add, ast.Sub) else {}
        made = getattr(self.builder, _INT_OPS[kind])(a.value, b.value, **wraps)
        return Scalar(made, a.dtype, index)

    def floor_divide(self, a: Scalar, b: Scalar, remainder: bool) -> Any:
        build, zero = self.builder, ir.Constant(b.value.type, 0)
        by_zero = build.icmp_unsigned("==", b.value, zero)
        divisor = build.select(by_zero, ir.Constant(b.value.type, 1), b.value)
        if is_unsigned(a.dtype):
            result = (build.urem if remainder else build.udiv)(a.value, divisor)
        else:
            negates = self.negates(a, b)
            divisor = build.select(negates, ir.Constant(b.value.type, 1), divisor)
            rest = build.srem(a.value, divisor)
            differ = build.icmp_signed("<", build.xor(rest, divisor), zero)
            lower = build.and_(build.icmp_signed("!=", rest, zero), differ)
            if remainder:
                result = build.select(lower, build.add(rest, divisor), rest)
            else:
                quotient = build.sdiv(a.value, divisor)
                below = build.sub(quotient, ir.Constant(zero.type, 1))
                result = build.select(lower, below, quotient)
                result = build.select(negates, build.neg(a.value), result)
        return build.select(by_zero, zero, result)

    def negates(self, a: Scalar, b: Scalar) -> Any:
        """Return a truth value: b is -1, so the division negates. The processor's own division
        traps for the smallest integer."""
        if a.is_index and b.is_index:
            return ir.Constant(ir.IntType(1), 0)
        return self.builder.icmp_signed("==", b.value, ir.Constant(b.value.type, -1))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Scalar:
        if isinstance(node.op, ast.Not):
            return Scalar(self.builder.not_(self.condition(node.operand)), "bool")
        a = self.expression(node.operand)
        if isinstance(a, Scalar) and a.dtype == LITERAL and isinstance(node.op, ast.USub):
            return Scalar(-a.value, LITERAL)
        a = self.typed(a, node)
        if isinstance(node.op, ast.USub):
            negate = self.builder.fneg if is_float(a.dtype) else self.builder.neg
            return Scalar(negate(a.value), a.dtype, a.is_index)
        if isinstance(node.op, ast.Invert) and not is_float(a.dtype):
            return Scalar(self.builder.not_(a.value), a.dtype)
        raise self.error(node, "is not in the subset")

    def visit_Compare(self, node: ast.Compare) -> Scalar:
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
            raise self.error(node, "is not in the subset")
        a, b = self.pair(node, node.left, node.comparators[0])
        return Scalar(self.compare(_COMPARE[type(node.ops[0])], a, b), "bool")

    def compare(self, sign: str, a: Scalar, b: Scalar) -> Any:
        if is_float(a.dtype):
            unordered = sign == "!="
            make = self.builder.fcmp_unordered if unordered else self.builder.fcmp_ordered
        else:
            unsigned = is_unsigned(a.dtype)
            make = self.builder.icmp_unsigned if unsigned else self.builder.icmp_signed
        return make(sign, a.value, b.value)

    def visit_BoolOp(self, node: ast.BoolOp) -> Scalar:
        result = self.condition(node.values[0])
        is_and = isinstance(node.op, ast.And)
        for part in node.values[1:]:
            if reads_memory(part):
                result = self.lazily(result, part, is_and)
            else:
                join = self.builder.and_ if is_and else self.builder.or_
                result = join(result, self.condition(part))
        return Scalar(result, "bool")

    def lazily(self, known: Any, part: Any, is_and: bool) -> Any:
        """Evaluate the right side of `and`/`or` in a branch: it may index out of range unless the
        left side allows it."""
        test = known if is_and else self.builder.not_(known)
        before = self.builder.basic_block
        with self.builder.if_then(test):
            other = self.condition(part)
            inside = self.builder.basic_block
        joined = self.builder.phi(ir.IntType(1))
        joined.add_incoming(ir.Constant(ir.IntType(1), int(not is_and)), before)
        joined.add_incoming(other, inside)
        return joined

    def visit_IfExp(self, node: ast.IfExp) -> Scalar:
        test = self.condition(node.test)
        if not (reads_memory(node.body) or reads_memory(node.orelse)):
            a, b = self.pair(node, node.body, node.orelse)
            return Scalar(self.builder.select(test, a.value, b.value), a.dtype)
        with self.builder.if_else(test) as (then, otherwise):
            with then:
                a = self.value(node.body)
                first = self.builder.basic_block
            with otherwise:
                b = self.value(node.orelse)
                second = self.builder.basic_block
        if a.dtype != b.dtype:
            raise self.error(node, f"mixes {a.dtype} and {b.dtype}")
        joined = self.builder.phi(a.value.type)
        joined.add_incoming(a.value, first)
        joined.add_incoming(b.value, second)
        return Scalar(joined, a.dtype)

    # -- calls -----------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> Any:
        if node.keywords:
            raise self.error(node, "has keyword arguments")
        called = node.func
        if isinstance(called, ast.Attribute):
            if called.attr == "view":
                return self.view(self.value(called.value), node)
            owner = called.value.id if isinstance(called.value, ast.Name) else ""
            module = self.globals.get(owner)
            function = getattr(module, called.attr, None) if inspect.ismodule(module) else None
        elif isinstance(called, ast.Name):
            function = self.globals.get(called.id, _BUILTINS.get(called.id))
        else:
            raise self.error(node, "is not in the subset")
        return self.call(function, node)

    def call(self, function: Any, node: ast.Call) -> Any:
        if function in abi.POINTER_FUNCTIONS:
            return self.make_pointer(*abi.POINTER_FUNCTIONS[function], node)
        if function in abi.LOCAL_FUNCTIONS:
            return self.make_local(abi.LOCAL_FUNCTIONS[function], node)
        if function in abi.PRIMITIVES.values():
            return self.primitive(function.__name__, node)
        if isinstance(function, type) and issubclass(function, (np.generic, bool, int, float)):
            return self.cast(function, node)
        if function in (min, max):
            return self.extremum(function is min, node)
        if function is abs:
            return self.rounding("abs", node)
        if isinstance(function, np.ufunc) and function.__name__ in (*_ROUNDING, "absolute"):
            return self.rounding(function.__name__.replace("absolute", "abs"), node)
        if isinstance(function, np.ufunc) and function is np.isnan:
            a = self.value(node.args[0])
            return Scalar(self.builder.fcmp_unordered("uno", a.value, a.value), "bool")
        if function is np.fmod:
            return self.remainder(node)
        if inspect.isfunction(function):
            arguments = [self.value(a) for a in node.args]
            found = emit(
                self.builder, function, arguments, contract=self.contract, target=self.target
            )
            return found if isinstance(found, Scalar) else tuple(found)
        raise self.error(node, "calls what the subset does not have")

    def make_pointer(self, element: str, of_operands: bool, node: ast.Call) -> Pointer:
        if element not in WIDTHS and not is_float(element):
            raise self.error(node, f"{element} has no kernel form here")
        table, number = self.expression(node.args[0]), self.index(node.args[1])
        where = self.builder.gep(table.value, [number], inbounds=True)
        kind = llvm_type(element).as_pointer()
        if of_operands:
            return Pointer(self.builder.inttoptr(self.builder.load(where), kind), element)
        return Pointer(self.builder.bitcast(where, kind), element)

    def make_local(self, element: str, node: ast.Call) -> Pointer:
        raise self.error(node, "is for kernels only")

    def primitive(self, name: str, node: ast.Call) -> Any:
        raise self.error(node, "is for the runner only")

    def cast(self, function: type, node: ast.Call) -> Scalar:
        dtype = {int: "int64", float: "float64", bool: "bool"}.get(function)
        dtype = dtype or np.dtype(function).name
        if dtype not in WIDTHS and not is_float(dtype):
            raise self.error(node, f"{dtype} has no kernel form here")
        argument = self.cast_argument(node.args[0])
        if argument.dtype != LITERAL:
            return self.convert(argument, dtype)
        return constant(np.dtype(dtype).type(argument.value).item(), dtype)

    def cast_argument(self, node: Any) -> Scalar:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return Scalar(float(node.value), LITERAL)  # float("inf")
        found = self.expression(node)
        if not isinstance(found, Scalar):
            raise self.error(node, "is no scalar")
        return found

    def convert(self, source: Scalar, dtype: str) -> Scalar:
        """Convert as C does, and so NumPy. Out of range, the processor decides in both."""
        value, kind, build = source.value, llvm_type(dtype), self.builder
        if source.dtype == dtype:
            return source
        if dtype == "bool":
            zero = constant(0, source.dtype)
            return Scalar(self.compare("!=", source, zero), "bool")
        if is_float(source.dtype) and is_float(dtype):
            done = build.fpext(value, kind) if dtype == "float64" else build.fptrunc(value, kind)
        elif is_float(dtype):
            make = build.uitofp if is_unsigned(source.dtype) else build.sitofp
            done = make(value, kind)
        elif is_float(source.dtype) and WIDTHS[dtype] < 32:  # by way of an int, as in C
            done = build.trunc(build.fptosi(value, ir.IntType(32)), kind)
        elif is_float(source.dtype):
            make = build.fptoui if is_unsigned(dtype) else build.fptosi
            done = make(value, kind)
        elif WIDTHS[dtype] == WIDTHS[source.dtype]:
            done = value
        elif WIDTHS[dtype] < WIDTHS[source.dtype]:
            done = build.trunc(value, kind)
        else:
            done = (build.zext if is_unsigned(source.dtype) else build.sext)(value, kind)
        return Scalar(done, dtype)

    def view(self, source: Scalar, node: ast.Call) -> Scalar:
        dtype = np.dtype(getattr(np, node.args[0].attr)).name  # type: ignore[attr-defined]
        kind = llvm_type(dtype)
        if source.value.type == kind:
            return Scalar(source.value, dtype)
        return Scalar(self.builder.bitcast(source.value, kind), dtype)

    def extremum(self, least: bool, node: ast.Call) -> Scalar:
        """Compute Python's min or max: the first of equals, and of those that do not compare."""
        if len(node.args) != 2:
            raise self.error(node, "takes two arguments here")
        a, b = self.pair(node, *node.args)
        better = self.compare("<" if least else ">", b, a)
        return Scalar(self.builder.select(better, b.value, a.value), a.dtype)

    def remainder(self, node: ast.Call) -> Scalar:
        """Compute C's remainder, with the sign of the first; of integers by zero it is 0."""
        a, b = self.pair(node, *node.args)
        if is_float(a.dtype):
            return Scalar(self.builder.frem(a.value, b.value), a.dtype)
        zero, one = (ir.Constant(b.value.type, n) for n in (0, 1))
        by_zero = self.builder.icmp_unsigned("==", b.value, zero)
        divide = self.builder.urem if is_unsigned(a.dtype) else self.builder.srem
        divisor = self.builder.select(by_zero, one, b.value)
        if not is_unsigned(a.dtype):
            divisor = self.builder.select(self.negates(a, b), one, divisor)
        found = divide(a.value, divisor)
        return Scalar(self.builder.select(by_zero, zero, found), a.dtype)

    def rounding(self, name: str, node: ast.Call) -> Scalar:
        a = self.value(node.args[0])
        if not is_float(a.dtype):
            if name != "abs" or is_unsigned(a.dtype):
                raise self.error(node, f"{name} takes floats here")
            negative = self.compare("<", a, constant(0, a.dtype))
            opposite = self.builder.neg(a.value)
            return Scalar(self.builder.select(negative, opposite, a.value), a.dtype)
        intrinsic = self.builder.module.declare_intrinsic("llvm." + _ROUNDING[name], [a.value.type])
        return Scalar(self.builder.call(intrinsic, [a.value]), a.dtype)
