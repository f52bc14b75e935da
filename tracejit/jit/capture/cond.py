"""`if` on a tensor: both sides become regions of one `cond` node.

In: a predicate that is a deferred tensor, the two sides as functions, the variables they assign.
Out: the node; variables, and memory that a side writes, hold what the taken side gives; the
branch's exit. Raises `RegionRefused` (variables as before) where the sides cannot be regions or do
not agree. Called by `control.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.control import ErrorOf
from tracejit.core.ops.record import REGISTRY
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import bool_
from tracejit.jit.capture.breaks import RegionRefused
from tracejit.jit.capture.cells import UNBOUND, Variables
from tracejit.jit.capture.exits import ControlExit, Return
from tracejit.jit.capture.join import BranchJoin, JoinedExit, JoinedValue
from tracejit.jit.capture.looking import is_a
from tracejit.jit.capture.subgraph import SubgraphTracer, forbid_breaks, refuse_on_bug, speculate
from tracejit.jit.capture.tracer import Tracer


class BranchTrace:
    """Recording of one side of a branch: region, variables at the end, exit or error."""

    def __init__(self, parent: Tracer, name: str, function: Callable[[], ControlExit],
                 variables: Variables):
        self.region = SubgraphTracer(parent, name)
        self.error: Exception | None = None
        self.signal: ControlExit = None
        before = variables.values()
        try:
            with parent.root.blocks.speculating(), speculate(self.region):
                try:
                    self.signal = function()
                except RecursionError:  # tracejit's own frames may be the cause
                    raise RegionRefused("a branch recurses too deep") from None
                except Exception as error:
                    self.error = error.with_traceback(None)
                self.after = variables.values()
            self.region.unchanged()
        except BaseException:
            self.region.release()
            raise
        finally:
            variables.set(before)

    def __enter__(self) -> BranchTrace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.region.release()


def branch(parent: Tracer, predicate: Tensor, then: Callable[[], ControlExit],
           otherwise: Callable[[], ControlExit], variables: Variables) -> ControlExit:
    """Record `then() if predicate else otherwise()`; return how it ends."""
    flag = truth(predicate)
    with (BranchTrace(parent, f"{parent.name}_then", then, variables) as one,
          BranchTrace(parent, f"{parent.name}_else", otherwise, variables) as other):
        if one.error is None and other.error is None:
            with refuse_on_bug():
                join = BranchJoin(parent, flag, one.region, other.region)
                return _joined(join, one, other, variables)
        raises = _raising(flag, one, other)
    # A side that raises does so for all to see.
    return then() if raises is (one.error is not None) else otherwise()


def _joined(join: BranchJoin, one: BranchTrace, other: BranchTrace,
            variables: Variables) -> ControlExit:
    """Make the node, set the variables, and return how the branch ends."""
    before = variables.values()
    with forbid_breaks(join.parent.root):
        changed = {name: _joined_variable(join, name, one, other, name in variables.upward_exposed)
                   for name in before
                   if one.after[name] is not before[name] or other.after[name] is not before[name]
                   if name in variables.live_out or before[name] is not UNBOUND}
        ending = JoinedExit(join, one.signal, other.signal)
    # Code that sees a returned value can still read only upward-exposed variables beside it.
    later = [given for name, given in changed.items() if name in variables.upward_exposed]
    join.record([[*changed.values()], [*later, *ending.values]])
    variables.set({name: join.built(given) for name, given in changed.items()})
    return ending.signal()


def _joined_variable(join: BranchJoin, name: str, one: BranchTrace,
                     other: BranchTrace, upward_exposed: bool) -> JoinedValue:
    """Return the value of a variable after the branch.

    `upward_exposed`: code may read the variable after a `return`, or where only one side binds it.
    Otherwise code binds it again before any read.
    """
    values = one.after[name], other.after[name]
    returns = [is_a(side.signal, Return) for side in (one, other)]
    if upward_exposed or not any(returns) and (values[0] is UNBOUND) is (values[1] is UNBOUND):
        return join.of(*values, name)
    if all(returns) or not any(returns):
        return join.of(UNBOUND, UNBOUND, name)
    side = returns.index(False)
    return join.only(side, values[side], name)


def truth(predicate: Tensor) -> Tensor:
    """Return a tensor of one element as a bool tensor without dimensions; raise what `bool()`
    raises for any other tensor."""
    if numel(predicate.shape) != 1:
        bool(predicate)
    tracer: Any = active.tracer
    with no_grad():
        flag: Any = predicate if not predicate.shape else predicate.reshape(())
        if flag.dtype is not bool_:
            return flag != 0
        return tracer.tensor_of(tracer.traced(flag).read())  # later writes change only `flag`


def _raising(flag: Tensor, one: BranchTrace, other: BranchTrace) -> bool:
    """Record a branch of which one side raises: a node that fails, then the other side. Return
    True if the node fails for the values of this call: then the raising side runs, for its own
    error."""
    if one.error is not None and other.error is not None:
        raise RegionRefused("both branches raise an exception")
    side = one if one.error is not None else other
    if side.region.written_outside():
        raise RegionRefused("it writes an outer tensor before it raises an exception")
    error: Any = side.error
    try:
        described = ErrorOf.of(error)
    except TypeError as reason:
        raise RegionRefused(str(reason)) from None
    raises = flag if one.error is not None else ~flag
    fails = False
    try:
        REGISTRY["raise_if"](raises, error=described)
    except described.kind as found:
        fails = found.args == described.arguments
        if not fails:
            raise
    if fails and side.region.may_fail():
        raise RegionRefused("an op before the exception may fail")
    return fails


