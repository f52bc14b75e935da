"""Scalar expressions of a graph's values: one element of an output, through all fused producers.

In: a value and the index of an element. Out: a `Scalar`. Pointwise ops substitute into their
template; movement, creation and random ops run their `element` function with a `NodeEmitter`.
Reductions become folds; a value computed elsewhere is a load. Called by `loops.py`. A value at one
index is emitted once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from tracejit.core.ops.shapes import broadcast_dims
from tracejit.core.ops.types import FLOATING, dtype, float32, float64, rounded
from tracejit.jit.ir.graph import Graph, Node, Value
from tracejit.jit.ir.sizes import SymInt
from tracejit.jit.lowering.index import (
    Condition,
    Index,
    Read,
    Variable,
    as_index,
    contiguous_strides,
    exact_quotient,
    is_zero,
    linear,
    only_atom,
    product,
    resolved,
    same_size,
    size_key,
    unravelled,
)
from tracejit.jit.lowering.partial_writes import Part
from tracejit.jit.lowering.scalars import Fold, Scalar, Scalars, register, unsimplified

_FIELD = re.compile(r"\{(\w+)\}")
_COMPARES = re.compile(r"[<>=!]=|[<>&|^~]|\bnot\b")


class Partial:
    """Memory between the two phases of a full reduction: one element for each part of the input."""

    def __init__(self, value: Value, extent: Any):
        self.value, self.dtype, self.shape = value, value.dtype, (extent,)


class Splits:
    """Flat loop variables written as several. `refine` splits more, until no // or % of them is
    left."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[Variable, Variable, Index]] = {}
        self.fixed: set[str] = set()

    def index(self, variable: Variable) -> Index:
        """Return the variable as an index of its innermost parts."""
        if type(variable.extent) is int and variable.extent == 1:
            return as_index(0)
        split = self.parts.get(variable.name)
        if split is None:
            return as_index(variable)
        outer, inner, _ = split
        return self.index(outer) * inner.extent + self.index(inner)

    def leaves(self, variable: Variable) -> list[Variable]:
        """Return the variables that the kernel really loops over, outermost first."""
        split = self.parts.get(variable.name)
        if split is None:
            return [] if type(variable.extent) is int and variable.extent == 1 else [variable]
        return self.leaves(split[0]) + self.leaves(split[1])

    def refine(self, roots: Sequence[Scalar], partial: bool = False) -> bool:
        """Split variables of which // or % is taken. Return True if there were any.

        `partial`: split also variables that run over a part of their range.
        """
        found = False
        for atom in unsimplified(roots):
            terms = list(atom.whole.terms.values())
            if len(terms) != 1 or not same_size(atom.whole.constant, 0):
                continue
            variable, coefficient = terms[0]
            if not isinstance(variable, Variable) or not same_size(coefficient, 1):
                continue
            outer = exact_quotient(variable.extent, atom.divisor)
            known = variable.name in self.parts or variable.name in self.fixed
            if outer is None or known or (variable.stop is not None and not partial):
                continue
            self.parts[variable.name] = (
                Variable(variable.name + "o", outer),
                Variable(variable.name + "i", atom.divisor),
                as_index(0),
            )
            found = True
        return found


class Emission:
    """Scalars of one kernel. The kernel computes the values in `members`, and loads all others."""

    def __init__(
        self,
        graph: Graph,
        members: set[Value],
        splits: Splits,
        partials: dict[Value, Partial] | None = None,
        chunks: dict[Value, Variable] | None = None,
    ):
        self.graph, self.members, self.splits = graph, members, splits
        self.partials = partials or {}  # full reductions whose parts another kernel left in memory
        self.chunks = chunks or {}  # full reductions of which this kernel makes one part
        self.scalars = Scalars()
        self.messages: list[str] = []
        self.known: dict[Hashable, Scalar] = {}
        self.addresses: dict[Hashable, Index] = {}  # in contiguous memory, by shape and index
        self.folds: dict[Hashable, Variable] = {}
        self.reduced: dict[int, Value] = {}  # number of a fold -> what it computes
        self.chunk_loops: list[Variable] | None = None  # the loops of `chunks`, if not all of them

    # -- values --------------------------------------------------------------------------------
    def value(self, value: Value, index: Sequence[Any]) -> Scalar:
        """Return the scalar of element `index` of a value."""
        key = (id(value), *(as_index(i).key for i in index))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._value(value, index)
        return found

    def _value(self, value: Value, index: Sequence[Any]) -> Scalar:
        node = value.node
        if value not in self.members or node is None:
            return self.load(value, index)
        saved, self.scalars.location = self.scalars.location, node.location
        try:
            if node.op.kind == "reduction":
                return self._reduction(node, index)
            if node.op.element is not None:
                emitter = NodeEmitter(self, node, value)
                places = [as_index(i) for i in index]  # to compare them asks no size
                found = node.op.element(emitter, places, **node.attributes)
                return self.scalars.after(found, emitter.checks)
            return self._pointwise(node, value, index)
        finally:
            self.scalars.location = saved

    def load(self, leaf: Any, index: Sequence[Any]) -> Scalar:
        return self.scalars.load(leaf, self.address(leaf, index))

    def address(self, leaf: Any, index: Sequence[Any]) -> Index:
        """Return the element's place, in elements from the beginning of the buffer."""
        if isinstance(leaf, Part):
            return self.address(leaf.whole, leaf.within(index))
        strides = self.graph.strides.get(leaf)
        if strides:
            return linear(index, [resolved(s) for s in strides])
        shape = [resolved(s) for s in leaf.shape]
        key = (*map(size_key, shape), *(as_index(i).key for i in index))
        found = self.addresses.get(key)
        if found is None:
            found = self.addresses[key] = linear(index, contiguous_strides(shape))
        return found

    # -- pointwise -----------------------------------------------------------------------------
    def _pointwise(self, node: Node, value: Value, index: Sequence[Any]) -> Scalar:
        number_type = self._number_type(node, value)
        named = {}
        for k, x in enumerate(node.inputs):
            if isinstance(x, Value):
                named[node.op.operand_name(k)] = self.value(x, broadcast_index(index, value, x))
            elif x is not None:
                named[node.op.operand_name(k)] = self.number(x, number_type)
        assert node.op.scalar is not None
        return self.call(node.op.scalar, value.dtype, named)

    def _number_type(self, node: Node, value: Value) -> dtype:
        """Return the type for numbers among the operands: the one the op computes in, float32 for
        halves."""
        found = value.dtype
        if found.name == "bool":
            kinds = [x.dtype for x in node.operand_values()]
            found = next((d for d in kinds if d.name != "bool"), kinds[0])
        return float32 if found.category == FLOATING and found.itemsize == 2 else found

    def number(self, value: Any, d: dtype) -> Scalar:
        """Return a constant of dtype `d`. Sizes are constants of the kernel's call."""
        if type(value) is SymInt or isinstance(value, Index):
            return self.from_index(as_index(value), register(d))
        if d.category == 2 and d.itemsize == 2:
            value = float(rounded(np.asarray(value), d))
        elif d.is_floating_point:
            value = float(value)
        elif d.name != "bool":
            value = int(value)
        return self.scalars.number(value, register(d))

    def from_index(self, index: Index, kind: str) -> Scalar:
        atom = only_atom(index)
        if isinstance(atom, Read):
            return self._cast(atom.scalar, kind)
        return self._cast(self.scalars.index(index, "int64"), kind)

    def _cast(self, scalar: Scalar, kind: str) -> Scalar:
        return (
            scalar if scalar.dtype == kind else self.scalars.call(f"{kind}({{0}})", kind, (scalar,))
        )

    def call(self, template: str, d: dtype, named: dict[str, Scalar]) -> Scalar:
        """Return a template's value, of dtype `d`."""
        kind = register(d)
        order: list[str] = []
        used: list[Scalar] = []

        def place(match: re.Match) -> str:
            name = match.group(1)
            if name == "dtype":
                return kind
            if name not in order:
                order.append(name)
                used.append(named[name])
            return f"{{{order.index(name)}}}"

        text = _FIELD.sub(place, template)
        if text == "{0}":
            result = self._cast(used[0], kind)
        elif text == kind + "({0})" and used[0].dtype == kind:
            result = used[0]
        else:
            if text.startswith("(") and text.endswith(")") and _balanced(text[1:-1]):
                text = text[1:-1]
            result = self.scalars.call(_typed(text, kind, used), kind, tuple(used))
        return self.rounded(result, d)

    def rounded(self, scalar: Scalar, d: dtype) -> Scalar:
        """Round halves after every op, as eager mode rounds them."""
        if d.name not in ("float16", "bfloat16"):
            return scalar
        if scalar.kind == "number":
            return self.number(scalar.data, d)
        if scalar.kind == "load" and scalar.data[0].dtype is d:
            return scalar
        text = f"float32_from_{d.name}({d.name}_from_float32({{0}}))"
        if scalar.kind == "call" and scalar.data == text:
            return scalar
        return self.scalars.call(text, "float32", (scalar,))

    # -- reductions ----------------------------------------------------------------------------
    def _reduction(self, node: Node, index: Sequence[Any]) -> Scalar:
        value, operand = node.outputs[0], node.inputs[0]
        reduce = node.op.reduce
        assert reduce is not None
        d = accumulator(node)
        partial = self.partials.get(value)
        if partial is not None and value not in self.chunks:
            extent = partial.shape[0]
            variable = self.fold_variable(extent, ())
            body = self.load(partial, [self.splits.index(variable)])
            result = self._fold(value, reduce.combine, reduce.identity(d), variable, body, d)
            return self.rounded(result, value.dtype)
        dims = node.attributes["dims"]
        keepdim = node.attributes.get("keepdim", False)
        kept = iter(index)
        if keepdim:
            kept = iter([i for k, i in enumerate(index) if k not in dims])
        extent = product([resolved(operand.shape[k]) for k in dims])
        variable = self.chunks.get(value) or self.fold_variable(extent, index)
        inside = iter(
            unravelled(self.splits.index(variable), [resolved(operand.shape[k]) for k in dims])
        )
        place = [next(inside) if k in dims else next(kept) for k in range(operand.ndim)]
        body = self.value(operand, place)
        if reduce.position:
            return self._position(value, reduce.combine, body, variable, d, reduce.identity(d))
        body = self._cast(body, register(d))
        result = self._fold(value, reduce.combine, reduce.identity(d), variable, body, d)
        return result if value in self.chunks else self.rounded(result, value.dtype)

    def fold_variable(self, extent: Any, index: Sequence[Any]) -> Variable:
        """Return a variable to reduce over that `index` does not depend on."""
        from tracejit.jit.lowering.scalars import variables_of

        used: set[str] = set()
        for i in index:
            used |= variables_of(as_index(i))
        depth = 0
        while True:
            key = (size_key(extent), depth)
            if key not in self.folds:
                self.folds[key] = Variable(f"r{len(self.folds)}", extent)
            found = self.folds[key]
            if not used & {v.name for v in self.splits.leaves(found)}:
                return found
            depth += 1

    def _fold(
        self, value: Value, combine: str, identity: Any, variable: Variable, body: Scalar, d: dtype
    ) -> Scalar:
        loops = self._loops(value, variable)
        if is_zero(variable.extent):
            return self.number(identity, d)
        if not loops:
            kind = register(d)
            if combine != "{a} + {b}" or not kind.startswith("float"):
                return body
            # As in a loop, -0 becomes 0.
            return self.scalars.call("({0} + {1})", kind, (self.number(identity, d), body))
        fold = Fold(loops, combine, self.number(identity, d).data)
        return self._reduced(value, self.scalars.fold(fold, body, register(d)))

    def _loops(self, value: Value, variable: Variable) -> tuple[Variable, ...]:
        if value in self.chunks and self.chunk_loops is not None:
            return tuple(self.chunk_loops)
        return tuple(self.splits.leaves(variable))

    def _reduced(self, value: Value, scalar: Scalar) -> Scalar:
        self.reduced[scalar.number] = value
        return scalar

    def _position(
        self, value: Value, combine: str, body: Scalar, variable: Variable, d: dtype, identity: Any
    ) -> Scalar:
        loops = self._loops(value, variable)
        if not loops or is_zero(variable.extent):
            return self.scalars.number(0, "int64")
        fold = Fold(loops, combine, self.number(identity, d).data, self.splits.index(variable))
        return self._reduced(value, self.scalars.fold(fold, body, "int64"))


def accumulator(node: Node) -> dtype:
    """Return the dtype a reduction accumulates in."""
    assert node.op.reduce is not None
    d = node.inputs[0].dtype if node.op.reduce.position else node.outputs[0].dtype
    return float32 if register(d) == "float32" else d


# (value, operand) by their ids, which stay theirs as long as the entry holds both.
_BROADCAST: dict[tuple[int, int], tuple[Any, Any, tuple[int, ...] | None]] = {}


def broadcast_index(index: Sequence[Any], value: Value, operand: Value) -> list[Any]:
    """Return the index of the operand's element that meets element `index` of the value."""
    key = (id(value), id(operand))
    known = _BROADCAST.get(key)
    if known is None or known[0] is not value or known[1] is not operand:
        if len(_BROADCAST) > 5000:
            _BROADCAST.clear()
        known = _BROADCAST[key] = (value, operand, _repeated(value, operand))
    repeated = known[2]
    if repeated is None:
        return list(index)
    lead = value.ndim - operand.ndim
    return [0 if lead + k in repeated else index[lead + k] for k in range(operand.ndim)]


def _repeated(value: Value, operand: Value) -> tuple[int, ...] | None:
    """Return the dimensions along which the operand is repeated; None if it has the value's own
    shape."""
    if value.ndim == operand.ndim and all(
        same_size(resolved(a), resolved(b)) for a, b in zip(value.shape, operand.shape)
    ):
        return None
    return broadcast_dims(value.shape, operand.shape)


def _balanced(text: str) -> bool:
    """Return True if the parentheses in `text` close only what `text` opened."""
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return True


def _typed(text: str, kind: str, args: Sequence[Scalar]) -> str:
    """Convert narrow integers back: NumPy's wrap, and numba's would become int64."""
    if kind in ("int8", "int16", "int32", "uint8") and not re.fullmatch(rf"{kind}\([^()]*\)", text):
        return f"{kind}({text})"
    # Kernels have no arithmetic of bools.
    arithmetic = all(a.dtype == "bool" for a in args) and not _COMPARES.search(text)
    if kind == "bool" and args and arithmetic:
        return f"({text.replace(' * ', ' & ').replace(' + ', ' | ')})"
    return text


class NodeEmitter:
    """`Emitter` that an element function talks to."""

    def __init__(self, emission: Emission, node: Node, value: Value):
        self.emission, self.node, self.value = emission, node, value
        self.checks: list[Scalar] = []

    def operand(self, k: int, index: Sequence[Any]) -> Scalar:
        x = self.node.inputs[k]
        if isinstance(x, Value):
            return self.emission.value(x, [as_index(i) for i in index])
        return self.number(x)

    def shape(self, k: int) -> tuple:
        return self.node.inputs[k].shape

    def where(self, condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        if isinstance(condition, bool):
            return yes() if condition else no()
        scalars = self.emission.scalars
        test = scalars.condition(condition) if isinstance(condition, Condition) else condition
        return scalars.choice(test, yes(), no())

    def number(self, value: Any) -> Scalar:
        return self.emission.number(value, self.value.dtype)

    def call(self, template: str, **named: Any) -> Scalar:
        known = {k: x if isinstance(x, Scalar) else self._operand_of(x) for k, x in named.items()}
        return self.emission.call(template, self.value.dtype, known)

    def _operand_of(self, x: Any) -> Scalar:
        if isinstance(x, (Index, SymInt)):
            return self.emission.from_index(as_index(x), "int64")
        kind = {bool: "bool", int: "int64", float: float64.name}[type(x)]
        return self.emission.scalars.number(x, kind)

    def to_index(self, scalar: Scalar) -> Index:
        return as_index(Read(self.emission._cast(scalar, "int64")))

    def from_index(self, index: Any) -> Scalar:
        return self.emission.from_index(as_index(index), register(self.value.dtype))

    def checked(self, index: Any, size: Any, message: str, wrap: bool = True) -> Index:
        if message not in self.emission.messages:
            self.emission.messages.append(message)
        scalar = self.emission.from_index(as_index(index), "int64")
        scalars = self.emission.scalars
        self.checks.append(scalars.checked(scalar, resolved(size), message, wrap))
        return as_index(Read(self.checks[-1], size))
