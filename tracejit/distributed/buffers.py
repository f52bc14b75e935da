"""Memory that MPI reads and writes for a tensor: the tensor's own where it lies in one piece.

In: tensors of any layout. Out: contiguous tensors, and functions that copy results back. Called by
`collectives` and `point_to_point`.

While a function is captured, results go through `copy_`, so that the tracer sees the write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tracejit.core.eager.recording import active
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.writing import bump_version
from tracejit.core.memory.readers import about_to_write
from tracejit.core.ops.types import dtype, float32

# What MPI would add up in the dtype itself, rounding each time.
_WIDENED = frozenset({"float16", "bfloat16"})


class Target(NamedTuple):
    """Contiguous tensor that MPI writes, and the function that brings the result to its place."""

    tensor: Any
    finish: Callable[[], None] | None


def check_tensor(value: Any, parameter: str) -> None:
    """Raise PyTorch's TypeError unless the value is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{parameter}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensors(values: Any, parameter: str) -> None:
    """Raise PyTorch's TypeError unless the value is a list of tensors of one dtype."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{parameter}` of type "
            f"List[torch.Tensor]\n             but got {type(values)} instead."
        )
    for value in values:
        check_tensor(value, parameter)


def check_same_dtype(tensors: Sequence[Any]) -> None:
    """Raise PyTorch's ValueError for tensors of several dtypes."""
    for other in tensors[1:]:
        if other.dtype is not tensors[0].dtype:
            raise ValueError("Invalid usage of tensors with different dtypes"
                             f"Found {tensors[0].dtype} and  {other.dtype}")


def reduced_in(kind: dtype) -> dtype:
    """Return the dtype in which values are combined: float32 for the halves."""
    return float32 if kind.name in _WIDENED else kind


def source(tensor: Any, name: str, kind: dtype | None = None) -> Any:
    """Return a contiguous tensor of a dtype with these elements: the tensor itself if it is one."""
    tensor._needed(f"the function calls {name}()")
    found = tensor.detach()
    if kind is not None and found.dtype is not kind:
        found = found.to(kind)
    return found.contiguous().resolve_conj().resolve_neg()


def target(tensor: Any, name: str, kind: dtype | None = None) -> Target:
    """Return the memory for a result: the tensor's own, or a copy of it that is copied back."""
    tensor._needed(f"the function calls {name}()")
    own = tensor.detach()
    plain = own.is_contiguous() and not own.is_conj() and not own.is_neg()
    if plain and kind in (None, own.dtype) and active.tracer is None:
        about_to_write(own._storage)
        bump_version(tensor)
        return Target(own, None)
    made = source(tensor, name, kind)
    if made.data_ptr() == own.data_ptr():
        made = made.clone()
    return Target(made, lambda: _copy(tensor, made))


def _copy(tensor: Any, made: Any) -> None:
    tensor.detach().copy_(made)


def together(*steps: Callable[[], None] | None) -> Callable[[], None] | None:
    """Return a function that runs these one after the other; None if there are none."""
    some = [step for step in steps if step is not None]
    if len(some) < 2:
        return some[0] if some else None

    def run() -> None:
        for step in some:
            step()

    return run


def apart(sent: Any, received: Any) -> Any:
    """Return a tensor to send from, a copy if it overlaps the memory that MPI writes."""
    begin, end = received.data_ptr(), received.data_ptr() + received.nbytes
    if sent.data_ptr() < end and begin < sent.data_ptr() + sent.nbytes:
        return sent.clone()
    return sent


def consecutive(tensors: Sequence[Any]) -> bool:
    """Return True if tensors of one dtype lie one behind the other in one storage, as chunks do."""
    if active.tracer is not None:
        return False  # what is written goes through `copy_`, one by one
    end, storage = None, None
    for tensor in tensors:
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            return False
        if storage is not None and (tensor.data_ptr() != end or tensor._storage is not storage):
            return False
        end, storage = tensor.data_ptr() + tensor.nbytes, tensor._storage
    return True
