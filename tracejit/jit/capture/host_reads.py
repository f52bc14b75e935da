"""Pending values: numbers read from tensors in a recorded call, known after the program has run.

In: `.item()` of a tensor, asked through `Tracer.item`. Out: pending floats and ints, whose value a
segment computes. Such a number ends no segment while a replay can repeat on the host what is done
with it. It may go to a list, an attribute, the return value, arithmetic, a text. Code that depends
on the value calls `concretize()`, which runs the segment.

Arithmetic of pending numbers is remembered, not recorded in the graph. Python does it on each
replay, so it is Python's own, bit for bit. Only operations that never raise are remembered: a
replay does them after its program has written memory. `host_program.py` makes the replay's steps of
them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

from tracejit.core.eager.interchange import number_of
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import of_array
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.pointwise_record import cast, copy
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.types import bool_, float64
from tracejit.jit.capture.location import public_caller
from tracejit.jit.capture.looking import is_a, is_exactly, stands_in
from tracejit.jit.capture.plain_attributes import PlainAttributes
from tracejit.jit.capture.runtime_numbers import INFIX, evaluate
from tracejit.jit.capture.scalars import CallSymFloat, CallSymInt, SymNumber
from tracejit.jit.ir.sizes import SymInt

UNKNOWN = type("Unknown", (), {"__repr__": lambda self: "(unknown)"})()
MAX_BITS = 900  # an int with fewer becomes a float without overflow
_IN_GRAPH = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}
_DIVISIONS = ("truediv", "floordiv", "mod")
_NEVER_RAISE = ("add", "sub", "mul", "neg", "abs", "and_", "or_", "xor", "invert", "float")


@stands_in
class AfterSym(PlainAttributes):
    """Value that the host knows only when the program has run: `op(*operands)`. `op` is a Python
    operator's name or a function. Where `op` is None, the one operand (a tensor, a SymInt) holds
    the value. `bits` bounds the length of an int."""

    on_host = False  # no replay knows it before the program runs
    reads_number = True  # a leaf is the element of its tensor, not the tensor

    def __init__(self, tracer: Any, op: Any, operands: tuple, bits: int = 64):
        self.call, self.op, self.bits = tracer, op, bits
        self.operands = tuple([x.waiting() if is_a(x, SymNumber) else x
                               for x in operands])
        self.known: Any = UNKNOWN
        self.value: Any = None  # of the graph in which an op last used it
        tracer.pending.append(weakref.ref(self))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self.kind

    def concretize(self, reason: str = "") -> Any:
        """Return the value. The segment ends here if that is not known yet, nor constant."""
        if self.known is UNKNOWN:
            if active.tracer is not None and not _are_constants(active.tracer, self):
                reason = reason or f"needed at once{_asking()}"
                active.tracer.break_graph(None, "the function calls item(), and its number is "
                                                f"{reason}")
            tracer: Any = active.tracer
            asks = tracer is not None and tracer.root is self.call.root
            fill_in(self, asks)
        return self.known

    @property
    def hint(self) -> Any:
        """Value; or the object itself if no tracer is active and a tensor that it is made of is
        deferred."""
        over = active.tracer is None and any(map(_is_deferred, leaves(self)))
        return self if over else self.concretize()

    def output_spec(self, builder: Any) -> Callable[[Any], Any]:
        """Return the function by which a replay computes the value again."""
        return builder.host.output_spec(self, builder)

    def __repr__(self) -> str:
        return repr(self.concretize("shown"))

    def __str__(self) -> str:
        return str(self.concretize("shown"))

    def __format__(self, spec: str) -> str:
        return format(self.concretize("shown"), spec)

    def __bool__(self) -> bool:
        return bool(self.concretize("tested"))

    def __hash__(self) -> int:
        return hash(self.concretize("hashed"))

    def __reduce__(self) -> tuple:
        return (self.kind, (self.concretize("copied"),))


def _asking() -> str:
    """Return ` by f()` for the function of tracejit's that the user's code called; else ""."""
    name = public_caller()
    return f" by {name}()" if name else ""


class AfterSymNumber(AfterSym):
    """Number read from a tensor, or computed from such numbers."""

    element_type: Any

    @property
    def sym_env(self) -> Any:
        return self

    @property
    def open(self) -> bool:
        return self.known is UNKNOWN

    @property
    def tracer(self) -> Any:
        return self.call

    def graph_value(self, tracer: Any) -> Any:
        """Return the number as a value of the current segment, for a tensor op."""
        if self.value is None or self.value.graph is not tracer.graph:
            self.value = _in_graph(self, tracer)
        return self.value

    def arithmetic(self, op: str, operands: tuple) -> Any:
        """Remember the operation where it cannot raise; else compute it now."""
        return remembered(op, operands)

    def comparison(self, op: str, left: Any, right: Any) -> bool:
        return evaluate(op, [_value(x, "compared") for x in (left, right)])

    def __bool__(self) -> bool:
        return bool(self.concretize("tested"))


class AfterSymFloat(AfterSymNumber, CallSymFloat):  # type: ignore[override]
    """Float whose value only the segment knows."""

    kind = float


class AfterSymInt(AfterSymNumber, CallSymInt):  # type: ignore[override]
    """Int whose value only the segment knows."""

    kind = int


class AfterSymStr(AfterSym):
    """Text with pending numbers in it; made by `host_texts`."""

    kind = str

    def __add__(self, other: Any) -> Any:
        return joined(self, other) if is_a(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return joined(other, self) if is_a(other, str) else NotImplemented

    def __mod__(self, arguments: Any) -> str:
        return self.concretize() % arguments

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("known", "call"):
            raise AttributeError(name)
        return getattr(self.concretize(), name)


class AfterSymObject(AfterSym):
    """Part of a text that the user never sees: a tensor as it was, a container."""

    reads_number = False


NUMBERS = frozenset([AfterSymFloat, AfterSymInt])
AfterSymStr.__name__ = AfterSymStr.__qualname__ = "str"  # in Python's error texts
AFTER_SYMS = frozenset([*NUMBERS, AfterSymStr, AfterSymObject])


# -- reading --------------------------------------------------------------------------------------
def read(tracer: Any, tensor: Tensor) -> Any:
    """Return `tensor.item()` (one element): pending while the call may still become an entry. Bools
    and complex numbers never are: they end the segment unless constants decide them."""
    dtype = tensor._dtype
    if not tracer.defers() or dtype is bool_ or dtype.is_complex:
        known = tracer.fold_constant(tensor)
        if known is not None:
            return number_of(known)
        tracer.break_graph(tensor, "the function calls item()")
        return number_of(tensor)
    made = AfterSymFloat if dtype.is_floating_point else AfterSymInt
    return made(tracer, None, (snapshot(tracer, tensor),))


def snapshot(tracer: Any, tensor: Any) -> Tensor:
    """Copy what the tensor holds now: later writes do not change the copy."""
    with no_grad():
        return tracer.run(copy, (tensor,), {})


def is_computed(pending: AfterSym) -> bool:
    """Return True if the value is known, or no tensor that it is made of is deferred."""
    return pending.known is not UNKNOWN or not any(map(_is_deferred, leaves(pending)))


def _is_deferred(x: Any) -> bool:
    return is_a(x, Tensor) and x._traced is not None


def _are_constants(tracer: Any, pending: AfterSym) -> bool:
    """Return True if constants alone decide a pending value. Put these constants, concrete, in
    place of its tensors."""
    for x in in_order(pending, set()):
        if x.op is None and _is_deferred(x.operands[0]):
            known = tracer.fold_constant(x.operands[0])
            if known is None:
                return False
            x.operands = (known,)
    return True


def _value(x: Any, reason: str) -> Any:
    if is_exactly(x, AFTER_SYMS):
        return x.concretize(reason)
    return x.concretize() if is_a(x, SymNumber) else x


def leaves(pending: AfterSym) -> Iterator[Any]:
    """Yield the tensors and sizes that a pending value is made of."""
    for x in in_order(pending, set()):
        if x.op is None:
            yield x.operands[0]


def in_order(pending: AfterSym, done: set[int]) -> Iterator[AfterSym]:
    """Yield the pending values that are not known yet, `pending` last, each after its operands.
    Skip those whose id is in `done`; add to it the ids of all others."""
    stack = [pending]
    while stack:
        x = stack[-1]
        waiting = [y for y in x.operands if is_exactly(y, AFTER_SYMS) and id(y) not in done]
        if id(x) in done or x.known is not UNKNOWN:
            done.add(id(x))
            stack.pop()
        elif waiting:
            stack.extend(waiting)
        else:
            done.add(id(x))
            yield stack.pop()


def fill_in(pending: AfterSym, asks: bool) -> None:
    """Set `known` of a pending value and of all that it is made of; their tensors are concrete.
    `asks`: guard the runtime numbers and sizes among them."""
    for x in in_order(pending, set()):
        x.known = computed(x, [_known(y, asks) for y in x.operands])
        x.operands, x.value = (), None


def _known(x: Any, asks: bool) -> Any:
    if is_exactly(x, AFTER_SYMS):
        return x.known
    if is_a(x, SymNumber) or type(x) is SymInt:
        return x.concretize() if asks else x.hint
    return x


def computed(pending: AfterSym, values: list[Any]) -> Any:
    """Compute a pending value, given the values of its operands."""
    if pending.op is None:
        (leaf,) = values
        return number_of(leaf) if pending.reads_number and is_a(leaf, Tensor) else leaf
    if is_a(pending.op, str):
        return evaluate(pending.op, values)
    tracer: Any = active.tracer
    with nullcontext() if tracer is None else tracer.paused():
        return pending.op(*values)  # it may print tensors: that is not recorded


# -- arithmetic -----------------------------------------------------------------------------------
def remembered(op: str, operands: tuple) -> Any:
    """Apply an operator to numbers, some pending: later if it cannot raise, else now."""
    tracer: Any = active.tracer
    parts = tuple([_part(tracer, x) for x in operands])
    waiting = [x for x in parts if is_exactly(x, NUMBERS) and x.known is UNKNOWN]
    bits = _bits(op, parts)
    if (
        not waiting
        or bits > MAX_BITS
        or any(x.call is not tracer for x in waiting)
        or not tracer.defers()
    ):
        return evaluate(op, [_value(x, "computed with") for x in operands])
    floats = op in ("truediv", "float") or any(is_a(x, float) for x in parts)
    return (AfterSymFloat if floats else AfterSymInt)(tracer, op, parts, bits)


def _part(tracer: Any, x: Any) -> Any:
    return AfterSymInt(tracer, None, (x,)) if type(x) is SymInt and tracer is not None else x


def _bits(op: str, parts: tuple) -> int:
    """Return a bound for the length of the result if it is an int; more than MAX_BITS where the
    operation may raise."""
    sizes = [_length(x) for x in parts]
    if op in _DIVISIONS:
        return max(sizes) if _never_zero(parts[1]) else MAX_BITS + 1
    if op == "round":
        return sizes[0] if type(parts[-1]) is int and parts[-1] >= 0 else MAX_BITS + 1
    if op not in _NEVER_RAISE:
        return MAX_BITS + 1
    return sum(sizes) if op == "mul" else max(sizes) + 1


def _length(x: Any) -> int:
    if is_exactly(x, NUMBERS):
        return x.bits
    return x.bit_length() if is_exactly(x, (int, bool)) else 64


def longest(numbers: Iterable[Any]) -> int:
    """Return a bound for the length in bits of each of some ints."""
    return max(map(_length, numbers))


def _never_zero(x: Any) -> bool:
    if is_exactly(x, NUMBERS) and x.known is not UNKNOWN:
        return bool(x.known != 0)
    if type(x) is AfterSymInt and x.op is None and type(x.operands[0]) is SymInt:
        return bool(x.operands[0] != 0)  # the program is guarded by the answer
    return is_exactly(x, (int, float)) and x != 0


def _infix(op: str, reflected: bool) -> Callable[[Any, Any], Any]:
    name = f"__{'r' if reflected else ''}{op.rstrip('_')}__"

    def call(self: Any, other: Any, *modulus: Any) -> Any:
        if type(other) is SymInt and not modulus:
            return remembered(op, (other, self) if reflected else (self, other))
        if type(self) is not AfterSymInt:
            return getattr(CallSymFloat, name)(self, other, *modulus)
        return getattr(CallSymInt, name)(self, other, *modulus)

    return call


for _op in INFIX:
    for _reflected in (False, True):
        _owner: Any = AfterSymNumber if hasattr(CallSymFloat, f"__{_op.rstrip('_')}__") \
            else AfterSymInt  # fmt: skip
        _name = f"__{'r' if _reflected else ''}{_op.rstrip('_')}__"
        setattr(_owner, _name, _infix(_op, _reflected))


def _compared(op: str) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        return evaluate(op, [_value(x, "compared") for x in (self, other)])

    return call


for _op in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(AfterSymStr, f"__{_op}__", _compared(_op))
for _name in ("len", "iter", "contains", "getitem", "mul", "rmul"):
    setattr(AfterSymStr, f"__{_name}__", lambda self, *rest, _name=_name: getattr(
        self.concretize(), f"__{_name}__")(*rest))
AfterSymStr.__hash__ = AfterSym.__hash__  # type: ignore[method-assign]


def joined(*parts: Any) -> Any:
    """Join texts, some of them pending."""
    tracer: Any = active.tracer
    if tracer is None or not tracer.defers():
        return "".join([str(x) for x in parts])
    return AfterSymStr(tracer, _concatenate, parts)


def _concatenate(*parts: str) -> str:
    return "".join(parts)


# -- as an operand of a tensor op ------------------------------------------------------------------
def _in_graph(number: AfterSymNumber, tracer: Any) -> Any:
    """Return a number as a value of the graph. A number that the graph cannot compute is
    concretized and enters as a constant."""
    made: Any = None
    for x in in_order(number, set()):
        if x.op is not None and all(map(_is_known, x.operands)):
            x.concretize()  # its operands became known after it was made
            continue
        made = x.value
        if made is None or made.graph is not tracer.graph:
            made = x.value = _node_of(x, tracer)
        if made is None:
            number.concretize("used in a tensor operation")
            break
    if number.known is UNKNOWN:
        return made
    held = of_array_of(number)
    if not tracer.root.breaks:  # constants alone decided it
        held = tracer.constant(held)
    made = tracer.operands((held,))[0]
    made.is_weak = True
    return made


def _is_known(x: Any) -> bool:
    if is_exactly(x, AFTER_SYMS):
        return x.known is not UNKNOWN
    return is_exactly(x, (int, float, bool))


def of_array_of(number: AfterSymNumber) -> Tensor:
    """Make a rank-0 tensor of a known number: float64, or int64."""
    return of_array(number.element_type.numpy.type(number.known).reshape(()))


def _node_of(x: Any, tracer: Any) -> Any:
    if x.op is None and is_a(x.operands[0], Tensor):
        value = tracer.traced(x.operands[0]).read()
        if len(value.type.shape):
            value = tracer.graph.append(REGISTRY["reshape"], (value,), {"shape": ()})
        return _weak(tracer, value, x.element_type)
    name = _IN_GRAPH.get(x.op)
    if name is None or type(x) is not AfterSymFloat:
        return None
    operands = [_float_operand(tracer, y) for y in x.operands]
    if any(y is None for y in operands):
        return None
    return _weak(tracer, tracer.graph.append(REGISTRY[name], tuple(operands), {}), float64)


def _float_operand(tracer: Any, x: Any) -> Any:
    if is_exactly(x, NUMBERS):
        if x.known is not UNKNOWN:
            return float(x.known)
        return None if x.value is None else _weak(tracer, x.value, float64)
    if is_a(x, SymNumber):
        return x.graph_value(tracer) if type(x) is CallSymFloat else None
    return float(x)


def _weak(tracer: Any, value: Any, dtype: Any) -> Any:
    """Make a value promote like a Python number, in the width of that number."""
    if value.type.dtype is not dtype:
        value = tracer.graph.append(cast, (value,), {"dtype": dtype})
    value.is_weak = True
    return value
