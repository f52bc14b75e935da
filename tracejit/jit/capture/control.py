"""Functions that rewritten code calls: control flow, calls and effects of `@script` code.

In: tests, blocks as functions, the names they assign; called functions; announced effects. Out: for
plain Python values, exactly what Python does. Where a deferred tensor decides, a node that
`cond.py` or `loops.py` makes; if they refuse, the tracer computes the tensor's value. Called by
rewritten code: `rewrite.py` writes these names.
"""

from __future__ import annotations

import builtins
import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tracejit import logs
from tracejit.core.eager.interchange import number_of
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import bool_
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.calls import check_iterable, convert_call, convert_call_in_region
from tracejit.jit.capture.cells import Variables
from tracejit.jit.capture.cond import branch, truth
from tracejit.jit.capture.container_calls import (
    attribute_owner,
    control_tracer,
    get_item,
    inplace,
    item_to_update,
    new_container,
    set_item,
    update_item,
)
from tracejit.jit.capture.exits import (
    BREAK,
    CONTINUE,
    CONTINUE_THROUGH,
    ControlExit,
    Return,
    TracedExit,
)
from tracejit.jit.capture.host_texts import (
    deferred_format,
    deferred_format_of,
    deferred_percent,
    deferred_repr,
    deferred_str,
)
from tracejit.jit.capture.location import is_internal_code, user_location
from tracejit.jit.capture.looking import (
    attribute_of,
    class_attribute,
    class_of,
    is_a,
    is_exactly,
)
from tracejit.jit.capture.loop_attempts import PeelIteration, WrittenContainer
from tracejit.jit.capture.loop_items import (
    Iterated,
    LoopIterable,
    worth_rolling,
)
from tracejit.jit.capture.loop_numbers import GraphSymBool, tested
from tracejit.jit.capture.loops import trace_for, trace_while
from tracejit.jit.capture.plain_arguments import named_plainly, plain_text
from tracejit.jit.capture.rolled import StackedList
from tracejit.jit.capture.same_constant import contains_nan, same_constant
from tracejit.jit.capture.sharing import are_one, known_as, may_be_another
from tracejit.jit.capture.unrolled import Counting, counting, counting_items, counting_while
from tracejit.jit.capture.unwatched import unwatched

__all__ = [
    "BREAK", "CONTINUE", "CONTINUE_THROUGH", "Return", "and_", "assert_", "attribute_owner",
    "both", "call", "effect", "either", "for_", "formatted", "get_item", "if_", "in_", "inplace",
    "is_", "item_to_update", "iterate", "iterated", "named_plainly", "new_container", "not_", "or_",
    "percent", "resolve_exit", "set_item", "ternary", "text", "update_item", "value", "while_",
]  # fmt: skip

Body = Callable[[], ControlExit]
NESTED = 8  # iterations that may become nested branches
# Iterators whose copies go on independently.
_COPIED: tuple[type, ...] = (
    type(iter(())), type(iter([])), type(iter(range(0))), type(iter({}.values())),
)  # fmt: skip


def _deferred(test: Any) -> bool:
    """Return True if a test is a deferred tensor and the tracer can record control flow."""
    return is_a(test, Tensor) and test._traced is not None and control_tracer() is not None


def _decide(test: Tensor, refused: RegionRefused) -> bool:
    """Return the truth of a test that decides outside the graph; break the graph if unknown.

    Within a region the region is refused instead, for the same reason.
    """
    tracer: Any = active.tracer
    if test._traced is not None and tracer is not None:
        known = _known(tracer, test)
        if known is not None:
            return known
        if tracer.root is not tracer:
            raise refused.again()
        tracer.break_graph(test, f"the branch runs as Python: {refused}", refused.hint, refused)
        if type(test) is Tensor and not tracer.mapped:
            with tracer.paused():  # the break is recorded already
                return bool(test)
    return bool(test)


def _known(tracer: Any, test: Tensor, of_sizes: bool = True) -> bool | None:
    """Return the truth of a test that constants (and sizes, if `of_sizes`) decide, or None."""
    known = tracer.fold_constant(test, of_sizes) if numel(test.shape) == 1 else None
    return None if known is None else bool(number_of(known))


# -- branches -------------------------------------------------------------------------------------


def if_(test: Any, body: Body, orelse: Body, names: Sequence[str], live_out: Sequence[str],
        upward_exposed: Sequence[str]) -> ControlExit:
    """Run or record `if test: body() else: orelse()`; return how it ends."""
    test = tested(test)
    if not _deferred(test):
        return body() if test else orelse()
    return _branched(test, body, orelse, Variables(names, (body, orelse), live_out, upward_exposed))


def _branched(test: Any, body: Body, orelse: Body, variables: Variables) -> ControlExit:
    """Run or record `if test: body() else: orelse()`, given the variables that both assign."""
    if _deferred(test) and (known := _known(active.tracer, test, of_sizes=False)) is not None:
        test = known
    if _deferred(test):
        try:
            return branch(active.tracer, test, body, orelse, variables)  # type: ignore[arg-type]
        except RegionRefused as reason:
            test = _decide(test, reason)
    return body() if test else orelse()


def ternary(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """Compute `yes() if test else no()`."""
    test = tested(test)
    if not _deferred(test):
        return yes() if test else no()
    signal = if_(test, lambda: Return(yes()), lambda: Return(no()), (), (), ())
    return signal.value


def and_(left: Any, right: Callable[[], Any]) -> Any:
    """Compute `left() and right()`."""
    value = left()
    return ternary(value, right, lambda: value)


def or_(left: Any, right: Callable[[], Any]) -> Any:
    """Compute `left() or right()`."""
    value = left()
    return ternary(value, lambda: value, right)


def both(left: Callable[[], Any], right: Callable[[], Any]) -> Any:
    """Compute `left() and right()` for its truth alone: a bool tensor if a tensor decides."""
    value = tested(left())
    if not _deferred(value):
        return right() if value else False
    return ternary(value, lambda: _as_truth(right()), lambda: _as_truth(False))


def either(left: Callable[[], Any], right: Callable[[], Any]) -> Any:
    """Compute `left() or right()` for its truth alone: a bool tensor if a tensor decides."""
    value = tested(left())
    if not _deferred(value):
        return True if value else right()  # its truth would be asked again
    return ternary(value, lambda: _as_truth(True), lambda: _as_truth(right()))


def _as_truth(value: Any) -> Tensor:
    value = tested(value)
    if is_a(value, Tensor):
        return truth(value)
    return full_of(None, (), bool(value), bool_)


def not_(test: Any) -> Any:
    """Compute `not test`: a bool tensor for a deferred one."""
    test = tested(test)
    return ~truth(test) if _deferred(test) else not test


def is_(one: Any, other: Any) -> bool:
    """Compute `one is other`. Break the graph if a value decides which tensor a variable is."""
    tracer = control_tracer()
    one, other = [x.concretize() if type(x) is GraphSymBool else x for x in (one, other)]
    if tracer is None:
        return one is other
    if is_a(one, Tensor) and is_a(other, Tensor):
        return are_one(tracer, one, other)
    return same_constant(tracer, one, other)


def in_(item: Any, container: Any) -> bool:
    """Compute `item in container`; an element matches that is the item itself or equals it."""
    tracer = control_tracer()
    container = iterated(container)
    if is_a(container, str):
        item = plain_text(item)
    if tracer is not None and class_of(item) is float and item != item:
        return contains_nan(tracer, item, container)
    if tracer is None or not is_a(item, Tensor):
        return item in container
    if is_a(container, (dict, set, frozenset)):
        return known_as(tracer, item) in container
    sequence = is_exactly(container, (list, StackedList, tuple))
    if sequence and any(may_be_another(tracer, x) for x in (item, *container)):
        return any(is_(x, item) or x == item for x in container)
    return item in container


def assert_(test: Any, *message: Callable[[], Any]) -> None:
    """Run or record `assert test, message()`."""
    def fail() -> ControlExit:
        raise AssertionError(*[text() for text in message])

    if_(test, lambda: None, fail, (), (), ())


def value(signal: ControlExit) -> Any:
    """Return the value that a function returns, given how its last statement ended."""
    signal = resolve_exit(signal)
    return signal.value if is_a(signal, Return) else None


_ONE_RETURNS = RegionRefused("only one branch returns a value", where=())
_ONE_LEAVES = RegionRefused("only one branch leaves the loop", where=())


def resolve_exit(signal: ControlExit, within: bool = False) -> ControlExit:
    """Return how a statement ended, as it must be known now: values decide a TracedExit.

    `within`: the statement stands in a `with` or `try`, so that CONTINUE_THROUGH stays.
    """
    if not is_a(signal, TracedExit):
        return CONTINUE if signal is CONTINUE_THROUGH and not within else signal
    if signal.returned is not False and _decide(signal.returned, _ONE_RETURNS):
        return Return(signal.value)
    if signal.broke is not False and _decide(signal.broke, _ONE_LEAVES):
        return BREAK
    return None


# -- loops ----------------------------------------------------------------------------------------


def while_(test: Callable[[], Any], body: Body, orelse: Body | None, rest: Body | None,
           names: Sequence[str], live_out: Sequence[str],
           upward_exposed: Sequence[str], private: Sequence[str] = ()) -> ControlExit:
    """Run or record `while test(): body() else: orelse()`, then `rest()`; return how it ends."""
    tracer: Any = active.tracer
    variables = Variables(names, (body, test), live_out, upward_exposed, private)
    after = LoopContinuation(orelse, rest, names, live_out, upward_exposed)
    before: TracedExit | None = None  # exit of the iteration before
    loop = counting_while()
    while True:
        decision = tested(test()) if before is None else _unless(before, test)
        if _deferred(decision):
            try:
                signal = trace_while(tracer, decision, test, body, variables, before)
            except WrittenContainer:
                raise
            except RegionRefused as reason:
                decision = _decide(decision, reason)
            else:
                return after(signal)
        if not decision:
            if loop is not None:
                loop.done()
            return after(before)
        if loop is not None:
            loop.count += 1
        before, signal = None, body()
        if is_a(signal, Return) or signal is BREAK:
            return after(signal)
        if is_a(signal, TracedExit):
            before = signal


def _unless(before: TracedExit, test: Callable[[], Any]) -> Any:
    """Return the flag that a loop goes on: it was not left, and the test holds."""
    return both(lambda: not_(before.ended), test)


class LoopContinuation:
    """Code behind a loop: its else block, which goes on with the rest around, or that rest alone.

    Call it with how the loop ended: BREAK, Return, TracedExit, or None after the last iteration.
    """

    def __init__(self, orelse: Body | None, rest: Body | None, *described: Sequence[str]):
        self.orelse, self.rest = orelse, rest
        self.variables = Variables(described[0], (orelse, rest), *described[1:])

    def __call__(self, signal: ControlExit) -> ControlExit:
        if is_a(signal, Return):
            return signal
        if not is_a(signal, TracedExit):
            return self._left(signal is BREAK)
        broke = signal.broke
        if signal.returned is False:
            return self._left(broke)
        return self._branched(signal.returned, lambda: _returning(signal),
                              lambda: self._left(broke))

    def _left(self, broke: Any) -> ControlExit:
        """Run or record the code behind a loop; `broke` says if a `break` ended the loop."""
        if self.orelse is None or broke is True:
            return self._then()
        return self.orelse() if broke is False else self._branched(broke, self._then, self.orelse)

    def _then(self) -> ControlExit:
        return None if self.rest is None else self.rest()

    def _branched(self, flag: Any, body: Body, orelse: Body) -> ControlExit:
        return _branched(flag, body, orelse, self.variables)


def iterate(function: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return what a loop iterates: for `range`, `enumerate`, `zip` and `reversed` an `Iterated`."""
    known = function in (builtins.range, builtins.enumerate, builtins.zip, builtins.reversed)
    if known and not keywords and control_tracer() is not None:
        return Iterated(function, arguments)
    return call(function)(*arguments, **keywords)


def for_(iterable: Any, body: Callable[[Any], ControlExit], orelse: Body | None, rest: Body | None,
         names: Sequence[str], live_out: Sequence[str],
         upward_exposed: Sequence[str], private: Sequence[str] = ()) -> ControlExit:
    """Run or record a `for` with its else block, then `rest()`; return how it ends."""
    variables = Variables(names, (body,), live_out, upward_exposed, private)
    signal = _iterations(iterable, body, variables)
    del iterable  # freed before the code behind the loop runs, as in Python
    return LoopContinuation(orelse, rest, names, live_out, upward_exposed)(signal)


def _iterations(iterable: Any, body: Callable[[Any], ControlExit],
                variables: Variables) -> ControlExit:
    """Run or record the iterations; return BREAK, Return, TracedExit, or None at the end."""
    tracer = control_tracer()
    rolled = worth_rolling(iterable) if tracer is not None else None
    before: TracedExit | None = None  # exit of the first iteration
    peeled, loop = False, counting_items(iterable) if rolled is None else None
    while rolled is not None:
        try:
            return trace_for(tracer, rolled, body, variables, before)
        except WrittenContainer:  # the loop around is recorded again
            raise
        except PeelIteration as reason:
            if peeled or not rolled.trip_count >= 1:
                iterable = _left_plain(rolled, peeled, iterable, reason)
                loop = counting(str(reason), reason.given or None)
                break
        except RegionRefused as reason:
            iterable = _left_plain(rolled, peeled, iterable, reason)
            loop = counting(str(reason), reason.given or None)
            break
        signal = body(rolled.first())
        if is_a(signal, Return) or signal is BREAK:
            return signal
        before = signal if is_a(signal, TracedExit) else None
        rolled, peeled = rolled.rest(), True
    left = resolve_exit(before)
    if left is not None:
        return left
    container = iterated(iterable)
    items = iter(container)
    signal = _unrolled(items, body, variables, _is_fresh(items, container), loop)
    if loop is not None:
        loop.done()
    return signal


def _unrolled(items: Iterator[Any], body: Callable[[Any], ControlExit], variables: Variables,
              nested: bool = True, loop: Counting | None = None) -> ControlExit:
    """Run or record `body(item)` for each item. Where only the program knows if the loop goes on,
    record the other iterations as a side of a branch (`nested`)."""
    for item in items:
        if loop is not None:
            loop.count += 1
        signal = body(item)
        if is_a(signal, TracedExit) and _deferred(signal.ended):
            others = _others(items) if nested else None
            try:
                if others is not None:
                    left = operator.length_hint(others)
                    return _nested(signal, others, body, variables) if left else signal
            except RegionRefused as reason:
                nested = False
                if logs.enabled("breaks"):
                    line = user_location(4)
                    logs.emit("breaks", f"{line}: iterations run one by one: "
                                        f"{reason.advice(line)}")
        signal = resolve_exit(signal)
        if is_a(signal, Return) or signal is BREAK:
            return signal
    return None


def _is_fresh(items: Iterator[Any], container: Any) -> bool:
    """Return True if no other code holds the iterator: a copy may take its place."""
    code = attribute_of(class_attribute(type(container), "__iter__"), "__code__")
    return items is not container and (code is None or is_internal_code(code))


def _nested(signal: TracedExit, others: Iterator[Any], body: Callable[[Any], ControlExit],
            variables: Variables) -> ControlExit:
    """Record the iterations after this one, which ended with `signal`, as a side of a branch."""
    def ended() -> ControlExit:
        if signal.broke is False:
            return _returning(signal)
        return BREAK if signal.returned is False else signal

    def going_on() -> ControlExit:  # runs twice if it raises: take a copy
        return _unrolled(unwatched(copy.copy, others), body, variables)

    return branch(active.tracer, signal.ended, ended,  # type: ignore[arg-type]
                  going_on, variables)


def _returning(signal: TracedExit) -> Return:
    """Make the Return of a TracedExit; lists and dicts made for its value count as made here."""
    tracer: Any = active.tracer
    if tracer is not None:
        tracer.owned(signal.own)
    return Return(signal.value)


def _others(items: Iterator[Any]) -> Iterator[Any] | None:
    """Copy an iterator, to see its items without taking them. Return None if it has no such copy,
    or many items are left."""
    if is_exactly(items, _COPIED) and operator.length_hint(items) < NESTED:
        return unwatched(copy.copy, items)
    return None


def _left_plain(rolled: LoopIterable, peeled: bool, iterable: Any, reason: RegionRefused) -> Any:
    """Log why a loop is not rolled, and return the items that are left."""
    if logs.enabled("breaks"):
        line = user_location(3)
        logs.emit("breaks", f"{line}: the loop runs as Python: {reason.advice(line)}")
    return rolled.plainly() if peeled else iterable


# -- calls and effects -----------------------------------------------------------------------------


def call(function: Any) -> Any:
    """Return the callable to call instead of `function`: itself, or a form that is recorded."""
    tracer: Any = active.tracer
    if tracer is None:
        return function
    if tracer.root.speculation_depth:
        return convert_call_in_region(tracer, function)
    return convert_call(tracer, function)


def effect(what: str) -> None:
    """Announce an effect that is seen outside; a region refuses it, with `what` as the reason."""
    tracer: Any = active.tracer
    if tracer is not None and tracer.root.speculation_depth:
        raise RegionRefused(what)


def unless_refused() -> None:
    """Raise a region's refusal again as a `finally` or `except` begins, which must not run."""
    tracer: Any = active.tracer
    if getattr(tracer, "refused", None) is not None:
        raise tracer.refused  # no variable of this frame, which its traceback holds


def iterated(iterable: Any) -> Any:
    """Return what code iterates, unpacks or searches; a region refuses an outer iterator."""
    tracer: Any = active.tracer
    if tracer is not None and tracer.root.speculation_depth:
        check_iterable(tracer, iterable)
    return iterable


def formatted(value: Any, conversion: str | None, spec: str) -> Any:
    """Format a part of an f-string; its text may be pending."""
    if conversion is not None:
        value = {"s": deferred_str, "r": deferred_repr, "a": ascii}[conversion](value)
    return deferred_format_of(value, spec)


def text(*parts: Any) -> Any:
    """Join texts and `formatted` values to an f-string; the text may be pending."""
    return deferred_format(parts)


def percent(template: str, values: Any) -> Any:
    """Compute `template % values`; the text may be pending."""
    return deferred_percent(template, values)
