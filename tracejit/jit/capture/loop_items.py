"""Iterables of rolled loops, and tensors indexed by the loop's index.

In: the iterable of a `for`; `x[i]` with the loop's index in the body. Out: the number of iterations
and the item of one iteration. `x[i]` of a tensor made outside becomes a *scan*: each iteration gets
its slice, without a gather. Called by `loops.py` and `control.py`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tracejit.core.eager.recording import active
from tracejit.core.eager.subclasses import kept_class, of_class
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.shapes import same_structure
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.host_reads import AfterSymInt
from tracejit.jit.capture.looking import is_a, is_exactly
from tracejit.jit.capture.loop_numbers import GraphSymInt, LoopIndex, as_tensor, known_to_graph
from tracejit.jit.capture.scalars import CallSymInt
from tracejit.jit.capture.settling import ended_to_hints
from tracejit.jit.ir.sizes import SymInt

WORTH = 16  # iterations, if that is a constant, from which a loop is rolled


class Iterated:
    """Call of a builtin that iterates, not made yet, so that `for_` can roll the loop."""

    def __init__(self, function: Any, arguments: tuple):
        self.function, self.arguments = function, arguments

    def __iter__(self) -> Iterator[Any]:
        return iter(self.function(*self.arguments))

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self.function(*self.arguments))


class LoopIterable:
    """Iterable that a loop can be rolled over, of `trip_count` items.

    item(body)    the item of an iteration, in the region
    first()       the first item, outside the region
    rest()        a LoopIterable of the items after the first
    plainly()     the items as Python iterates them
    start, step   of a range
    """

    start: Any = 0
    step = 0

    def __init__(self, trip_count: Any, item: Callable[[Any], Any], first: Callable[[], Any],
                 rest: Callable[[], LoopIterable], plainly: Callable[[], Iterable[Any]]):
        self.trip_count, self.item, self.first = trip_count, item, first
        self.rest, self.plainly = rest, plainly


def worth_rolling(iterable: Any) -> LoopIterable | None:
    """Return how to roll a loop over this; None where Python had better run it."""
    found = _rolled(iterable)
    if found is None or type(found.trip_count) is int and found.trip_count < WORTH:
        return None
    return found


def _rolled(iterable: Any) -> LoopIterable | None:
    if is_a(iterable, Tensor):
        deferred = iterable._traced is not None or active.tracer is not None
        deferred = deferred and kept_class(type(iterable)) is Tensor  # else parts are of its class
        return over_tensor(iterable, 0) if deferred and len(iterable.shape) else None
    if type(iterable) is range:
        return over_range(iterable.start, iterable.stop, iterable.step)
    if type(iterable) is not Iterated:  # objects of the user's are not asked
        return None
    function = iterable.function
    if function is builtins.range:
        return _over_range_call(iterable.arguments)
    if function is builtins.reversed and len(iterable.arguments) == 1:
        return _over_reversed(iterable.arguments[0])
    if function is builtins.enumerate:
        return _over_enumerate(*iterable.arguments)
    if function is builtins.zip:
        return _over_zip(iterable.arguments)
    return None


def _over_range_call(arguments: tuple) -> LoopIterable | None:
    if not 1 <= len(arguments) <= 3:
        return None
    if not all(type(x) is int or type(x) is SymInt for x in arguments):
        if not all(is_exactly(x, (int, SymInt)) or is_a(x, CallSymInt) for x in arguments):
            return None
        arguments = tuple(x if type(x) is SymInt else _bound(x) for x in arguments)
    start, stop, step = (0, arguments[0], 1) if len(arguments) == 1 else (*arguments, 1)[:3]
    return over_range(start, stop, step) if type(step) is int and step else None


def _bound(x: Any) -> int:
    """Return a number among the arguments of `range` as a plain int."""
    if type(x) is AfterSymInt:
        x = x.concretize("a bound of range()")
    return x.__index__()


def over_range(start: Any, stop: Any, step: int) -> LoopIterable:
    """Roll `range(start, stop, step)`. `step` is an int; the others may be sizes, also of a segment
    that is over."""
    start, stop = ended_to_hints((start, stop))
    length = stop - start if step > 0 else start - stop
    if length < 0:
        length = 0
    trip_count = length if abs(step) == 1 else -(-length // abs(step))
    made = LoopIterable(
        trip_count, lambda body: body.index(start, step), lambda: start,
        lambda: over_range(start + step, stop, step), lambda: range(start, stop, step))
    made.start, made.step = start, step
    return made


def over_tensor(x: Tensor, first: int) -> LoopIterable:
    """Roll over the slices of a tensor along its first dimension, from number `first` on."""
    trip_count = x.shape[0] - first
    return LoopIterable(trip_count, lambda body: body.scan(x, 0, first, 1), lambda: x[first],
                        lambda: over_tensor(x, first + 1), lambda: iter(x[first:]))


def _over_reversed(inner: Any) -> LoopIterable | None:
    if type(inner) is range:
        inner = inner[::-1]
        return over_range(inner.start, inner.stop, inner.step)
    if type(inner) is not Iterated or inner.function is not builtins.range:
        return None
    found = _over_range_call(inner.arguments)
    if found is None or abs(found.step) != 1 or not found.trip_count >= 1:
        return None
    start, step = found.start, found.step
    return over_range(start + step * (found.trip_count - 1), start - step, -step)


def _over_enumerate(inner: Any, start: Any = 0) -> LoopIterable | None:
    found = _rolled(inner)
    return None if found is None or type(start) is not int else _counted(found, start)


def _counted(found: LoopIterable, start: int) -> LoopIterable:
    return LoopIterable(found.trip_count, lambda body: (body.index(start, 1), found.item(body)),
                        lambda: (start, found.first()), lambda: _counted(found.rest(), start + 1),
                        lambda: enumerate(found.plainly(), start))


def _over_zip(inner: tuple) -> LoopIterable | None:
    found = [_rolled(x) for x in inner]
    if not found or any(x is None for x in found):
        return None
    trip_count = found[0].trip_count  # type: ignore[union-attr]
    counts = [x.trip_count for x in found]  # type: ignore[union-attr]
    if not all(n == trip_count and same_structure(n, trip_count) for n in counts):
        return None
    return _zipped(found)  # type: ignore[arg-type]


def _zipped(found: list[LoopIterable]) -> LoopIterable:
    return LoopIterable(found[0].trip_count, lambda body: tuple([x.item(body) for x in found]),
                        lambda: tuple([x.first() for x in found]),
                        lambda: _zipped([x.rest() for x in found]),
                        lambda: zip(*[x.plainly() for x in found]))


def _gathered(container: Tensor, dim: int, index: Any) -> Tensor:
    """Return an element at an index that only the program knows; refuse one out of range."""
    size = container.shape[dim]
    if not is_a(index, LoopIndex) or index.body.max_trips is None:
        raise RegionRefused("it indexes a tensor by a number that may be out of range")
    last = index.start + index.step * (index.body.max_trips - 1)
    low, high = (index.start, last) if index.step > 0 else (last, index.start)
    if low < -size or high >= size:
        raise RegionRefused("it indexes a tensor out of range")
    where = as_tensor(active.tracer._operand(index)).reshape((1,))  # type: ignore[union-attr]
    if low < 0:
        where = where + (where < 0).long() * size
    return part_at(container, dim, where)


def part_at(container: Tensor, dim: int, where: Tensor) -> Tensor:
    """Return `container.select(dim, where)` as a copy; `where` is a tensor of one index."""
    tracer: Any = active.tracer
    return tracer.gathered_view(container, dim, container.index_select(dim, where).squeeze(dim))


def mentions_index(key: Any) -> bool:
    """Return True if a key is or holds an int that is known to the graph alone."""
    return known_to_graph(key) or type(key) is tuple and any(map(known_to_graph, key))


def item_at(container: Tensor, key: Any) -> Any:
    """Return `container[key]` where `key` is or holds an index of a loop."""
    keys = key if type(key) is tuple else (key,)
    if len(keys) > 1 and (type(keys[0]) is int or is_a(keys[0], GraphSymInt)):
        first = item_at(container, keys[0]) if is_a(keys[0], GraphSymInt) else container[keys[0]]
        left = keys[1:] if len(keys) > 2 else keys[1]
        return item_at(first, left) if mentions_index(left) else first[left]
    position = next(p for p, k in enumerate(keys) if is_a(k, GraphSymInt))
    index = keys[position]
    others = (*keys[:position], *keys[position + 1:])
    if not all(type(k) is slice or k is Ellipsis or type(k) is int for k in others):
        raise RegionRefused("it indexes a tensor by its index and by other tensors")
    if any(type(k) is int for k in keys[:position]):
        raise RegionRefused("it indexes a tensor by slices, a number and its index")
    dim = position
    if Ellipsis in keys[:position]:
        dim = len(container.shape) - (len(keys) - position)
    item = None
    if is_a(index, LoopIndex):
        item = index.body.scanned_item(container, dim, index)
    if item is None:
        item = _gathered(container, dim, index)
    elif (kept := kept_class(type(container))) is not None:
        of_class(item, kept)
    else:
        raise RegionRefused("it takes a part of a tensor whose class has a `__torch_function__`")
    return item[others] if others else item


def store_at(container: Tensor, key: Any, item: Any) -> None:
    """Do `container[key] = item` where `key` is or holds a loop's index: a row per iteration."""
    keys = key if type(key) is tuple else (key,)
    position = next(p for p, k in enumerate(keys) if is_a(k, GraphSymInt))
    others = (*keys[:position], *keys[position + 1:])
    index = keys[position]
    if not is_a(index, LoopIndex) or not all(
            type(k) is slice and k == slice(None) for k in others):
        raise RegionRefused("it writes a tensor at an index that is not known in advance")
    index.body.store(container, position, index, item)
