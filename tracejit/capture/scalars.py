"""Python floats that change between calls without a recompilation: runtime scalars.

In: float arguments of captured functions, and numbers the optimizers read through `read_number`.
Out: `RuntimeFloat`s,
whose arithmetic is recorded in float64; a comparison, `float()` or a C function asks for the
value, which is then guarded (C2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.eager.recording import active
from tracejit.eager.tensor import Tensor
from tracejit.ir.graph import Value
from tracejit.ops.movement import expand
from tracejit.ops.record import REGISTRY
from tracejit.ops.types import TensorType, float64

_PYTHON: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
}


class RuntimeFloat:
    """A Python float known only when the program runs; `hint` is the example's value."""

    dtype, shape, is_weak = float64, (), True
    dispatch = staticmethod(Tensor.dispatch)

    def __init__(self, recorder: Any, hint: float, sources: frozenset, value: Value | None = None):
        self.recorder: Any = recorder
        self.hint, self.sources, self.value = hint, sources, value

    @property  # type: ignore[misc]
    def __class__(self):
        return float

    def graph_value(self, recorder: Any) -> Value:
        """Its value in the current segment; after a flush it enters the new one as an input."""
        if self.value is None or self.value.graph is not recorder.graph:
            self.value = recorder.graph.input(TensorType(float64, ()), source=self.name)
            self.value.is_weak = True
            recorder.scalars.append((self, self.value))
        return self.value

    @property
    def name(self) -> str:
        return next(iter(self.sources)).text if len(self.sources) == 1 else "number"

    def concrete(self) -> float:
        """The example's value; the program now depends on it."""
        self.recorder.frozen_scalars |= self.sources
        return self.hint

    __float__ = concrete

    def __index__(self) -> int:
        raise TypeError("'float' object cannot be interpreted as an integer")

    def __int__(self) -> int:
        return int(self.concrete())

    __trunc__ = __int__

    def __bool__(self) -> bool:
        return bool(self.concrete())

    def __hash__(self) -> int:
        return hash(self.concrete())

    def __repr__(self) -> str:
        return repr(self.concrete())

    def __format__(self, spec: str) -> str:
        return format(self.concrete(), spec)

    def __neg__(self) -> Any:
        return _arithmetic("mul", self, -1.0)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> float:
        return abs(self.concrete())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.concrete(), digits)

    def __reduce__(self):
        return (float, (self.concrete(),))

    def expand(self, *shape: Any) -> Any:
        """A tensor full of it: ops take it for a rank-0 tensor."""
        return expand(self, *shape)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.concrete(), name)


def _arithmetic(name: str, left: Any, right: Any) -> Any:
    runtime = left if type(left) is RuntimeFloat else right
    if not all(isinstance(x, (int, float)) for x in (left, right)):
        return NotImplemented
    recorder: Any = runtime.recorder
    hints = [x.hint if type(x) is RuntimeFloat else float(x) for x in (left, right)]
    try:
        hint = _PYTHON[name](*hints)
    except (ZeroDivisionError, OverflowError):
        return _PYTHON[name](*(float(x) for x in (left, right)))
    if active.recorder is not recorder or isinstance(hint, complex):
        return _PYTHON[name](*(float(x) for x in (left, right)))
    sources = frozenset().union(*(x.sources for x in (left, right) if type(x) is RuntimeFloat))
    operands = tuple(
        x.graph_value(recorder) if type(x) is RuntimeFloat else float(x) for x in (left, right)
    )
    graph: Any = runtime.recorder.graph
    value = graph.append(REGISTRY[name], operands, {})
    value.is_weak = True
    return RuntimeFloat(recorder, hint, sources, value)


def _operator(name: str, python: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        left, right = (other, self) if reflected else (self, other)
        return _arithmetic(name, left, right)

    call.__name__ = python
    return call


def _comparison(python: str) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return getattr(float(self.concrete()), python)(float(other))

    return call


for _name, _stem in (
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("div", "truediv"),
    ("pow", "pow"),
):
    setattr(RuntimeFloat, f"__{_stem}__", _operator(_name, f"__{_stem}__", False))
    setattr(RuntimeFloat, f"__r{_stem}__", _operator(_name, f"__r{_stem}__", True))
for _stem in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(RuntimeFloat, f"__{_stem}__", _comparison(f"__{_stem}__"))
RuntimeFloat.__hash__ = lambda self: hash(self.concrete())  # type: ignore[method-assign]


def read_number(container: Any, key: Any) -> Any:
    """`container[key]`, as a runtime scalar while recording: optimizers read lr and friends
    through this."""
    recorder: Any = active.recorder
    number = container[key]
    if recorder is None or type(number) is not float:
        return number
    return recorder.number(container, key, number)
