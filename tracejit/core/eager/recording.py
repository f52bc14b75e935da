"""Switch between running and recording, and the methods that a tracer must have.

The eager room calls `active.tracer` wherever a deferred tensor behaves differently; capture
installs itself there for the thread that records. The tape records over deferred tensors as over
any other. The other thread-local switches (grad mode, inference mode, anomaly detection) live in
the same object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from tracejit.core.ops.record import Op


class Tracer(Protocol):
    """Methods of `capture.tracer.Tracer` that Tensor uses.

    The `_traced` of a deferred tensor has `views`, which is not empty if the tensor is a view of
    another one's memory.

    mapped: True if it runs ops on all samples of a mapped function (`func.vmap`) and makes no
    graph.
    """

    mapped: bool

    # returns deferred tensors, off the tape
    def run(self, op: Op, operands: tuple, attributes: dict) -> Any: ...
    def shape(self, tensor: Any) -> tuple: ...  # ints and symbolic sizes
    def strides(self, tensor: Any) -> tuple: ...
    def shared(self, tensor: Any) -> list[int]: ...  # dimensions of stride 0
    # resolve which tensor it is; with `outputs` only if gradients of these depend on it
    def identify(self, tensor: Any, outputs: Any) -> None: ...
    def is_contiguous(self, tensor: Any) -> bool: ...
    def offset(self, tensor: Any) -> Any: ...
    def version(self, tensor: Any) -> int: ...
    def keeps(self, saved: Any) -> None: ...  # the tape needs `saved.tensor` as it is now
    # its view at position `index` of a dimension; the index is a tensor
    def selected(self, tensor: Any, dim: int, index: Any) -> Any: ...
    # whether the tensor's memory can be seen in another shape
    def can_view_as(self, tensor: Any, shape: tuple) -> bool: ...
    # whether its layout may change in place without a break
    def may_turn(self, tensor: Any) -> bool: ...
    # tensor's memory now holds value (same shape, dtype)
    def write(self, tensor: Any, value: Any) -> None: ...
    # the same tensor, concrete, if no input of the call decides what it holds
    def fold_constant(self, tensor: Any, of_sizes: bool = True) -> Any: ...
    # end the segment: deferred tensors become concrete
    def break_graph(self, tensor: Any, reason: str, hint: str = "") -> None: ...
    # guard a setting of the process: a recording holds while `ask(what)` stays the same
    def asks(self, ask: Callable[[Any], Any], what: Any) -> None: ...
    # an array over its memory is given away
    def exposes(self, tensor: Any) -> None: ...
    def item(self, tensor: Any) -> Any: ...  # its only element, as a number that may be pending
    # (state tensor, draws made before)
    def random_state(self, generator: Any) -> tuple[Any, int]: ...
    # whether the tensor has a gradient is about to matter
    def grad_read(self, tensor: Any) -> None: ...
    def applies(self, node: Any) -> None: ...  # a backward runs this node
    # a backward made `results` of the gradients `given`; return those to go on with
    def gave(self, given: Any, results: Any) -> Any: ...
    def tracks(self) -> bool: ...  # whether it links gradients to what they were made of
    def grad_written(self, tensor: Any) -> None: ...  # the program sets it
    # its requires_grad, history or hooks are about to change
    def history_written(self, tensor: Any) -> None: ...
    # whether both look at one memory in the same way
    def same_place(self, one: Any, other: Any) -> bool: ...
    # break the graph: code depends on a gradient's arrival, which a value decides
    def undecided(self) -> None: ...
    # a tensor just made of Python data, as a deferred one
    def constant(self, tensor: Any) -> Any: ...
    # nested Python data with symbolic numbers made plain
    def concretize_tree(self, data: Any) -> Any: ...
    # take its contents as the state before the call
    def commit_container(self, container: Any) -> None: ...
    def convert_call(self, function: Any) -> Any: ...  # what to call instead of a user's function
    def alias(self, tensor: Any) -> Any: ...  # deferred, the same memory, no history
    # the tensor without its history on outer levels (mapping, forward mode)
    def severed(self, tensor: Any) -> Any: ...
    def refuses_views(self, tensor: Any) -> None: ...  # the op raises if the tensor is a view
    def forgets(self, tensor: Any) -> None: ...  # it lost its history on this tape
    # a custom Function of these tensors puts its node on the tape
    def hides(self, tensors: Any) -> None: ...
    # an op ran, and its result is on the tape
    def ran(self, op: Op, operands: tuple, attributes: dict, result: Any) -> None: ...
    # object that gives a custom Function's results tangents; None if these have none
    def pushes(self, tensors: Any) -> Any: ...


class Active(threading.local):
    """Switches of this thread."""

    tracer: Tracer | None = None
    grad_enabled: bool = True
    inference: bool = False
    anomaly: bool = False
    anomaly_check_nan: bool = True
    partial: bool = False  # a backward runs that computes some gradients only
    level: Any = None  # the level of forward mode that is open (`func/duals.py`)
    task: Any = None  # the run of the engine that is under way
    freeing: list[Callable[[], None]] | None = None  # calls at the end of the running backward
    op_by_op: bool = False  # each op gets its own node: captured functions run plainly
    packer: Callable[[Any], Any] | None = None  # makes what nodes keep instead of a tensor


active = Active()


class _Ever:
    """Switches that some thread has turned on at least once. While one is False, no code checks the
    thread's own."""

    inference = False
    op_by_op = False
    anomaly = False


ever = _Ever()


def as_captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function to call instead of a user's: in a recording one with traced control
    flow."""
    tracer = active.tracer
    return function if tracer is None else tracer.convert_call(function)


def _unchanged(x: Any) -> Any:
    return x


_to_hints: Callable[[Any], Any] = _unchanged


def ended_to_hints(x: Any) -> Any:
    """Replace symbolic numbers of ended recordings in `x` (numbers, types, containers) by plain
    ones."""
    return _to_hints(x)


def install_ended_to_hints(to_hints: Callable[[Any], Any]) -> None:
    """Set the function behind `ended_to_hints`, which capture has."""
    global _to_hints
    _to_hints = to_hints
