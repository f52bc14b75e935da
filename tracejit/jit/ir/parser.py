"""Text to graphs: reads back what `jit/ir/printer.py` writes.

In: the text of one graph; the grammar is in docs/ir.md. Out: a Graph that prints as the same text.
Called by tests, golden files and repro files. Types are taken from the text; `jit/ir/verify.py`
compares them with inference.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tracejit.core.memory.devices import CPU, device
from tracejit.core.ops.control import ErrorOf
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import TensorType, dtype
from tracejit.jit.ir.graph import Graph, Location, Node, Value
from tracejit.jit.ir.sizes import (
    ShapeEnv,
    ShapeGuard,
    SizeLike,
    SymInt,
    divided,
    size_max,
    size_min,
)
from tracejit.jit.ir.verify import GraphError

_TOKEN = re.compile(r"""
    [ \t\r\n]+
  | (?P<comment> \#[^\n]* )
  | (?P<string> "(?:[^"\\]|\\.)*" )
  | (?P<value> %\w+ )
  | (?P<number> \d+(?:\.\d*)?(?:e[+-]?\d+)? )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<sign> // | <- | == | != | <= | >= | \.\.\. | [-+*%()\[\]{}=,:.<>] )
""", re.VERBOSE)
_COMMENT = re.compile(
    r"#\s*(?:\[(?P<provenance>[^\]]*)\])?\s*"
    r"(?:(?P<file>\S.*?):(?P<line>\d+)(?: in (?P<function>\S+?))?(?:: (?P<text>.*))?)?$")
_LITERALS = {"True": True, "False": False, "None": None, "nan": float("nan"), "inf": float("inf")}
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse_graph(text: str) -> Graph:
    """Return the graph that a text describes. GraphError names the line of a text that is none.

    >>> graph = parse_graph('''graph step(in0: float32[s0, 3] "x") where s0=2 in0.size[0]:
    ...     return %in0''')
    >>> graph.inputs[0].source, graph.outputs[0].shape
    ('x', (s0, 3))
    """
    reader = _Reader(text)
    graph = reader.graph(ShapeEnv())
    reader.expect("end")
    return graph


def _tokens(text: str) -> list[_Token]:
    tokens, position, line = [], 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise GraphError(f"line {line}: cannot read {text[position:position + 20]!r}")
        if match.lastgroup is not None:
            tokens.append(_Token(match.lastgroup, match[0], line))
        line += match[0].count("\n")
        position = match.end()
    return [*tokens, _Token("end", "", line)]


class _Reader:
    """Recursive descent over tokens; `scope` and `values` are those of the graph being read."""

    def __init__(self, text: str):
        self.tokens, self.position = _tokens(text), 0
        self.scope, self.values = ShapeEnv(), dict[str, Value]()

    # -- tokens --------------------------------------------------------------
    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.next
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        found = self.next.kind in ("sign", "name") and self.next.text == text
        self.position += found
        return found

    def expect(self, what: str) -> str:
        """Take a token of this kind, or this very sign or word."""
        token = self.take()
        if token.kind != what and (token.kind not in ("sign", "name") or token.text != what):
            raise GraphError(f"line {token.line}: expected {what}, got {token.text or 'the end'!r}")
        return token.text

    def fail(self, message: str) -> GraphError:
        return GraphError(f"line {self.tokens[max(self.position - 1, 0)].line}: {message}")

    def listed(self, close: str, item: Callable[[], Any]) -> list[Any]:
        """Items separated by commas up to `close`; a last comma is allowed."""
        items = []
        while not self.accept(close):
            items.append(item())
            if not self.accept(","):
                self.expect(close)
                break
        return items

    # -- graphs --------------------------------------------------------------
    def graph(self, scope: ShapeEnv) -> Graph:
        outer = self.scope, self.values
        graph = Graph(scope=scope)
        self.scope, self.values = scope, {}
        self.expect("graph")
        graph.name = self.string() if self.next.kind == "string" else self.dotted()
        self.expect("(")
        self.listed(")", lambda: self.input(graph))
        if self.accept("where"):
            self.listed(":", lambda: self.symbol(graph))
        else:
            self.expect(":")
        self.body(graph)
        self.scope, self.values = outer
        return graph

    def dotted(self) -> str:
        name = self.expect("name")
        while self.accept("."):
            name += "." + self.expect("name")
        return name

    def input(self, graph: Graph) -> None:
        name = self.expect("name")
        self.expect(":")
        type, strides, contiguous = self.type(), (), True
        if self.accept("strides"):
            self.expect("[")
            strides, contiguous = tuple(self.listed("]", self.static)), False
        weak = self.accept("weak")
        source = self.string() if self.next.kind == "string" else ""
        value = graph.input(type, source, contiguous, strides)
        value.is_weak = weak
        self.define(name, value)

    def symbol(self, graph: Graph) -> None:
        name = self.expect("name")
        if self.accept("="):
            graph.scope.symbol(int(self.expect("number")), name)
        if self.next.kind == "name":
            number = int(self.expect("name").removeprefix("in"))
            self.expect(".")
            kind = self.expect("name")
            self.expect("[")
            graph.symbol_sources[name] = (kind, number, int(self.expect("number")))
            self.expect("]")

    def body(self, graph: Graph) -> None:
        while not self.accept("return"):
            if self.accept("write"):
                target = self.value()
                self.expect("<-")
                graph.writes.append((target, self.value()))
            else:
                graph.nodes.append(self.node(graph))
        while self.next.kind == "value":
            graph.outputs.append(self.value())
            self.accept(",")
        while self.next.text in ("guard", "equal"):
            self.guard(graph) if self.accept("guard") else self.equality(graph)

    def guard(self, graph: Graph) -> None:
        left, relation, right = self.static(), self.take().text, self.static()
        if relation not in _RELATIONS:
            raise self.fail(f"expected a relation, got {relation!r}")
        where = self.take().text[1:].strip() if self.next.kind == "comment" else ""
        graph.scope.guards.append(ShapeGuard(relation, left, right, where))

    def equality(self, graph: Graph) -> None:
        self.expect("equal")
        known = self.static()
        atoms = [a for m in known.terms for a in m] if type(known) is SymInt else []
        if len(atoms) != 1:
            raise self.fail("expected a symbol or a function of sizes")
        self.expect("=")
        graph.scope.learn(atoms[0], self.static())

    # -- nodes ---------------------------------------------------------------
    def node(self, graph: Graph) -> Node:
        outputs = []
        while self.next.kind == "value":
            name = self.take().text[1:]
            self.expect(":")
            outputs.append((name, self.type()))
            self.accept(",")
        self.expect("=")
        node = self.application(graph)
        node.outputs = tuple(Value(graph, t, node, i) for i, (_, t) in enumerate(outputs))
        for (name, _), value in zip(outputs, node.outputs):
            self.define(name, value)
        return node

    def application(self, graph: Graph) -> Node:
        name = self.dotted()
        detached = name == "detached" and self.next.text != "("
        name = self.dotted() if detached else name
        if name not in REGISTRY:
            raise self.fail(f"no op named {name!r}")
        operands: list[Any] = []
        attributes: dict[str, Any] = {}
        self.expect("(")
        self.listed(")", lambda: self.argument(operands, attributes))
        node = Node(REGISTRY[name], tuple(operands), attributes, detached=detached)
        opened = self.accept("{")
        self.comment(node)
        regions = []
        while opened and not self.accept("}"):
            regions.append(self.graph(graph.scope))
        node.regions = tuple(regions)
        return node

    def argument(self, operands: list[Any], attributes: dict[str, Any]) -> None:
        if self.next.kind == "name" and self.tokens[self.position + 1].text == "=":
            name = self.take().text
            self.expect("=")
            attributes[name] = self.static()
        else:
            operands.append(self.static())

    def comment(self, node: Node) -> None:
        if self.next.kind != "comment":
            return
        match = _COMMENT.match(self.take().text)
        if match is None:
            raise self.fail("expected a comment: # [provenance] file:line in function: text")
        node.provenance = match["provenance"] or ""
        if match["file"]:
            node.location = Location(match["file"], int(match["line"]), match["text"] or "",
                                     match["function"] or "")

    # -- values, types, static data ------------------------------------------
    def define(self, name: str, value: Value) -> None:
        if name in self.values:
            raise self.fail(f"%{name} is defined twice")
        value.name = name
        self.values[name] = value

    def value(self) -> Value:
        name = self.expect("value")[1:]
        if name not in self.values:
            raise self.fail(f"%{name} is not defined before this line")
        return self.values[name]

    def type(self) -> TensorType:
        name = self.expect("name")
        if name not in dtype._by_name:
            raise self.fail(f"no dtype named {name!r}")
        self.expect("[")
        shape = tuple(self.listed("]", self.static))
        where = CPU
        if self.accept("on"):
            kind = self.expect("name")
            where = device(kind, int(self.expect("number")) if self.accept(":") else None)
        return TensorType(dtype._by_name[name], shape, where)

    def string(self) -> str:
        return ast.literal_eval(self.expect("string"))

    def static(self) -> Any:
        left = self.product()
        while self.next.text in ("+", "-") and self.next.kind == "sign":
            left = left + self.product() if self.take().text == "+" else left - self.product()
        return left

    def product(self) -> Any:
        left = self.factor()
        while self.next.text in ("*", "//", "%") and self.next.kind == "sign":
            sign, right = self.take().text, self.factor()
            left = left * right if sign == "*" else divided(left, right, sign)
        return left

    def factor(self) -> Any:
        token = self.next
        if token.kind == "value":
            return self.value()
        if token.kind == "string":
            return self.string()
        self.take()
        if token.kind == "number":
            return int(token.text) if token.text.isdecimal() else float(token.text)
        if token.kind == "name":
            return self.word(token.text)
        if token.text == "-":
            return -self.factor()
        if token.text == "(":
            return self.group()
        if token.text == "[":
            return self.listed("]", self.static)
        if token.text == "...":
            return ...
        raise self.fail(f"expected a value, got {token.text or 'the end'!r}")

    def group(self) -> Any:
        """Read a group: `(a)` is a, `(a,)` and `(a, b)` are tuples."""
        items = self.listed(")", self.static)
        grouping = len(items) == 1 and self.tokens[self.position - 2].text != ","
        return items[0] if grouping else tuple(items)

    def word(self, name: str) -> Any:
        if name in _LITERALS:
            return _LITERALS[name]
        if self.accept("("):
            if name == "error":
                return self.error(*self.listed(")", self.static))
            if name not in _CALLS:
                raise self.fail(f"cannot call {name!r}")
            return _CALLS[name](*self.listed(")", self.static))
        return dtype._by_name.get(name) or self.size_symbol(name)

    def error(self, name: str, *arguments: Any) -> ErrorOf:
        """Only classes that are there already: reading a text imports nothing."""
        module, _, path = name.rpartition(":")
        found: Any = sys.modules.get(module or "builtins")
        for part in path.split("."):
            found = getattr(found, part, None)
        if not isinstance(found, type) or not issubclass(found, BaseException):
            raise self.fail(f"no exception named {name!r}")
        return ErrorOf(found, arguments)

    def size_symbol(self, name: str) -> SizeLike:
        return SymInt({(name,): 1}, self.scope)


_CALLS: dict[str, Callable[..., Any]] = {
    "max": size_max, "min": size_min, "slice": slice, "device": device, "complex": complex,
}
