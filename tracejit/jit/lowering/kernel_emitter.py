"""Translation of a kernel's text to LLVM IR, without numba: about a millisecond instead of twelve.

In: a Kernel. Out: LLVM IR of a module that defines its symbol in the one ABI. Called by `native`; a
text that leaves the subset (UnsupportedSyntax) goes to `numba_emitter`, which takes any text.

The subset: assignments to names and elements, `for ... in range(...)`, `while`, `if`, `break`,
`continue`, `return` without a value, and the expressions of `kernel_expressions`. A name keeps one
type. Leading lines that fetch pointers and sizes become parameters of an inner function whose
pointers are `noalias`. LLVM then vectorises loops over many operands without checking at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from tracejit.jit.lowering import abi
from tracejit.jit.lowering.kernel_expressions import (
    FUNCTIONS,
    LITERAL,
    Pointer,
    constant,
    is_float,
    llvm_type,
)
from tracejit.jit.lowering.kernel_primitives import BYTES, I64, KERNEL_TYPE, Primitives
from tracejit.jit.lowering.vector_math_intrinsics import Scalar, UnsupportedSyntax

LANES = 8  # iterations, at least, of a loop that becomes vectors rather than code without loops


def function_definition(source: str, name: str) -> ast.FunctionDef:
    """Return the definition of `name` in a module's text; ValueError where there is none."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise ValueError(f"the text defines no function {name!r}")


def split_prologue(
    definition: ast.FunctionDef, namespace: dict[str, Any]
) -> tuple[list[tuple[str, str, int]], list[ast.stmt]]:
    """Return leading `x = float32_pointer(buffers, operands[k])` and `n = sizes[k]`, and the
    statements after them.

    The first part holds (name, element type or "size", k).
    """
    fetched: list[tuple[str, str, int]] = []
    body = definition.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    while body and (found := _fetch(body[0], namespace)):
        fetched.append(found)
        body = body[1:]
    return fetched, body


def _fetch(statement: ast.stmt, namespace: dict[str, Any]) -> tuple[str, str, int] | None:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    value, element = statement.value, "size"
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 2:
        function: Any = namespace.get(value.func.id)
        element, of_operands = abi.POINTER_FUNCTIONS.get(function, ("", False))
        if not of_operands or ast.unparse(value.args[0]) != "buffers":
            return None
        value = value.args[1]
    table = "sizes" if element == "size" else "operands"
    if isinstance(value, ast.Subscript) and ast.unparse(value.value) == table:
        number = value.slice
        if isinstance(number, ast.Constant) and type(number.value) is int and number.value >= 0:
            return statement.targets[0].id, element, number.value
    return None


def emit_kernel(source: str, name: str, symbol: str, namespace: dict[str, Any]) -> str:
    """Return LLVM IR that defines `symbol`, the kernel `name` of a module with this text and
    namespace.

    Raises UnsupportedSyntax, with the line, where the text leaves the subset.
    """
    definition = function_definition(source, name)
    if namespace.get("PARAMETERS") == "int64":
        return _emit_plain(definition, symbol, namespace)
    if tuple(a.arg for a in definition.args.args) != abi.PARAMETERS:
        raise ValueError(f"a kernel takes {', '.join(abi.PARAMETERS)}")
    fetched, body = split_prologue(definition, namespace)
    if any(element.startswith("complex") for _, element, _ in fetched):
        raise UnsupportedSyntax("complex numbers")
    module = ir.Module(symbol)
    flags = tuple(namespace.get("FASTMATH", (FUNCTIONS,)))
    parameters = [
        I64 if element == "size" else llvm_type(element).as_pointer() for _, element, _ in fetched
    ]
    kind = ir.FunctionType(ir.VoidType(), [*parameters, *KERNEL_TYPE.args])
    inner = ir.Function(module, kind, symbol + ".body")
    inner.linkage = "internal"
    inner.attributes.add("noinline")
    for argument in inner.args:
        if argument.type.is_pointer:
            argument.add_attribute("noalias")
    names = [(n, "int64" if e == "size" else e, e != "size") for n, e, _ in fetched]
    Statements(inner, names, namespace, flags, name).run(body)
    _emit_entry(module, symbol, inner, fetched)
    return str(module)


def _emit_plain(definition: ast.FunctionDef, symbol: str, namespace: dict[str, Any]) -> str:
    """Emit a function of the runner: it is no kernel, takes 64-bit integers, and may return one."""
    module = ir.Module(symbol)
    names = [a.arg for a in definition.args.args]
    result = ir.VoidType() if definition.returns is None else I64
    function = ir.Function(module, ir.FunctionType(result, [I64] * len(names)), symbol)
    parameters = [(name, "int64", False) for name in names]
    Statements(function, parameters, namespace, (), definition.name).run(definition.body)
    return str(module)


def _emit_entry(
    module: ir.Module, symbol: str, inner: ir.Function, fetched: Sequence[tuple[str, str, int]]
) -> None:
    """Emit the function in the one ABI: it fetches pointers and sizes, and calls the body."""
    entry = ir.Function(module, KERNEL_TYPE, symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    buffers, operands, sizes = entry.args[:3]

    def word(table: Any, index: Any) -> Any:
        return builder.load(builder.gep(table, [index]))

    values = []
    for _, element, k in fetched:
        if element == "size":
            values.append(word(sizes, ir.Constant(I64, k)))
        else:
            address = word(buffers, word(operands, ir.Constant(I64, k)))
            values.append(builder.inttoptr(address, llvm_type(element).as_pointer()))
    builder.call(inner, [*values, *entry.args])
    builder.ret_void()


def separate(pointers: Sequence[Pointer]) -> None:
    """Say of every load and store that no other pointer reaches that memory."""
    used = [pointer for pointer in pointers if pointer.accesses]
    if len(used) < 2:
        return
    module = used[0].accesses[0].module
    domain = module.add_metadata(["tracejit"])
    scopes = [module.add_metadata([f"operand {k}", domain]) for k in range(len(used))]
    for k, pointer in enumerate(used):
        own = module.add_metadata([scopes[k]])
        others = module.add_metadata([s for s in scopes if s is not scopes[k]])
        for access in pointer.accesses:
            access.set_metadata("alias.scope", own)
            access.set_metadata("noalias", others)


def _is_vector(start: Any, stop: Any) -> bool:
    """Return True if a loop has a number of iterations that is known and fills a vector."""
    known = all(isinstance(x, ir.Constant) and type(x.constant) is int for x in (start, stop))
    return known and stop.constant - start.constant >= LANES


def _holds_loop(node: ast.For) -> bool:
    return any(
        isinstance(inner, (ast.For, ast.While)) for part in node.body for inner in ast.walk(part)
    )


class Statements(Primitives):
    """Writes the body of one function."""

    def __init__(self, function: ir.Function, fetched: Sequence[tuple[str, str, bool]],
                 namespace: dict[str, Any], flags: tuple[str, ...], source_name: str):  # fmt: skip
        self.function, self.globals = function, namespace
        self.flags = tuple(flag for flag in flags if flag != FUNCTIONS)
        self.contract = bool(flags)
        self.straight = bool(namespace.get("SMALL_SIZES"))
        self.source_name = source_name
        self.entry = function.append_basic_block("entry")
        self.exit = function.append_basic_block("exit")
        self.builder = ir.IRBuilder(function.append_basic_block("start"))
        self.loops: list[tuple[Any, Any]] = []  # (where `continue` goes, where `break` goes)
        self.fixed: dict[str, Any] = {}
        self.slots: dict[str, Scalar] = {}  # local -> (its alloca, dtype)
        returns = function.function_type.return_type == I64
        self.result = ir.IRBuilder(self.entry).alloca(I64) if returns else None
        self.computed = False  # are there pointers besides the parameters, which are `noalias`?
        arguments = list(function.args)
        for (name, dtype, is_pointer), argument in zip(fetched, arguments):
            self.fixed[name] = (
                Pointer(argument, dtype) if is_pointer else Scalar(argument, dtype, True)
            )
        for name, argument in zip(abi.PARAMETERS, arguments[len(fetched) :]):
            if argument.type == I64:
                self.fixed[name] = Scalar(argument, "int64", True)
            else:
                element = "uint8" if argument.type == BYTES else "int64"
                self.fixed[name] = Pointer(argument, element, element == "int64")

    def run(self, body: Sequence[ast.stmt]) -> None:
        start = self.builder.basic_block
        self.block(body)
        if not self.builder.block.is_terminated:
            self.builder.branch(self.exit)
        ir.IRBuilder(self.entry).branch(start)
        leave = ir.IRBuilder(self.exit)
        leave.ret_void() if self.result is None else leave.ret(leave.load(self.result))
        if self.computed:
            separate([p for p in self.fixed.values() if isinstance(p, Pointer)])

    def load_name(self, name: str) -> Any:
        slot = self.slots.get(name)
        if slot is not None:
            return Scalar(self.builder.load(slot.value), slot.dtype, slot.is_index)
        return self.fixed.get(name)

    def store_name(self, name: str, found: Any, node: Any) -> None:
        if isinstance(found, Pointer):
            if name in self.fixed or name in self.slots:
                raise self.error(node, "a pointer is assigned once")
            self.fixed[name] = found
            self.computed = self.computed or not found.local
            return
        known = self.slots.get(name) or self.fixed.get(name)
        if isinstance(known, Pointer):
            raise self.error(node, f"{name} was a pointer")
        if known is not None and isinstance(found, Scalar):
            found = self.adapt(found, known.dtype, node)
        scalar = self.typed(found, node)
        if known is not None and known.dtype != scalar.dtype:
            raise self.error(node, f"{name} was {known.dtype}, is now {scalar.dtype}")
        if name not in self.slots:
            room = self.alloca(scalar.value.type, name)
            slot = self.slots[name] = Scalar(room, scalar.dtype, scalar.is_index)
            if known is not None:  # a parameter: where this store does not happen, it keeps that
                ir.IRBuilder(self.entry).store(known.value, slot.value)
        if not scalar.is_index:  # what is computed of it from here on may wrap
            self.slots[name] = self.slots[name]._replace(is_index=False)
        self.builder.store(scalar.value, self.slots[name].value)

    def alloca(self, kind: Any, name: str) -> Any:
        return ir.IRBuilder(self.entry).alloca(kind, name=name)

    def make_local(self, element: str, node: ast.Call) -> Pointer:
        """Make room on the stack, which LLVM turns into registers where indices are constants."""
        (count,) = node.args
        if not isinstance(count, ast.Constant) or type(count.value) is not int:
            raise self.error(node, "takes a number of elements that is constant")
        entry, kind = ir.IRBuilder(self.entry), llvm_type(element)
        room = entry.alloca(ir.ArrayType(kind, count.value))
        room.align = abi.VECTOR_BYTES
        return Pointer(entry.bitcast(room, kind.as_pointer()), element, local=True)

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return  # after break, continue or return
            method = getattr(self, "do_" + type(statement).__name__, None)
            if method is None:
                raise self.error(statement, "is not in the subset")
            method(statement)

    def do_Pass(self, node: ast.Pass) -> None:
        pass

    def do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def do_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "is not in the subset")
        self.assign(node.targets[0], node.value, node)

    def assign(self, target: Any, value: Any, node: Any) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            found: Any = tuple(self.expression(v) for v in value.elts)
        else:
            found = self.expression(value)
        self.assign_value(target, found, node)

    def assign_value(self, target: Any, found: Any, node: Any) -> None:
        if isinstance(target, ast.Tuple):
            for part, one in zip(target.elts, found, strict=True):
                self.assign_value(part, one, node)
        elif isinstance(target, ast.Name):
            self.store_name(target.id, found, node)
        elif isinstance(target, ast.Subscript):
            pointer = self.expression(target.value)
            if not isinstance(pointer, Pointer) or not isinstance(found, Scalar):
                raise self.error(node, "stores into what is no pointer")
            where = self.element(pointer, target.slice)
            value = self.stored(found, pointer.element, node).value
            pointer.accesses.append(self.builder.store(value, where))
        else:
            raise self.error(node, "is not in the subset")

    def stored(self, found: Scalar, element: str, node: Any) -> Scalar:
        if found.dtype != LITERAL:
            return self.convert(found, element)
        if is_float(element) or isinstance(found.value, (bool, int)):
            return constant(found.value, element)
        raise self.error(node, f"{found.value!r} is no {element}")

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        read = ast.copy_location(ast.parse(ast.unparse(target), mode="eval").body, target)
        value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        self.assign(target, value, node)

    def do_If(self, node: ast.If) -> None:
        test = self.condition(node.test)
        then, after = self.new_block("then"), self.new_block("after")
        otherwise = self.new_block("else") if node.orelse else after
        self.builder.cbranch(test, then, otherwise)
        for block, statements in ((then, node.body), (otherwise, node.orelse)):
            if block is not after:
                self.builder.position_at_end(block)
                self.block(statements)
                self.go_to(after)
        self.builder.position_at_end(after)

    def new_block(self, name: str) -> Any:
        return self.function.append_basic_block(name)

    def go_to(self, block: Any) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(block)

    def do_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(node, "has an else")
        test, body, after = (self.new_block(n) for n in ("test", "body", "after"))
        self.builder.branch(test)
        self.builder.position_at_end(test)
        self.builder.cbranch(self.condition(node.test), body, after)
        self.loop(body, node.body, test, after)

    def loop(self, body: Any, statements: Sequence[ast.stmt], again: Any, after: Any) -> None:
        self.builder.position_at_end(body)
        self.loops.append((again, after))
        self.block(statements)
        self.loops.pop()
        self.go_to(again)
        self.builder.position_at_end(after)

    def do_For(self, node: ast.For) -> None:
        start, stop, step = self.range_of(node)
        test, body, again, after = (
            self.new_block(n) for n in ("test", "body", "again", "after")
        )  # fmt: skip
        before = self.builder.basic_block
        self.builder.branch(test)
        self.builder.position_at_end(test)
        counter = self.builder.phi(I64)
        counter.add_incoming(start, before)
        sign = "<" if step > 0 else ">"
        self.builder.cbranch(self.builder.icmp_signed(sign, counter, stop), body, after)
        self.builder.position_at_end(again)
        advanced = self.builder.add(counter, ir.Constant(I64, step), flags=("nsw",))
        counter.add_incoming(advanced, again)
        back = self.builder.branch(test)
        if self.straight and _is_vector(start, stop) and not _holds_loop(node):
            self.keep_loop(back)
        self.builder.position_at_end(body)
        self.store_name(node.target.id, Scalar(counter, "int64", True), node)  # type: ignore[attr-defined]
        self.loop(self.builder.basic_block, node.body, again, after)

    def keep_loop(self, back: Any) -> None:
        """Say that a loop is not to be written out before it is made of vectors."""
        module = self.function.module
        whole = module.add_metadata([f"loop {len(module.metadata)}"])
        whole.operands = (whole, module.add_metadata(["llvm.loop.unroll.disable"]))  # its own name
        back.set_metadata("llvm.loop", whole)

    def range_of(self, node: ast.For) -> tuple[Any, Any, int]:
        call = node.iter
        plain = isinstance(node.target, ast.Name) and not node.orelse and isinstance(call, ast.Call)
        if not plain or ast.unparse(call.func) != "range" or not 1 <= len(call.args) <= 3:  # type: ignore[attr-defined]
            raise self.error(node, "loops over what is no range")
        bounds = call.args  # type: ignore[attr-defined]
        step = 1
        if len(bounds) == 3:
            given = self.expression(bounds[2])
            if given.dtype != LITERAL or not isinstance(given.value, int) or given.value == 0:
                raise self.error(node, "has a step that is no constant")
            step = given.value
        start = self.index(bounds[0]) if len(bounds) > 1 else ir.Constant(I64, 0)
        return start, self.index(bounds[min(1, len(bounds) - 1)]), step

    def do_Break(self, node: ast.Break) -> None:
        self.builder.branch(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1][0])

    def do_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            if self.result is None:
                raise self.error(node, "returns a value")
            self.builder.store(self.index(node.value), self.result)
        self.builder.branch(self.exit)
