"""Structured control flow: the records of `cond`, `for_loop`, `while_loop`, `unwind_loop` and
`raise_if`.

In: operands, and regions: graphs that the node carries, which see their own inputs only. Out: the
results of the taken branch or of the last iteration. `infer` gets the regions as they are, graphs
whose `inputs` and `outputs` have a `type`; `eager` gets callables (`Region`). Called by the tracer,
which makes these nodes, and by all that run a graph: each loop is written once here, over arrays
and over Tensors alike.

    cond(predicate, *captured)                          -> outputs of the region taken
      then, otherwise: (*captured) -> outputs, of the same types in both
    for_loop(*carried, *scanned, *captured)             -> (*carried, *stacked)
      body: (index, *carried, *items, *captured) -> (*carried, *stacked items)
    while_loop(go, *carried, *captured)                 -> (count, *carried[, stack])
      body: (*carried, *captured) -> (go, *carried, *pushed)
    unwind_loop(count, stack, *carried, *captured)      -> (*carried)
      body: (*carried, *popped, *captured) -> (*carried)

A region knows the same symbols for sizes as the graph around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tracejit.core.ops.creation import full_of
from tracejit.core.ops.joining import stack
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import same_structure, shape_text
from tracejit.core.ops.slicing import select
from tracejit.core.ops.stacks import new_stack, stack_of
from tracejit.core.ops.types import TensorType, bool_, int64

HANDLE = TensorType(int64, (1,))
_COUNT = TensorType(int64, ())
_PLAIN = (str, int, float, bool, type(None))


class ErrorOf:
    """Exception that a `raise_if` raises: its class and plain arguments.

    >>> ErrorOf.of(ValueError("no", 3))
    ErrorOf(kind=<class 'ValueError'>, arguments=('no', 3))
    """

    __slots__ = ("kind", "arguments")

    def __init__(self, kind: type[BaseException], arguments: tuple = ()) -> None:
        self.kind, self.arguments = kind, arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ErrorOf) and (
            (self.kind, self.arguments) == (other.kind, other.arguments))

    def __hash__(self) -> int:
        return hash((self.kind, self.arguments))

    def __repr__(self) -> str:
        return f"ErrorOf(kind={self.kind!r}, arguments={self.arguments!r})"

    @classmethod
    def of(cls, error: BaseException) -> ErrorOf:
        """Describe an exception; TypeError where an argument is no plain data, or it holds more."""
        for argument in error.args:
            if not isinstance(argument, _PLAIN):
                raise TypeError(f"an argument of {type(error).__name__} is a "
                                f"{type(argument).__name__}, expected a number or a string")
        made = cls(type(error), tuple(error.args))
        again = made.exception()
        same = type(again) is type(error) and again.args == error.args
        if not same or vars(again) != vars(error) or error.__cause__ is not None:
            raise TypeError(f"{type(error).__name__} holds more than its arguments")
        return made

    def exception(self) -> BaseException:
        """Make a new exception as described."""
        return self.kind(*self.arguments)

    @property
    def name(self) -> str:
        """Name of the class with its module, except of builtins: `ValueError`,
        `package.module:Error`."""
        module, name = self.kind.__module__, self.kind.__qualname__
        return name if module == "builtins" else f"{module}:{name}"


class Region(Protocol):
    """Region made ready to run; `outputs` are its outputs' types, with all sizes known."""

    outputs: Sequence[TensorType]

    def __call__(self, *inputs: Any) -> list[Any]: ...


# -- types ----------------------------------------------------------------------------------------


def _types(values: Sequence[Any]) -> list[TensorType]:
    return [v.type if isinstance(v.type, TensorType) else
            TensorType(v.dtype, tuple(v.shape), v.device) for v in values]


def _text(type: TensorType) -> str:
    return f"{type.dtype.name}{shape_text(type.shape)}"


def _agree(what: str, found: Sequence[TensorType], expected: Sequence[TensorType]) -> None:
    """Raise TypeError where two lists of types differ. Sizes compare by structure, without a
    guard."""
    if len(found) != len(expected):
        raise TypeError(f"{what}: expected {len(expected)}, got {len(found)}")
    for k, (a, b) in enumerate(zip(found, expected)):
        if a.dtype is not b.dtype or len(a.shape) != len(b.shape) or not all(
                map(same_structure, a.shape, b.shape)):
            raise TypeError(f"{what}: number {k} is {_text(a)}, expected {_text(b)}")


def _predicate(what: str, type: TensorType) -> None:
    if type.dtype is not bool_ or type.shape:
        raise TypeError(f"{what} is {_text(type)}, expected bool[]")


def _cond_type(predicate: Any, *captured: Any, regions: Sequence[Any]) -> tuple:
    then, otherwise = regions
    _predicate("cond: the predicate", *_types([predicate]))
    for name, region in (("then", then), ("else", otherwise)):
        _agree(f"cond: inputs of the {name} region", _types(region.inputs), _types(captured))
    given = _types(then.outputs)
    _agree("cond: outputs of the else region", _types(otherwise.outputs), given)
    return tuple(given)


def _item(type: TensorType, trip_count: Any) -> TensorType:
    if not type.shape or not same_structure(type.shape[0], trip_count):
        raise TypeError(f"for_loop: a scanned operand is {_text(type)}, expected a leading size "
                        f"of {trip_count}")
    return type._replace(shape=type.shape[1:])


def _for_type(*operands: Any, trip_count: Any, carried: int, scanned: int, reverse: bool,
              regions: Sequence[Any]) -> tuple:
    (body,) = regions
    given = _types(operands)
    state, rest = given[:carried], given[carried + scanned:]
    items = [_item(t, trip_count) for t in given[carried:carried + scanned]]
    _agree("for_loop: inputs of the body", _types(body.inputs), [_COUNT, *state, *items, *rest])
    results = _types(body.outputs)
    _agree("for_loop: what the body carries", results[:carried], state)
    return (*state, *(t._replace(shape=(trip_count, *t.shape)) for t in results[carried:]))


def _while_type(go: Any, *operands: Any, carried: int, regions: Sequence[Any]) -> tuple:
    (body,) = regions
    given = _types(operands)
    _predicate("while_loop: the first decision", *_types([go]))
    _agree("while_loop: inputs of the body", _types(body.inputs), given)
    results = _types(body.outputs)
    _predicate("while_loop: the body's decision", results[0])
    _agree("while_loop: what the body carries", results[1:carried + 1], given[:carried])
    pushes = len(results) > carried + 1
    return (_COUNT, *given[:carried], *([HANDLE] if pushes else []))


def _unwind_type(count: Any, stack: Any, *operands: Any, carried: int,
                 regions: Sequence[Any]) -> tuple:
    (body,) = regions
    given = _types(operands)
    _agree("unwind_loop: count and stack", _types([count, stack]), [_COUNT, HANDLE])
    inputs = _types(body.inputs)
    popped = inputs[carried:len(inputs) - len(given) + carried]
    _agree("unwind_loop: inputs of the body", inputs,
           [*given[:carried], *popped, *given[carried:]])
    _agree("unwind_loop: what the body carries", _types(body.outputs), given[:carried])
    return tuple(given[:carried])


def _raise_type(predicate: Any, error: ErrorOf) -> TensorType:
    _predicate("raise_if: the predicate", *_types([predicate]))
    return TensorType(bool_, (), predicate.device)


# -- running --------------------------------------------------------------------------------------


class Arrays:
    """Operations of loops over arrays of a library."""

    def __init__(self, xp: Any):
        self.xp = xp

    def index(self, number: int) -> Any:
        return self.xp.asarray(number, np.int64)

    def handle(self, number: int) -> Any:
        return self.xp.full((1,), number, np.int64)

    def item(self, x: Any, number: int) -> Any:
        return x[number, ...]

    def stack(self, items: Sequence[Any], type: TensorType) -> Any:
        if items:
            return self.xp.stack(items)
        return self.xp.empty((0, *type.shape), type.dtype.numpy)


class Tensors:
    """Operations of loops over Tensors: ops, so that the tape records them."""

    def index(self, number: int) -> Any:
        return full_of(None, (), number, int64)

    def handle(self, number: int) -> Any:
        return full_of(None, (1,), number, int64)

    def item(self, x: Any, number: int) -> Any:
        return select(x, 0, number)

    def stack(self, items: Sequence[Any], type: TensorType) -> Any:
        return stack(items) if items else full_of(None, (0, *type.shape), 0, type.dtype,
                                                  type.device)


def _cond(library: Any, predicate: Any, *captured: Any, regions: Sequence[Region]) -> tuple:
    return tuple(regions[0 if bool(predicate) else 1](*captured))


def _for(library: Any, *operands: Any, trip_count: int, carried: int, scanned: int, reverse: bool,
         regions: Sequence[Region]) -> tuple:
    (body,) = regions
    captured = operands[carried + scanned:]
    state: Sequence[Any] = operands[:carried]
    series = operands[carried:carried + scanned]
    stacked: list[list[Any]] = [[] for _ in body.outputs[carried:]]
    for i in reversed(range(trip_count)) if reverse else range(trip_count):
        items = [library.item(x, i) for x in series]
        results = body(library.index(i), *state, *items, *captured)
        state = results[:carried]
        for collected, x in zip(stacked, results[carried:]):
            collected.append(x)
    return (*state, *(library.stack(found[::-1] if reverse else found, type)
                      for found, type in zip(stacked, body.outputs[carried:])))


def _while(library: Any, go: Any, *operands: Any, carried: int,
           regions: Sequence[Region]) -> tuple:
    (body,) = regions
    captured = operands[carried:]
    state: Sequence[Any] = operands[:carried]
    count, pushed = 0, []
    while bool(go):
        go, *results = body(*state, *captured)
        state = results[:carried]
        pushed.append(tuple(results[carried:]))
        count += 1
    handle = [library.handle(new_stack(pushed))] if len(body.outputs) > carried + 1 else []
    return (library.index(count), *state, *handle)


def _unwind(library: Any, count: Any, stack: Any, *operands: Any, carried: int,
            regions: Sequence[Region]) -> tuple:
    (body,) = regions
    captured = operands[carried:]
    state: Sequence[Any] = operands[:carried]
    if int(count):
        pushed = stack_of(int(stack[0]))
        for i in reversed(range(int(count))):
            state = body(*state, *pushed[i], *captured)
    return tuple(state)


def _raise(xp: Any, predicate: Any, error: ErrorOf) -> Any:
    if bool(predicate):
        raise error.exception()
    return predicate


def _raise_element(emit: Any, index: Sequence[Any], error: ErrorOf) -> Any:
    """Emit the predicate as a checked position in a dimension of size 1: only 0 passes the
    check."""
    position = emit.to_index(emit.operand(0, index))
    return emit.from_index(emit.checked(position, 1, f"{error.name} is raised", wrap=False))


def _over_arrays(run: Callable[..., tuple]) -> Callable[..., tuple]:
    return lambda xp, *operands, **given: run(Arrays(xp), *operands, **given)


cond_record: Op = Op(
    "cond", "control", ("predicate", "*captured"), infer=_cond_type, eager=_over_arrays(_cond))

for_loop_record: Op = Op(
    "for_loop", "control", ("*operands",), infer=_for_type, eager=_over_arrays(_for))

while_loop_record: Op = Op(
    "while_loop", "control", ("go", "*operands"), infer=_while_type, eager=_over_arrays(_while))

unwind_loop_record: Op = Op(
    "unwind_loop", "control", ("count", "stack", "*operands"), infer=_unwind_type,
    eager=_over_arrays(_unwind))

raise_if_record: Op = Op(
    "raise_if", "control", ("predicate",), infer=_raise_type, eager=_raise, may_fail=True,
    element=_raise_element)

_OVER_TENSORS: dict[Op, Callable[..., tuple]] = {
    cond_record: _cond, for_loop_record: _for, while_loop_record: _while,
    unwind_loop_record: _unwind,
}


def run_over_tensors(op: Op, operands: Sequence[Any], **given: Any) -> tuple:
    """Run an op with regions on Tensors, op by op, so that the tape records what the regions do.

    Raises KeyError for an op that has no regions.
    """
    return _OVER_TENSORS[op](Tensors(), *operands, **given)
