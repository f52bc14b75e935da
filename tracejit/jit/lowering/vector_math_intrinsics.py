"""Scalar Python functions, as text, to LLVM instructions inside a kernel.

In: a straight-line function over typed scalars, written in the subset below, with its parameter
types. Out: instructions at a builder's position (`emit`), or a numba intrinsic for the CPU or for
CUDA (`as_intrinsic`). The intrinsic writes the instructions into the kernel that calls it. Called
by `kernel_expressions`, `numba_emitter`, `vector_math`, `philox` and `half`.

Why not `numba.njit`: its type inference and lowering cost about 0.5 ms for each arithmetic
operation (150 ms for one tanh). This costs about 0.02 ms. The result is always inlined, and every
ternary is a `select`, so loops vectorise. numba is imported on first use only.

The subset: assignments to names (and to tuples of names), one final `return`, and these
expressions:

- arithmetic and bit operations, comparisons, `and`/`or`/`not`, ternaries, `abs`
- `np.<dtype>(...)` conversions, `.view(np.<dtype>)`, `np.where`, `np.sqrt`, `np.floor`, `np.rint`
- names of typed constants, and calls of other such functions in the same module

Operands of one operation must have one type. A ternary whose first arm calls an `outlined` function
is a branch. Constant arrays may be indexed.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit.jit.lowering.vector_math_outlined import seldom

_WIDTH = {"int32": 32, "uint32": 32, "int64": 64, "uint64": 64, "uint16": 16, "bool": 1}
_FLOAT_OPS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INT_OPS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and_", ast.BitOr: "or_",
    ast.BitXor: "xor", ast.LShift: "shl",
}  # fmt: skip
_COMPARE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_LIBDEVICE_PREFIX = {"float32": "f", "float64": "d"}


class Scalar(NamedTuple):
    """LLVM value and its NumPy type name (signedness is not in the LLVM type).

    is_index  it says where something is, or how large: it never wraps
    """

    value: Any
    dtype: str
    is_index: bool = False


class UnsupportedSyntax(TypeError):
    """Error: the function steps outside the subset. The message gives file, line and reason."""


@functools.cache
def _parsed(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _llvm_type(dtype: str) -> Any:
    from llvmlite import ir

    if dtype == "float32":
        return ir.FloatType()
    if dtype == "float64":
        return ir.DoubleType()
    return ir.IntType(_WIDTH[dtype])


def emit(
    builder: Any,
    function: Callable[..., Any],
    args: Sequence[Scalar],
    *,
    contract: bool = True,
    target: str = "cpu",
) -> Scalar | tuple[Scalar, ...]:
    """Write `function(*args)` at the builder's position and return its result.

    `contract` lets products fuse into sums (FMA); False keeps every rounding, on all targets:
    "cpu", "cuda" (NVVM, which has libdevice) and "ptx" (LLVM alone). Raises UnsupportedSyntax where
    the text leaves the subset, or mixes types.
    """
    contract = contract and not getattr(function, "uncontracted", False)
    native = getattr(function, "llvm_intrinsic", None)
    if native is not None and target != "cuda":
        kind = args[0].value.type
        declared = builder.module.declare_intrinsic(native, [kind], ir_binary(kind))
        return Scalar(builder.call(declared, [a.value for a in args]), args[0].dtype)
    return _Emitter(builder, function, contract, target).run(args)


def _table(module: Any, name: str, array: np.ndarray) -> Any:
    """Return a constant array in the module."""
    from llvmlite import ir

    known = module.globals.get(name)
    if known is None:
        kind = ir.ArrayType(_llvm_type(array.dtype.name), array.size)
        known = ir.GlobalVariable(module, kind, name)
        known.linkage, known.global_constant = "internal", True
        known.initializer = ir.Constant(kind, array.tolist())
    return known


def ir_binary(kind: Any) -> Any:
    """Return the LLVM type of a function of two values of `kind`."""
    from llvmlite import ir

    return ir.FunctionType(kind, [kind, kind])


class _Emitter:
    def __init__(
        self, builder: Any, function: Callable[..., Any], contract: bool, target: str
    ) -> None:
        self.builder = builder
        self.function = function
        self.contract = contract
        # numba gives the kernel's fastmath flags to whatever has none. "arcp" concerns divisions
        # alone and "contract" sums of products alone, so each is harmless on the other kind
        self.division_flags = ("contract",)
        self.flags: tuple[str, ...] = ("contract",) if contract else ("arcp",)
        if getattr(function, "reassociated", False):
            self.flags += ("reassoc",)
        self.target = target
        self.names: dict[str, Any] = {}

    def run(self, args: Sequence[Scalar]) -> Any:
        node = _parsed(self.function)
        parameters = [a.arg for a in node.args.args]
        if len(parameters) != len(args):
            raise TypeError(f"{node.name} takes {len(parameters)} arguments, got {len(args)}")
        self.names.update(zip(parameters, args, strict=True))
        for statement in node.body:
            if isinstance(statement, ast.Return):
                return self.expression(statement.value)
            self.statement(statement)
        raise self.error(node, "has no return")

    def error(self, node: Any, why: str) -> UnsupportedSyntax:
        code = self.function.__code__
        line = code.co_firstlineno + getattr(node, "lineno", 1) - 1
        return UnsupportedSyntax(f"{code.co_filename}:{line}: {ast.unparse(node)!r}: {why}")

    def statement(self, node: Any) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            raise self.error(node, "only assignments to names, then one return")
        value = self.expression(node.value)
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            for name, part in zip(target.elts, value, strict=True):
                self.names[name.id] = part  # type: ignore[attr-defined]
        else:
            self.names[target.id] = value  # type: ignore[attr-defined]

    def expression(self, node: Any) -> Any:
        method = getattr(self, "visit_" + type(node).__name__, None)
        if method is None:
            raise self.error(node, "is not in the subset")
        return method(node)

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.expression(e) for e in node.elts)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.names:
            return self.names[node.id]
        value = self.function.__globals__.get(node.id)
        if not isinstance(value, np.generic):
            raise self.error(node, "is neither a local nor a typed constant")
        return self.constant(value)

    def constant(self, value: np.generic) -> Scalar:
        from llvmlite import ir

        dtype = value.dtype.name
        return Scalar(ir.Constant(_llvm_type(dtype), value.item()), dtype)

    def pair(self, node: Any, left: Any, right: Any) -> tuple[Scalar, Scalar]:
        a, b = self.expression(left), self.expression(right)
        if a.dtype != b.dtype:
            raise self.error(node, f"mixes {a.dtype} and {b.dtype}")
        return a, b

    def visit_BinOp(self, node: ast.BinOp) -> Scalar:
        a, b = self.pair(node, node.left, node.right)
        kind = type(node.op)
        if a.dtype.startswith("float"):
            if kind not in _FLOAT_OPS:
                raise self.error(node, "is no float operation")
            return self.float_op(_FLOAT_OPS[kind], a, b)
        if kind is ast.RShift:
            shift = self.builder.lshr if a.dtype.startswith("u") else self.builder.ashr
            return Scalar(shift(a.value, b.value), a.dtype)
        if kind not in _INT_OPS:
            raise self.error(node, "is no integer operation here")
        return Scalar(getattr(self.builder, _INT_OPS[kind])(a.value, b.value), a.dtype)

    def float_op(self, name: str, a: Scalar, b: Scalar) -> Scalar:
        if self.target == "cuda" and not self.contract:
            # NVVM contracts plain instructions whatever their flags; these it may not
            called = f"__nv_{_LIBDEVICE_PREFIX[a.dtype]}{name[1:]}_rn"
            return self.call_external(called, a.dtype, a.value, b.value)
        flags = self.division_flags if name == "fdiv" else self.flags
        return Scalar(getattr(self.builder, name)(a.value, b.value, flags=flags), a.dtype)

    def call_external(self, name: str, dtype: str, *values: Any) -> Scalar:
        from llvmlite import ir

        kind = _llvm_type(dtype)
        module = self.builder.module
        declared = module.globals.get(name)
        if declared is None:
            declared = ir.Function(module, ir.FunctionType(kind, [kind] * len(values)), name)
        return Scalar(self.builder.call(declared, values), dtype)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Scalar:
        a = self.expression(node.operand)
        if isinstance(node.op, ast.USub):
            return self.negated(a)
        return Scalar(self.builder.not_(a.value), a.dtype)

    def negated(self, a: Scalar) -> Scalar:
        if not a.dtype.startswith("float"):
            return Scalar(self.builder.neg(a.value), a.dtype)
        if self.target == "cuda":  # NVVM's dialect of LLVM has no fneg
            return Scalar(self.builder.fsub(a.value.type(-0.0), a.value), a.dtype)
        return Scalar(self.builder.fneg(a.value), a.dtype)

    def visit_Compare(self, node: ast.Compare) -> Scalar:
        if len(node.ops) != 1:
            raise self.error(node, "chains comparisons")
        a, b = self.pair(node, node.left, node.comparators[0])
        sign = _COMPARE[type(node.ops[0])]
        if a.dtype.startswith("float"):
            compare = self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered
        else:
            unsigned = a.dtype.startswith("u") or a.dtype == "bool"
            compare = self.builder.icmp_unsigned if unsigned else self.builder.icmp_signed
        return Scalar(compare(sign, a.value, b.value), "bool")

    def visit_BoolOp(self, node: ast.BoolOp) -> Scalar:
        join = self.builder.and_ if isinstance(node.op, ast.And) else self.builder.or_
        values = [self.expression(v).value for v in node.values]
        return Scalar(functools.reduce(join, values), "bool")

    def visit_IfExp(self, node: ast.IfExp) -> Scalar:
        function = self.called(node.body)
        if hasattr(function, "outlined"):
            return self.seldom(function, node)
        return self.select(node, node.test, node.body, node.orelse)

    def called(self, node: Any) -> Any:
        """Return the function of this module that an expression calls, or None."""
        name = getattr(getattr(node, "func", None), "id", "")
        return self.function.__globals__.get(name)

    def seldom(self, function: Any, node: Any) -> Scalar:
        otherwise, test = self.expression(node.orelse), self.expression(node.test)
        argument = self.expression(node.body.args[0])

        def write(builder: Any, value: Any) -> Any:
            args = [Scalar(value, argument.dtype)]
            found = emit(builder, function, args, contract=self.contract, target=self.target)
            return found.value  # type: ignore[union-attr]

        values = (test.value, argument.value, otherwise.value)
        cpu = self.target == "cpu"
        merged = seldom(self.builder, *values, function.__name__, write, cpu)
        return Scalar(merged, otherwise.dtype)

    def visit_Subscript(self, node: ast.Subscript) -> Scalar:
        """Load an element of a constant array of the module."""
        name = getattr(node.value, "id", "")
        array = self.function.__globals__.get(name)
        if not isinstance(array, np.ndarray):
            raise self.error(node, "is no constant array")
        place = self.expression(node.slice).value
        table = _table(self.builder.module, f"tracejit_{name}", array)
        pointer = self.builder.gep(table, [place.type(0), place], inbounds=True)
        return Scalar(self.builder.load(pointer), array.dtype.name)

    def select(self, node: Any, test: Any, body: Any, orelse: Any) -> Scalar:
        condition = self.expression(test)
        a, b = self.pair(node, body, orelse)
        return Scalar(self.builder.select(condition.value, a.value, b.value), a.dtype)

    def visit_Call(self, node: ast.Call) -> Any:
        called = node.func
        if isinstance(called, ast.Attribute):
            if called.attr == "view":
                return self.view(node, self.expression(called.value))
            if isinstance(called.value, ast.Name) and called.value.id == "np":
                return self.numpy_call(node, called.attr)
            raise self.error(node, "is not in the subset")
        name = called.id  # type: ignore[attr-defined]
        args = [self.expression(a) for a in node.args]
        if name == "abs":
            if not args[0].dtype.startswith("float"):
                raise self.error(node, "abs is for floats")
            return self.unary("fabs", args[0])
        function = self.function.__globals__.get(name)
        if not inspect.isfunction(function):
            raise self.error(node, f"{name} is no function of this module")
        return emit(self.builder, function, args, contract=self.contract, target=self.target)

    def view(self, node: ast.Call, source: Scalar) -> Scalar:
        dtype = node.args[0].attr  # type: ignore[attr-defined]
        kind = _llvm_type(dtype)
        same = kind == source.value.type
        return Scalar(source.value if same else self.builder.bitcast(source.value, kind), dtype)

    def numpy_call(self, node: ast.Call, name: str) -> Scalar:
        if name == "where":
            condition, *arms = node.args
            return self.select(node, condition, *arms)
        if name in ("sqrt", "floor", "rint"):
            argument = self.expression(node.args[0])
            return self.unary(name, argument)
        if name not in _WIDTH and name not in ("float32", "float64"):
            raise self.error(node, f"np.{name} is not in the subset")
        literal = self.literal(node.args[0])
        if literal is not None:
            return self.constant(np.dtype(name).type(literal))
        return self.convert(self.expression(node.args[0]), name)

    def literal(self, node: Any) -> float | int | None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.literal(node.operand)
            return None if inner is None else -inner
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        return None

    def unary(self, name: str, argument: Scalar) -> Scalar:
        if self.target == "cuda":  # NVVM knows few of LLVM's intrinsics; libdevice has them all
            single = argument.dtype == "float32"
            called = f"__nv_{name}{'f' if single else ''}"
            if name == "sqrt":
                called = f"__nv_{_LIBDEVICE_PREFIX[argument.dtype]}sqrt_rn"
            return self.call_external(called, argument.dtype, argument.value)
        kind = argument.value.type
        declared = self.builder.module.declare_intrinsic("llvm." + name, [kind])
        return Scalar(self.builder.call(declared, [argument.value]), argument.dtype)

    def convert(self, source: Scalar, dtype: str) -> Scalar:
        return Scalar(self.converted(source, dtype), dtype)

    def converted(self, source: Scalar, dtype: str) -> Any:
        value, kind, b = source.value, _llvm_type(dtype), self.builder
        from_float, to_float = source.dtype.startswith("float"), dtype.startswith("float")
        unsigned = source.dtype.startswith("u") or source.dtype == "bool"
        if value.type == kind:
            return value
        if from_float and to_float:
            return b.fpext(value, kind) if dtype == "float64" else b.fptrunc(value, kind)
        if to_float:
            return b.uitofp(value, kind) if unsigned else b.sitofp(value, kind)
        if from_float:
            return b.fptoui(value, kind) if dtype.startswith("u") else b.fptosi(value, kind)
        if kind.width < value.type.width:
            return b.trunc(value, kind)
        return b.zext(value, kind) if unsigned else b.sext(value, kind)


def as_intrinsic(
    function: Callable[..., Any],
    dtypes: Sequence[str],
    *,
    target: str = "cpu",
    contract: bool = True,
) -> Any:
    """Return a numba callable with `function`'s text, for arguments of exactly these dtypes.

    `target` is "cpu" or "cuda". In a kernel it is called like any function; results of several
    values come back as a tuple. In plain Python, call the original function. numba's CUDA simulator
    is plain Python, so there the original function comes back.
    """
    from numba import config
    from numba.core import types

    if target == "cuda" and config.ENABLE_CUDASIM:
        return function
    if target == "cuda":
        from numba.cuda.extending import intrinsic
    else:
        from numba.core.extending import intrinsic
    expected = tuple(getattr(types, d) for d in dtypes)
    template = {"typed": _typing(function, dtypes, expected, target, contract)}
    names = ", ".join(f"a{i}" for i in range(len(dtypes)))
    exec(f"def {function.__name__}(context, {names}): return typed({names})", template)
    return intrinsic(template[function.__name__])


def _typing(
    function: Callable[..., Any],
    dtypes: Sequence[str],
    expected: tuple[Any, ...],
    target: str,
    contract: bool,
) -> Callable[..., Any]:
    result = result_dtypes(function, dtypes)

    def codegen(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        scalars = [Scalar(v, d) for v, d in zip(args, dtypes, strict=True)]
        out = emit(builder, function, scalars, contract=contract, target=target)
        if isinstance(out, Scalar):
            return out.value
        return context.make_tuple(builder, signature.return_type, [o.value for o in out])

    def typed(*args: Any) -> Any:
        from numba.core import types

        if args != expected:
            raise TypeError(f"{function.__name__} takes {dtypes}, got {args}")
        kinds = [getattr(types, d if d != "bool" else "boolean") for d in result]
        returned = kinds[0] if len(kinds) == 1 else types.Tuple(kinds)  # type: ignore[attr-defined]
        return returned(*args), codegen

    return typed


def result_dtypes(function: Callable[..., Any], dtypes: Sequence[str]) -> tuple[str, ...]:
    """Return the dtypes `function` returns for arguments of `dtypes`, found by emitting it once.

    >>> result_dtypes(_example, ["float32"])
    ('float32',)
    """
    from llvmlite import ir

    kinds = [_llvm_type(d) for d in dtypes]
    holder = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), kinds), "probe")
    builder = ir.IRBuilder(holder.append_basic_block())
    args = [Scalar(v, d) for v, d in zip(holder.args, dtypes, strict=True)]
    out = emit(builder, function, args)
    return (out.dtype,) if isinstance(out, Scalar) else tuple(o.dtype for o in out)


def _example(x: Any) -> Any:
    return x * x if x > np.float32(0.0) else -x
