"""Digest of the computation of a graph. Names, examples and locations do not matter.

In: a Graph, or a static operand or attribute. Out: a hexadecimal digest, or a hashable key. The
digest identifies programs in caches. By the keys `jit/passes/cse.py` decides if two applications of
an op are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from typing import Any

from tracejit.core.memory.devices import CPU
from tracejit.core.ops.control import ErrorOf
from tracejit.core.ops.types import TensorType
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import SymInt


def static_key(x: Any) -> Hashable:
    """Return a key that tells 1 from 1.0 and True, 0.0 from -0.0, and finds NaN equal to itself.

    >>> static_key((1, 0.0)) == static_key((True, -0.0))
    False
    """
    kind = type(x)
    if kind is SymInt:
        known = x.scope.resolve(x)
        return (SymInt, known.key) if type(known) is SymInt else (int, known)
    if kind is float:
        return x.hex()
    if kind is tuple or kind is list:
        return (kind, *map(static_key, x))
    if kind is slice:
        return (slice, static_key(x.start), static_key(x.stop), static_key(x.step))
    if kind is complex:
        return (kind, x.real.hex(), x.imag.hex())
    if kind is ErrorOf:
        return (kind, x.kind, static_key(x.arguments))
    return (kind, x)


def digest(graph: Graph) -> str:
    """Ops, attributes, types, wiring, writes and how symbols are bound; 32 hexadecimal digits.

    >>> from tracejit.jit.ir.parser import parse_graph
    >>> one = parse_graph('graph one(in0: float32[s0] "x") where s0=2 in0.size[0]: return %in0')
    >>> two = parse_graph('graph two(in0: float32[n] "y") where n=7 in0.size[0]: return %in0')
    >>> digest(one) == digest(two)
    True
    """
    text = repr(_Canonical(graph).graph(graph))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def free_symbols(graph: Graph) -> list[str]:
    """Return the symbols that no input shows, by name. Equal digests mean equal names.

    >>> from tracejit.jit.ir.parser import parse_graph
    >>> free_symbols(parse_graph('graph g(in0: float32[s0, n] "x") where s0=2 in0.size[0], n=3: '
    ...                          'return %in0'))
    ['n']
    """
    canonical = _Canonical(graph)
    canonical.graph(graph)
    return sorted(canonical.free)


class _Canonical:
    """Graph as nested tuples of plain data. First appearance names symbols and values."""

    def __init__(self, graph: Graph):
        self.symbols: dict[str, int] = {}
        self.free: set[str] = set()
        self.known: dict[tuple, list] = {}  # terms by the key of a size
        for name in sorted(graph.symbol_sources, key=lambda n: graph.symbol_sources[n]):
            self.symbols[name] = len(self.symbols)

    def graph(self, graph: Graph) -> tuple:
        number = {value: k for k, value in enumerate(graph.inputs)}
        inputs = [(self.type(v.type), v.is_weak, self.statics(graph.strides.get(v, ())))
                  for v in graph.inputs]
        nodes = []
        for node in graph.nodes:
            nodes.append(self.node(node, number))
            for value in node.outputs:
                number[value] = len(number)
        sources = [(self.symbols[n], s) for n, s in graph.symbol_sources.items()]
        return (inputs, nodes, [number[v] for v in graph.outputs],
                [(number[target], number[v]) for target, v in graph.writes], sorted(sources))

    def node(self, node: Node, number: dict[Value, int]) -> tuple:
        inputs = [f"%{number[x]}" if isinstance(x, Value) else self.static(x) for x in node.inputs]
        attributes = [(name, self.static(x)) for name, x in sorted(node.attributes.items())]
        return (node.op.name, inputs, attributes, node.detached,
                [self.type(v.type) for v in node.outputs], [self.graph(r) for r in node.regions])

    def type(self, type: TensorType) -> tuple:
        return (type.dtype.name, self.statics(type.shape), str(type.device or CPU))

    def statics(self, items: Iterable[Any]) -> list:
        return [self.static(x) for x in items]

    def static(self, x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return self.statics(x)
        if isinstance(x, ErrorOf):
            own = 0 if x.kind.__module__ == "builtins" else id(x.kind)  # names may be given twice
            return ("error", x.name, own, self.statics(x.arguments))
        if isinstance(x, slice):
            return ("slice", *self.statics((x.start, x.stop, x.step)))
        if type(x) is not SymInt:
            if issubclass(type(x), float) and type(x) is not float:  # of the user's, with its own
                return ("float", float(x))  # way to be one
            return x
        known = x.scope.resolve(x)
        return self.terms(known.key) if type(known) is SymInt else known

    def terms(self, key: tuple) -> list:
        found = self.known.get(key)
        if found is None:
            terms = [(sorted(map(self.atom, monomial), key=repr), c) for monomial, c in key]
            found = self.known[key] = sorted(terms, key=repr)
        return found

    def atom(self, atom: Any) -> Any:
        if isinstance(atom, str):
            if atom in self.symbols:
                return ("symbol", self.symbols[atom])
            self.free.add(atom)  # a run gives its value by this name
            return ("free", atom)
        return (atom.name, *(x if type(x) is int else self.terms(x) for x in atom.operands))
