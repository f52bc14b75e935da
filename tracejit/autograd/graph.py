"""Saved tensors, edges of gradients, hooks on several tensors; PyTorch's `torch.autograd.graph`.

In: functions that pack saved tensors, and unpack them. Out: contexts in which operations use them.
While hooks are set, captured functions run op by op, as the hooks are to see each tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tracejit.core.eager.hooks import register_hook
from tracejit.core.eager.identity import resolve_identity
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.nodes import GradientEdge, Node, RemovableHandle, edge_of
from tracejit.core.eager.recording import active, ever
from tracejit.core.eager.saved import KeptHistory, Unsaved, packing, version_of
from tracejit.core.eager.writing import bump_version
from tracejit.core.ops import sealing as _sealing

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu",
           "saved_tensors_hooks"]


class _Packed:
    """Value that `pack_hook` made of a tensor that a node keeps, and the history of that tensor."""

    __slots__ = ("kept", "unpack_hook", "history")

    def __init__(self, tensor: Any, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]):
        self.history, self.unpack_hook = KeptHistory(tensor), unpack
        version = version_of(tensor)
        # What the hook itself computes must not be packed again.
        with no_grad(), packing(None):
            self.kept = pack(tensor)
        if version_of(tensor) != version:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors "
                               "provided as input to pack hook cannot be modified by in-place "
                               "operations as this can lead to unexpected side-effects. Please "
                               "open an issue if you need to perform in-place operations on the "
                               "input to a pack hook.")

    def unpack(self) -> Any:
        with no_grad(), packing(None):
            found = self.unpack_hook(self.kept)
        # A second derivative goes on through the history that the packed tensor had.
        return self.history.of(found) if active.grad_enabled else found


class saved_tensors_hooks:
    """Context: operations keep `pack_hook(tensor)` for backward in place of tensors, and backward
    reads `unpack_hook` of it. Inside, captured functions run op by op.

    >>> import tracejit
    >>> x = tracejit.tensor([1.0, 2.0], requires_grad=True)
    >>> with saved_tensors_hooks(lambda x: x.tolist(), tracejit.tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4.])

    RuntimeError inside `disable_saved_tensors_hooks`.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if active.tracer is not None:
            active.tracer.break_graph(
                None, "the function uses saved_tensors_hooks",
                "use it outside the captured function")
        if _disabled.message is not None:
            raise RuntimeError(_disabled.message)
        ever.op_by_op = True
        self._before = active.packer, active.op_by_op
        active.packer, active.op_by_op = self._packed, True

    def __exit__(self, *exc: object) -> None:
        active.packer, before = self._before
        active.op_by_op = before or active.anomaly

    def _packed(self, tensor: Any) -> _Packed:
        return _Packed(tensor, self.pack_hook, self.unpack_hook)


class save_on_cpu(saved_tensors_hooks):
    """Context: what backward needs is kept in the memory of the CPU.

    >>> import tracejit
    >>> x = tracejit.tensor([3.0], requires_grad=True)
    >>> with save_on_cpu():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: (x.device, x.cpu()), lambda kept: kept[1].to(kept[0]))


class _Disabled(threading.local):
    message: str | None = None
    mutated = False  # whether `allow_mutation_on_saved_tensors` is on


_disabled = _Disabled()


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context in which `saved_tensors_hooks` raises RuntimeError with this message.

    >>> with disable_saved_tensors_hooks("not here"):
    ...     pass
    """
    before, _disabled.message = _disabled.message, error_message
    try:
        yield
    finally:
        _disabled.message = before


def increment_version(tensor: Any) -> None:
    """Count a write to the memory of a tensor, or of each of several.

    >>> import tracejit
    >>> x = tracejit.zeros(2)
    >>> increment_version(x)
    >>> x._version
    1
    """
    # A tensor is iterable too: ask for `_version` first.
    for x in (tensor,) if hasattr(tensor, "_version") else tensor:
        bump_version(x)


class _MutationAllowed:
    """Context of `allow_mutation_on_saved_tensors`: holds the copies that nodes keep, until it
    ends."""

    def __init__(self) -> None:
        self.copies: dict[object, Any] = {}

    def clear(self) -> None:
        """Drop all copies: what was recorded so far has no backward any more."""
        self.copies.clear()

    def _kept(self, tensor: Any) -> object:
        key = object()
        self.copies[key] = tensor.detach().clone()
        return key

    def _found(self, key: object) -> Any:
        if key not in self.copies:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_"
                                 "tensors' context in which the graph was originally recorded.")
        return self.copies[key]


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationAllowed]:
    """Context: what backward needs may be written in place, as nodes keep copies of it. Backward
    must run within the context.

    >>> import tracejit
    >>> x = tracejit.ones(2, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])

    RuntimeError for one within another, AssertionError for a backward after it.
    """
    context = _MutationAllowed()
    if _disabled.mutated:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    with saved_tensors_hooks(context._kept, context._found):
        _disabled.mutated = True
        try:
            yield context
        finally:
            context.clear()
            _disabled.mutated = False


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge to which the gradient of a tensor goes.

    `autograd.grad` and `backward` take it in the place of the tensor, which need not be kept for
    it.

    >>> import tracejit
    >>> x = tracejit.ones(1, requires_grad=True)
    >>> edge = get_gradient_edge(x * 2)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)

    RuntimeError for a tensor that does not require grad.
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not "
                           "require gradients")
    tensor = resolve_identity(tensor)
    return GradientEdge(*edge_of(tensor), Unsaved(tensor, active.tracer))


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[[Any], None], *,
                             mode: str = "all") -> RemovableHandle:
    """Call `fn` once in each backward with what arrives at several tensors.

    mode  "all": when all gradients are there that the backward computes, with a list of them, None
          for the others; "any": at the first one, with that

    >>> import tracejit
    >>> x, y = (tracejit.ones(1, requires_grad=True) for _ in range(2))
    >>> handle = register_multi_grad_hook((x, y), print)
    >>> (x * 2 + y).backward()
    [tensor([2.]), tensor([1.])]
    >>> handle.remove()

    ValueError for other modes, RuntimeError for tensors that do not require grad.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return _Handles(_SharedHook(tensors, fn, mode == "any").handles)


class _SharedHook:
    """Hook on several tensors, which notes in each run of the engine what arrived."""

    def __init__(self, tensors: Sequence[Any], fn: Callable[[Any], None], first: bool) -> None:
        self.fn, self.first = fn, first
        self.handles = [register_hook(x, partial(self._arrived, k)) for k, x in enumerate(tensors)]
        self.places = [x if x.is_leaf else edge_of(x) for x in map(resolve_identity, tensors)]

    def _arrived(self, number: int, grad: Any) -> None:
        task = active.task
        held = task.seen_by_hooks.get(self)
        if held is None:
            held = task.seen_by_hooks[self] = [None] * len(self.places)
        # Hooks run once for each backward that reaches them; the task holds what came in this one.
        held[number] = grad
        there = sum(x is not None for x in held)
        if there == 1 and self.first:
            self.fn(grad)
        elif not self.first and there == self._expected(task):
            self.fn(held)

    def _expected(self, task: Any) -> int:
        places: list[Any] = [x if isinstance(x, tuple) else edge_of(x) for x in self.places]
        # Tensors that this backward does not reach never report: do not wait for them.
        return sum(map(task.reaches, places))


class _Handles(RemovableHandle):
    """Handle that removes several hooks at once."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


_sealing.seal_all(globals())
