"""What nodes keep for backward; PyTorch's `torch.autograd.graph`.

In: functions that pack what is kept, and unpack it. Out: contexts in which operations use them.
While hooks are set, captured functions run op by op, as the hooks are to see each tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tracejit.eager.modes import no_grad
from tracejit.eager.nodes import Node
from tracejit.eager.recording import active
from tracejit.eager.saved import KeptHistory, detached, packing
from tracejit.eager.writing import bump_version

__all__ = ["Node", "disable_saved_tensors_hooks", "increment_version", "save_on_cpu",
           "saved_tensors_hooks"]


class _Packed:
    """What `pack_hook` made of a tensor that a node keeps, and the history the tensor had."""

    __slots__ = ("kept", "unpack_hook", "history")

    def __init__(self, tensor: Any, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]):
        self.history, self.unpack_hook = KeptHistory(tensor), unpack
        with no_grad(), packing(None):
            self.kept = pack(tensor if self.history.leaf is not None else detached(tensor))

    def unpack(self) -> Any:
        with no_grad(), packing(None):
            found = self.unpack_hook(self.kept)
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
        if active.recorder is not None:
            active.recorder.need(None, "saved_tensors_hooks is used inside the captured function",
                                 "a captured function keeps what it needs as it likes")
        if _disabled.message is not None:
            raise RuntimeError(_disabled.message)
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
    for x in (tensor,) if hasattr(tensor, "_version") else tensor:
        bump_version(x)
