"""Code of graphs: the text of a plain Python function that makes the graph's calls.

In: a graph's nodes. Out: `PythonCode`, the text and the objects that it names. Called by
`Graph.python_code`.
"""

from __future__ import annotations

import builtins
import copy
import enum
import re
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tracejit
from tracejit.fx.naming import (
    CUSTOM_BUILTINS,
    Namespace,
    is_ours,
    parts_of_type,
    qualified_name,
    type_repr,
)
from tracejit.fx.node import Node
from tracejit.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Iterable

magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}",
    "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip


class PythonCode(NamedTuple):
    """Text of a function, and the globals that it needs."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """Writes the function of a graph. Subclasses change its head, result and globals."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def copy(self) -> CodeGen:
        """Return a copy, for the copy of a graph."""
        return copy.copy(self)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the line that begins the function."""
        arguments = free_vars if free_vars[:1] == ["self"] else ["self", *free_vars]
        return f"def {self._func_name}({', '.join(arguments)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any,
                        repr_fn: Callable[[Any], str] | None = None) -> str:
        """Return the line that returns the result."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return what a call returns, by the output's value."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names that all code of the graph needs, with their objects."""
        return []

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, namespace: Namespace, *,
                         verbose: bool = False, **shown: Any) -> PythonCode:
        return _Writer(self, root_module, namespace, verbose).written(list(nodes))


class _PyTreeInfo(NamedTuple):
    """Structure of the arguments and the result of a function that is given containers."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Writes a function whose arguments are containers: placeholders are their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return _pytree.tree_leaves(inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return _pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        head = super().gen_fn_def(self.pytree_info.orig_args, maybe_return_annotation)
        given = [name for name in self.pytree_info.orig_args if name != "self"]
        if not free_vars:
            return head
        leaves = ", ".join(name.partition(" ")[0] for name in free_vars)
        return f"{head}\n    {leaves}, = pytree.tree_leaves([{', '.join(given)}])"

    def generate_output(self, output_args: Any,
                        repr_fn: Callable[[Any], str] | None = None) -> str:
        shown = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {shown}"
        return f"return pytree.tree_unflatten({shown}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("pytree", _pytree)]


class _Writer:
    """One run of a `CodeGen`: collects lines, arguments and globals."""

    def __init__(self, codegen: CodeGen, root: str, names: Namespace, verbose: bool) -> None:
        self.codegen, self.root, self.names, self.verbose = codegen, root, names, verbose
        self.globals: dict[str, Any] = {}
        self.free_vars: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returned = ""
        for name, (_, found) in CUSTOM_BUILTINS.items():
            self.global_name(name, _pytree if name == "pytree" else found)
        for name, found in codegen.additional_globals():
            self.global_name(name, found)

    def written(self, nodes: list[Node]) -> PythonCode:
        """Write all nodes and put the function together."""
        for node in nodes:
            self.names.create_name(node.name, node)
        last_used = _last_uses(nodes)
        trace = ""
        for node in nodes:
            if self.verbose:
                trace = self.comment(node, trace)
            self.body.append(self.line(node))
            if node.op not in ("placeholder", "output"):
                dead = last_used.get(node, [])
                if dead:
                    self.body.append(f";  {' = '.join([*map(repr, dead), 'None'])}")
            if self.body[-1]:
                self.body.append("\n")
        if not any(self.body):
            self.body.append("pass\n")
        body = self.body
        if self.codegen._body_transformer is not None:
            body = self.codegen._body_transformer(body)
        head = self.codegen.gen_fn_def(self.free_vars, self.returned)
        wraps = "\n".join(f'tracejit.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        text = "\n".join(f"    {line}" for line in "".join(body).split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{text}", self.globals)

    def comment(self, node: Node, last: str) -> str:
        """Write where the node is from, unless the line above says so."""
        if node.op in ("placeholder", "output"):
            return last
        lines = [line.strip() for line in (node.stack_trace or "").splitlines() if line.strip()]
        where = lines[-2:] if len(lines) > 1 else []
        found = "No stacktrace found for following nodes" if not where else (
            f"{where[0].removeprefix('File ').replace(', line ', ':').replace(', in', ' in')}, "
            f"code: {where[1]}")
        if where:
            found = f"File: {found.replace(chr(34), '')}"
        if found != last:
            self.body.append(f"\n# {found}\n")
        return found

    # -- one node ----------------------------------------------------------------------------
    def line(self, node: Node) -> str:
        if node.op == "placeholder":
            return self.argument(node)
        typed = "" if node.type is None else f" : {self.type_name(node.type)}"
        start = f"{node!r}{typed} = "
        if node.op == "get_attr":
            return start + _path(self.root, str(node.target))
        if node.op == "call_module":
            return f"{start}{_path(self.root, str(node.target))}({self.given(node.args, node)})"
        if node.op == "call_method":
            owner = _path(self.text(node.args[0]), str(node.target))
            return f"{start}{owner}({self.given(node.args[1:], node)})"
        if node.op == "output":
            if node.type is not None:
                self.returned = f" -> {self.type_name(node.type)}"
            return self.codegen.generate_output(node.args[0], repr_fn=self.text)
        return self.function(node, start, typed)

    def argument(self, node: Node) -> str:
        """Write a placeholder: an argument of the function, and its name if that is another."""
        typed = "" if node.type is None else f" : {self.type_name(node.type)}"
        default = f" = {self.text(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{node.target}{typed}{default}")
        raw = str(node.target).replace("*", "")
        return f"{node!r} = {raw}" if raw != repr(node) else ""

    def function(self, node: Node, start: str, typed: str) -> str:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            texts = [self.text(arg) for arg in node.args]
            if name in magic_methods and len(texts) == magic_methods[name].count("{}"):
                return start + magic_methods[name].format(*texts)
            if name in inplace_methods:
                done = inplace_methods[name].format(*texts)
                return f"{done};  {node!r}{typed} = {texts[0]}"
        if (target is getattr and len(node.args) == 2 and isinstance(node.args[1], str)
                and node.args[1].isidentifier()):
            return start + _path(self.text(node.args[0]), node.args[1])
        called = self.global_name(qualified_name(target), target)
        if node.meta.get("is_wrapped", False) and called.isidentifier():
            self.wrapped.setdefault(called)
        return f"{start}{called}({self.given(node.args, node)})"

    # -- texts -------------------------------------------------------------------------------
    def given(self, args: Sequence[Any], node: Node) -> str:
        named = [f"{key} = {self.text(value)}" for key, value in node.kwargs.items()]
        return ", ".join([*map(self.text, args), *named])

    def text(self, arg: Any) -> str:
        """Return an argument as code."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            name = self.global_name(qualified_name(type(arg)), type(arg))
            return f"{name}({', '.join(map(self.text, arg))})"
        if isinstance(arg, tuple):
            return f"({', '.join(map(self.text, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.text, arg))}]"
        if isinstance(arg, dict):
            return f"{{{', '.join(f'{k!r}: {self.text(v)}' for k, v in arg.items())}}}"
        if isinstance(arg, slice):
            parts = ", ".join(self.text(x) for x in (arg.start, arg.stop, arg.step))
            return f"slice({parts})"
        if isinstance(arg, enum.Enum):
            return f"{self.global_name(qualified_name(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, type):
            return self.type_name(arg)
        if callable(arg) and hasattr(arg, "__name__"):
            return self.global_name(qualified_name(arg), arg)
        return repr(arg)

    def type_name(self, obj: Any) -> str:
        """Return an annotation as code."""
        if obj == ():
            return "()"
        if isinstance(obj, types.UnionType):
            return "|".join(map(self.type_name, obj.__args__))
        origin, given = parts_of_type(obj)
        name = self.global_name(type_repr(origin), origin)
        if not given:
            return name
        return f"{name}[{','.join(map(self.type_name, given))}]"

    def global_name(self, hint: str, obj: Any) -> str:
        """Return the name of an object in the function's globals."""
        if is_ours(obj) and obj is not tracejit:
            return qualified_name(obj)
        wish = re.sub("[^0-9a-zA-Z_]+", "_", hint)
        if self.globals.get(wish, self) is obj:
            return wish
        found = wish if self._means(wish, obj) else self.names.create_name(wish, obj)
        self.globals[found] = obj
        return found

    def _means(self, name: str, obj: Any) -> bool:
        """Return True if all code gives the object this name."""
        return name in CUSTOM_BUILTINS or vars(builtins).get(name, self) is obj


def _path(start: str, target: str) -> str:
    """Return code that finds an attribute of an attribute.

    >>> _path("self", "a.0.b")
    'getattr(self.a, "0").b'
    """
    for atom in target.split("."):
        start = f"{start}.{atom}" if atom.isidentifier() else f'getattr({start}, "{atom}")'
    return start


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Return for each node the values that nothing needs after it."""
    found: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
        if node not in seen and not node.users:
            found.setdefault(node, []).append(node)
    return found
