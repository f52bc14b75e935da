"""Runtime scalars: Python numbers that change between calls without a recompilation.

In: ints and floats of the caller (arguments, attributes, container entries, globals, what the
optimizers read through `read_scalar`). Out: `CallSymInt`s and `CallSymFloat`s. Arithmetic among
them stays on the host, as expressions a replay evaluates in Python. Where a tensor meets one, its
value becomes a rank-0 input of the graph. Comparing asks for the answer, everything else (a shape,
an index, text, a C function) for the value: what was asked is guarded (C2).

A number that only the program knows subclasses `CallSymInt` or `CallSymFloat` and sets `on_host` to
False. It says in `arithmetic`, `comparison`, `concretize`, `graph_value` and `output_spec` what
becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Number
from operator import index
from typing import Any

import numpy as np

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.movement import expand
from tracejit.core.ops.pointwise_record import coerce, constant
from tracejit.core.ops.record import Op
from tracejit.core.ops.types import FLOATING, TensorType, float64, int64
from tracejit.jit.capture.looking import is_a, is_exactly, is_stand_in, stands_in
from tracejit.jit.capture.number_sizes import size_of
from tracejit.jit.capture.plain_attributes import PlainAttributes
from tracejit.jit.capture.runtime_numbers import COMPARISONS, FUNCTIONS, INFIX, SymEnv, evaluate
from tracejit.jit.ir.graph import Value
from tracejit.jit.ir.sizes import SymInt, has_order

_PLAIN = (int, float, bool)
_NUMBERS: Any = (int, float, Number)
_OF_SIZES = ("add", "sub", "mul", "floordiv", "mod")
_BITS = ("and_", "or_", "xor", "lshift", "rshift")  # of ints alone


@stands_in
class SymNumber(PlainAttributes):
    """Python number known only when the program runs; `hint` is the example's value."""

    shape: tuple = ()
    is_weak = True  # promotes like a Python number
    on_host = True  # a replay computes it in Python, before the program runs
    element_type: Any = None

    def __init_subclass__(cls) -> None:
        cls.__name__ = cls.__qualname__ = cls.kind.__name__  # in Python's error texts

    def __init__(
        self,
        sym_env: SymEnv,
        hint: Any,
        source: Any = None,
        op: str | None = None,
        operands: tuple = (),
    ):
        self.sym_env, self.hint, self.source = sym_env, hint, source
        self.op, self.operands = op, operands
        self.value: Value | None = None
        self.original: Any = self  # what lies at its place while the call is recorded

    @property  # type: ignore[misc]
    def __class__(self):
        return self.kind

    @property
    def dtype(self) -> Any:
        """None where nobody records, as in another thread: ops take it for a Python number."""
        return None if active.tracer is None else self.element_type

    @property
    def name(self) -> str:
        return getattr(self.source, "text", "number")

    @property
    def tracer(self) -> Any:
        """Tracer that records it; None once the recording is over."""
        return self.sym_env.tracer

    # -- the ways out and in ---------------------------------------------------------------------
    def concretize(self) -> Any:
        """Return the example's value; the program now depends on it."""
        return self.sym_env.concretize(self)

    def specialize_if_in(self, special: Sequence[float]) -> Any:
        """Return which of some values it is, or itself.

        Where the program must give every bit that eager mode gives: return its value.
        """
        tracer: Any = active.tracer
        if tracer is not None and tracer.root.exact:
            return self.concretize()
        if not self.on_host:
            return self
        me: Any = self
        return next((self.kind(x) for x in special if me == x), self)

    def graph_value(self, tracer: Any) -> Any:
        """Return its value in the current segment; after a flush it enters the new one as an
        input."""
        if tracer is not self.tracer:
            return self.hint
        if self.value is None or self.value.graph is not tracer.graph:
            if self.kind is int and not self.sym_env.fits(self):
                return coerce(self.concretize(), int64)
            self.value = tracer.graph.input(TensorType(self.element_type, ()), source=self.name)
            self.value.is_weak = True
            tracer.scalars.append((self, self.value))
        return self.value

    def arithmetic(self, op: str, operands: tuple) -> Any:
        """Apply a Python operator to numbers, this one among them."""
        return self.sym_env.apply(op, operands)

    def comparison(self, op: str, left: Any, right: Any) -> bool:
        """Compare numbers as Python does, this one among them."""
        return self.sym_env.compare(op, left, right)

    def waiting(self) -> Any:
        """Return what texts and pending numbers keep of it."""
        return self

    def output_spec(self, builder: Any) -> Callable[[Any], Any]:
        """Make the function by which a replay makes it again."""
        number = builder.computed(self)
        return lambda frame: frame.numbers[number]

    @staticmethod
    def dispatch(op: Any, operands: tuple, attributes: dict) -> Any:
        """Ops take it for a rank-0 tensor; made floating it is rounded as Python would round."""
        first = operands[0]
        if op.name == "convert" and is_a(first, CallSymInt):
            target = attributes["dtype"]
            if first.on_host and not first.sym_env.fits(first):
                return coerce(first.concretize(), target)
            if target.category >= FLOATING:
                operands = (first.as_float(), *operands[1:])
                if target is float64:
                    return operands[0]
                if type(operands[0]) is float:  # its value was known by now
                    return coerce(operands[0], target)
        return Tensor.dispatch(op, operands, attributes)

    # -- asked for its value ---------------------------------------------------------------------
    def __float__(self) -> float:
        return float(self.concretize())

    def __int__(self) -> int:
        return int(self.concretize())

    def __bool__(self) -> bool:
        return self.comparison("ne", self, 0)

    def __hash__(self) -> int:
        return hash(self.concretize())

    def __repr__(self) -> str:
        return repr(self.concretize())

    def __str__(self) -> str:
        return str(self.concretize())

    def __format__(self, spec: str) -> str:
        return format(self.concretize(), spec)

    def __complex__(self) -> complex:
        return complex(self.concretize())

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.concretize(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions compute with the plain number, whose type gives way to others'."""
        plain = [x.concretize() if is_a(x, SymNumber) else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __reduce__(self):
        return (self.kind, (self.concretize(),))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'")
        return getattr(self.concretize(), name)

    # -- arithmetic that no table below holds ----------------------------------------------------
    def __pos__(self) -> Any:
        return self

    def __divmod__(self: Any, other: Any) -> Any:
        return _quotient_and_rest(self, other) if is_a(other, _NUMBERS) else NotImplemented

    def __rdivmod__(self: Any, other: Any) -> Any:
        return _quotient_and_rest(other, self) if is_a(other, _NUMBERS) else NotImplemented

    def __round__(self, digits: Any = None) -> Any:
        return self.arithmetic("round", (self,) if digits is None else (self, index(digits)))

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self.concretize(), other, modulus)
        return _binary("pow", self, other, self)

    def expand(self, *shape: Any) -> Any:
        """Make a tensor full of it: ops take it for a rank-0 tensor."""
        return expand(self, *shape)


class CallSymFloat(SymNumber):
    """Python float known only when the program runs."""

    element_type, kind = float64, float


class CallSymInt(SymNumber):
    """Python int known only when the program runs."""

    element_type = int64
    kind: type = int

    def __index__(self) -> int:
        return self.concretize()

    def as_size(self) -> Any:
        """Return a size of the program that is being recorded, or the value, on which it then
        depends."""
        tracer: Any = active.tracer
        if tracer is None or not self.on_host or tracer.root is not self.tracer:
            return self.concretize()
        return size_of(tracer.root, self)

    def in_a_word(self) -> Any:
        """Itself, or its value, on which the program then depends, where no int64 holds that."""
        return self if not self.on_host or self.sym_env.fits(self) else self.concretize()

    def as_float(self) -> Any:
        """`float(self)`, without asking for the value."""
        return self.arithmetic("float", (self,))


def _binary(op: str, left: Any, right: Any, me: SymNumber) -> Any:
    other = right if me is left else left
    kind = type(other)
    if not is_exactly(other, _PLAIN) and not is_a(other, SymNumber):
        if is_stand_in(other) and hasattr(kind, "graph_value") or is_a(other, Tensor):
            return NotImplemented
        if kind is SymInt and me.kind is float:
            other = other.concretize()
        elif kind is SymInt and op in _OF_SIZES:
            mine = me.as_size()
            if type(mine) is int and mine.bit_length() > 32:  # no size is made of it
                other = other.concretize()
            return evaluate(op, (mine, other) if me is left else (other, mine))
        else:  # what the plain number and this object make of each other
            values = [x.concretize() if x is me else x for x in (left, right)]
            return evaluate(op, values)
        left, right = (me, other) if me is left else (other, me)
    return _arbiter(me, other).arithmetic(op, (left, right))


def _arbiter(me: SymNumber, other: Any) -> SymNumber:
    """Return the number that decides: one that is not on the host, else one of this thread's
    recording."""
    if not me.on_host or not is_a(other, SymNumber):
        return me
    return me if other.on_host and me.sym_env.open else other


def _operator(op: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        return _binary(op, other, self, self) if reflected else _binary(op, self, other, self)

    return call


def _comparison(op: str) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        if is_exactly(other, _PLAIN) or is_a(other, SymNumber):
            return _arbiter(self, other).comparison(op, self, other)
        if is_stand_in(other) and hasattr(other, "graph_value") or is_a(other, Tensor):
            return NotImplemented
        if type(other) is SymInt and self.kind is int:
            return evaluate(op, (self.as_size(), other))
        if not (is_a(other, Number) if op in ("eq", "ne") else has_order(other)):
            return NotImplemented  # no value is asked
        return evaluate(op, (self.concretize(), other))

    return call


def _quotient_and_rest(left: Any, right: Any) -> tuple:
    try:
        return left // right, left % right
    except (TypeError, ZeroDivisionError):  # `divmod` says it in words of its own
        return divmod(constant(left), constant(right))


def _function(op: str) -> Callable[[Any], Any]:
    return lambda self: self.arithmetic(op, (self,))


def _install() -> None:
    for op in INFIX:
        name = op.rstrip("_")
        owner: type = CallSymInt if op in _BITS else SymNumber
        if op != "pow":
            setattr(owner, f"__{name}__", _operator(op, False))
        setattr(owner, f"__r{name}__", _operator(op, True))
    for op in COMPARISONS:
        setattr(SymNumber, f"__{op}__", _comparison(op))
    for op in ("neg", "abs", "floor", "ceil", "trunc"):
        setattr(SymNumber, f"__{op}__", _function(op))
    setattr(CallSymInt, "__invert__", _function("invert"))  # noqa: B010
    SymNumber.__hash__ = lambda self: hash(self.concretize())  # type: ignore[method-assign]


_install()


def call_sym(sym_env: SymEnv, hint: Any, **what: Any) -> SymNumber:
    """Make the runtime scalar of the example's type."""
    return (CallSymInt if type(hint) is int else CallSymFloat)(sym_env, hint, **what)


def concretize_attributes(op: Op, attributes: dict) -> dict:
    """Attributes of an op with runtime scalars made sizes where there can be one, else made plain:
    the program depends on them."""
    for name, value in attributes.items():
        plain = _concretize_attribute(value, name in op.sizes)
        if plain is not value:
            attributes = {**attributes, name: plain}
    return attributes


def _concretize_attribute(value: Any, sizes: bool) -> Any:
    if is_a(value, SymNumber):
        return value.as_size() if sizes and is_a(value, CallSymInt) else value.concretize()
    if is_exactly(value, (tuple, list)) and value:
        parts = [_concretize_attribute(v, sizes) for v in value]
        if any(a is not b for a, b in zip(parts, value)):
            return type(value)(parts)
    return value


def applied(function: str, number: Any) -> Any:
    """`math.<function>(number)` without asking a runtime number for its value."""
    if is_a(number, SymNumber):
        return number.arithmetic(function, (number,))
    return FUNCTIONS[function](number)


def read_scalar(container: Any, key: Any) -> Any:
    """`container[key]`, as a runtime scalar while recording: optimizers read lr and friends through
    this. A tuple of numbers is read as a tuple of runtime scalars."""
    tracer: Any = active.tracer
    number = container[key]
    if tracer is None:
        return number
    if type(number) is tuple:
        return tuple(read_scalar(number, k) for k in range(len(number)))
    return tracer.number(container, key, number) if is_exactly(number, (int, float)) else number
