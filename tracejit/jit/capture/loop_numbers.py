"""Python numbers inside a rolled loop, and after a loop or branch: indices, counters, choices.

In: what `range` gives; int and float variables that a body changes or a branch chooses. Out:
numbers whose value is in the graph. In a region they add and subtract there. Their comparison is a
bool of the graph, which rewritten control flow understands. Code that asks for the value itself (an
index into a list, text) gets the region refused. Called by `loop_body.py`, `loops.py`, `join.py`.
"""

from __future__ import annotations

import weakref
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import bool_, float64, int64
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.looking import is_a, is_exactly
from tracejit.jit.capture.runtime_numbers import evaluate
from tracejit.jit.capture.scalars import CallSymFloat, CallSymInt, SymNumber
from tracejit.jit.ir.graph import Graph, Value
from tracejit.jit.ir.sizes import SymInt

SMALL = 1 << 31  # counters with smaller steps do not overflow an int64
LARGE = 1 << 62  # smaller ints can grow for long before they overflow
SMALL_STEP = 1 << 15  # indices with smaller steps may be added up as counters
DTYPES = {int: int64, float: float64, bool: bool_}
_BITS = {"and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor"}
_INT_OPS = {"add": "add", "sub": "sub", "neg": "neg"}
_FLOAT_OPS = {"add": "add", "sub": "sub", "mul": "mul", "neg": "neg"}


class GraphSymNumber:
    """Base of the numbers of a region: their value is in the graph, the host knows none."""

    on_host = False
    bounded = True  # whether it stays small however often the loop runs
    value: Value | None
    op: str | None
    operands: tuple

    def __init__(self, value: Value):
        self.value, self.hint, self.source, self.op, self.operands = value, None, None, None, ()
        value.is_weak = True

    def concretize(self) -> Any:
        raise RegionRefused(
            "it needs the value of a number that changes in each iteration")

    def graph_value(self, tracer: Any) -> Value:
        """Return its value in the graph of `tracer`: that of the region, or of one within."""
        return tracer._operand(self)

    def comparison(self, op: str, left: Any, right: Any) -> Any:
        """Return the answer as a bool of the graph: it differs from iteration to iteration."""
        return GraphSymBool(_compared(op, *_as_ints((left, right))))

    def __bool__(self) -> bool:
        return bool(self.concretize())

    def output_spec(self, builder: Any) -> Any:
        return self.concretize()


class GraphSymInt(GraphSymNumber, CallSymInt):
    """Int of a region."""

    bounded = False

    def arithmetic(self, op: str, operands: tuple) -> Any:
        return _int_arithmetic(op, operands)

    def as_float(self) -> Any:
        return GraphSymFloat(_applied("convert", (self,), {"dtype": float64}))


class GraphSymBool(GraphSymNumber, CallSymInt):
    """Bool of a region: the answer to a comparison."""

    element_type, kind = bool_, bool

    def arithmetic(self, op: str, operands: tuple) -> Any:
        if op in _BITS and all(x.__class__ is bool for x in operands):
            return GraphSymBool(_applied(_BITS[op], operands))
        return _int_arithmetic(op, operands)

    def as_int(self) -> GraphSymInt:
        """Return it as an int: 0 or 1."""
        made = GraphSymInt(_applied("convert", (self,), {"dtype": int64}))
        made.bounded = True
        return made

    def as_float(self) -> Any:
        return self.as_int().as_float()


class GraphSymFloat(GraphSymNumber, CallSymFloat):
    """Float of a region; float64, as Python's."""

    def arithmetic(self, op: str, operands: tuple) -> Any:
        return _float_arithmetic(op, operands)


def _int_arithmetic(op: str, operands: tuple) -> Any:
    if any(x.__class__ is float for x in operands):
        return _float_arithmetic(op, operands)
    chosen = op == "mul" and any(type(x) is GraphSymBool for x in operands)  # the number or 0
    operands = _as_ints(operands)
    growing = [x for x in operands if not is_bounded(x)]
    if op not in _INT_OPS and not chosen or len(growing) > 1:  # it could outgrow an int64
        raise RegionRefused(f"it computes {op} of an int that changes in each iteration")
    made = GraphSymInt(_applied("mul" if chosen else _INT_OPS[op], operands))
    made.bounded = chosen and not growing
    return made


def _as_ints(operands: tuple) -> tuple:
    """Return operands with bools as ints, as Python's arithmetic takes them. Refuse large ints."""
    if not all(_within(x, LARGE) for x in operands):
        raise RegionRefused("it uses an int that is too large")
    return tuple([x.as_int() if type(x) is GraphSymBool else int(x) if type(x) is bool else x
                  for x in operands])


def _compared(op: str, left: Any, right: Any) -> Value:
    """Compare exactly, as Python does: an int that float64 would round is compared as an int."""
    operands = left, right
    if {x.__class__ for x in operands} != {int, float}:
        return _applied(op, operands)
    floats = tuple(map(_as_float, operands))
    value = _applied(op, floats)
    if all(map(is_bounded, operands)):
        return value
    rounded = _applied("eq", floats)  # then the float is whole, and rounding may hide a difference
    whole = tuple([x if x.__class__ is int else _whole(x) for x in operands])
    return _applied("where", (rounded, _applied(op, whole), value))


def _as_float(x: Any) -> Any:
    """Make a number a float, which rounds a large int."""
    return x.as_float() if is_a(x, CallSymInt) else float(x) if type(x) is int else x


def _whole(x: Any) -> Any:
    """Convert a float that is a whole number to an int; give anything for other floats."""
    if is_a(x, SymNumber):
        return _applied("convert", (x,), {"dtype": int64})
    return int(x) if abs(x) < LARGE else 0


def _float_arithmetic(op: str, operands: tuple) -> Any:
    by_constant = op == "truediv" and is_exactly(operands[1], (int, float)) and operands[1] != 0
    if op not in _FLOAT_OPS and not by_constant:
        raise RegionRefused(f"it computes {op} of a float that changes in each iteration")
    given = tuple([_as_float(int(x) if type(x) is bool else x) for x in operands])
    return GraphSymFloat(_applied("div" if by_constant else _FLOAT_OPS[op], given))


def is_bounded(x: Any) -> bool:
    """Return True if an int stays small: adding it again and again does not overflow an int64. For
    a number of the caller, the answer guards the program."""
    if is_a(x, GraphSymNumber):
        return x.bounded
    pending = is_a(x, CallSymInt) and not x.on_host
    return not pending and _within(x, SMALL)


def _within(x: Any, most: int) -> bool:
    """Return False for an int that is known now and at least `most` in magnitude. For a number of
    the caller, the answer guards the program."""
    known = type(x) is int or is_a(x, CallSymInt) and x.on_host
    return not known or bool(-most < x) and bool(x < most)


def number_tensor(tracer: Any, number: Any, kind: type) -> Tensor:
    """Make a number a tensor of the active tracer's graph."""
    if not is_a(number, SymNumber):
        if kind is int and abs(number) >= LARGE:
            raise RegionRefused("it uses an int that is too large")
        return full_of(None, (), number, DTYPES[kind])
    value = tracer._operand(number)
    if not is_a(value, Value):
        raise RegionRefused("it uses an int that is too large")
    return tracer.tensor_of(value)


def made_in(x: Any, graph: Graph) -> bool:
    """Return True if `x` is a number whose value is one of this graph."""
    return is_a(x, GraphSymNumber) and x.value is not None and x.value.graph is graph


def _applied(op: str, operands: tuple, attributes: dict | None = None) -> Value:
    tracer: Any = active.tracer
    if tracer is None:
        raise RegionRefused("a number of a loop is used outside it")
    values = tuple([tracer._operand(x) for x in operands])
    made = tracer.graph.append(REGISTRY[op], values, attributes or {})
    made.is_weak = True
    return made


def as_tensor(value: Any) -> Tensor:
    """Return a tensor that holds a value of the active tracer's graph."""
    tracer: Any = active.tracer
    tensor = tracer.tensor_of(value)
    return tensor


def tested(value: Any) -> Any:
    """Return the tensor of a bool of the graph, to branch on; any other value as it is."""
    return number_tensor(active.tracer, value, bool) if type(value) is GraphSymBool else value


class LoopIndex(GraphSymInt):
    """Index of a loop, `start + step * position`. `body` is the loop being recorded."""

    def __init__(self, value: Value, body: Any, start: Any, step: int):
        super().__init__(value)
        self.body, self.start, self.step = body, start, step
        if type(start) is int and abs(start) >= LARGE or abs(step) >= SMALL:
            raise RegionRefused("it uses an index that is too large")
        self.bounded = is_bounded(start) and abs(step) < SMALL_STEP

    def arithmetic(self, op: str, operands: tuple) -> Any:
        left, right = operands if len(operands) == 2 else (operands[0], None)
        plain = right if left is self else left
        if op == "mul" and type(plain) is int and plain and is_bounded(self.start * plain):
            value = _applied("mul", (self, plain))
            return LoopIndex(value, self.body, self.start * plain, self.step * plain)
        if op in ("add", "sub") and (type(plain) is int or type(plain) is SymInt):
            made: Any = super().arithmetic(op, operands)
            if op == "sub" and left is not self:
                start, step = plain - self.start, -self.step
            else:
                start, step = self.start + (plain if op == "add" else -plain), self.step
            return LoopIndex(made.value, self.body, start, step)
        return super().arithmetic(op, operands)


def number_in(value: Value, kind: type) -> Any:
    """Make a Python number whose value is in a region's graph."""
    return {int: GraphSymInt, float: GraphSymFloat, bool: GraphSymBool}[kind](value)


def number_result(parent: Any, tensor: Tensor, kind: type, bounded: bool = False) -> Any:
    """Return the Python number that a loop or a branch computed. `bounded`: it stays small."""
    if parent.root is not parent:
        made = number_in(parent.traced(tensor).read(), kind)
    elif kind is bool:
        return tensor.item()  # bools are never pending: this ends the segment
    else:
        made = RegionSymInt(tensor) if kind is int else RegionSymFloat(tensor)
    made.bounded = bounded
    return made


def _in_region() -> bool:
    tracer: Any = active.tracer
    return tracer is not None and tracer.root is not tracer


class RegionSymNumber:
    """Number that a loop or a branch has computed: a tensor of the graph, and a pending number that
    the host will read from it."""

    value: Value | None
    op: str | None
    operands: tuple

    def __init__(self, tensor: Tensor):
        self.tensor, self.value, self.pending = tensor, None, tensor.item()
        self.source, self.op, self.operands = None, None, ()
        tracer: Any = active.tracer
        if tracer is not None:
            tracer.root.loop_numbers.append(weakref.ref(self))

    @property
    def hint(self) -> Any:
        return getattr(self.pending, "hint", self.pending)

    def tensors(self) -> list[Tensor]:
        """Return the tensors that it holds, which are no escaped results of the call."""
        return [self.tensor, *getattr(self.pending, "operands", ())]

    def concretize(self) -> Any:
        """Return the value; end the segment if it has not run yet."""
        concretize = getattr(self.pending, "concretize", None)
        return self.pending if concretize is None else concretize()

    def graph_value(self, tracer: Any) -> Value:
        """Return its value in the graph of `tracer`."""
        value = tracer.traced(self.tensor).read()
        value.is_weak = True
        return value

    def arithmetic(self, op: str, operands: tuple) -> Any:
        """Compute in the graph of a region; outside, on the host when the program has run."""
        if _in_region():
            return super().arithmetic(op, operands)  # type: ignore[misc]
        return evaluate(op, [x.pending if is_a(x, RegionSymNumber) else x for x in operands])

    def comparison(self, op: str, left: Any, right: Any) -> Any:
        if _in_region():
            return super().comparison(op, left, right)  # type: ignore[misc]
        return self.arithmetic(op, (left, right))

    def output_spec(self, builder: Any) -> Any:
        return builder.of(self.pending)

    def waiting(self) -> Any:
        return self.pending


class RegionSymInt(RegionSymNumber, GraphSymInt):  # type: ignore[override]
    """Int that a loop or a branch has computed."""

    def arithmetic(self, op: str, operands: tuple) -> Any:
        if op in ("add", "sub", "mul") and not _in_region() and all(map(_joins, operands)):
            growing = [x for x in operands if not is_bounded(x)]
            if len(growing) < (1 if op == "mul" else 2):  # the result fits an int64
                with no_grad():
                    tensors = [x.tensor if is_a(x, RegionSymInt) else x for x in operands]
                    return RegionSymInt(evaluate(op, tensors))
        return RegionSymNumber.arithmetic(self, op, operands)

    def as_float(self) -> Any:
        if _in_region():
            return super().as_float()
        with no_grad():
            return RegionSymFloat(self.tensor.double())


def _joins(x: Any) -> bool:
    """Return True if the graph may add an int to one that it computes."""
    plain = type(x) is int or type(x) is CallSymInt
    return is_a(x, RegionSymInt) or plain and _within(x, LARGE)


def known_to_graph(x: Any) -> bool:
    """Return True if `x` is an int whose value no code here can ask for."""
    return is_a(x, GraphSymInt) and (_in_region() or not is_a(x, RegionSymInt))


class RegionSymFloat(RegionSymNumber, GraphSymFloat):  # type: ignore[override]
    """Float that a loop or a branch has computed."""
