"""Records of collectives: what processes that work together compute, as nodes of a graph.

In: a tensor, the words of a process group, a token. Out: the result, and a token for the next
collective. Called by `distributed.recorded` while a function is recorded; outside a recording
collectives call MPI themselves.

The token orders them: each collective takes that of the one before. So no pass merges two or lets
them change places, and all processes meet in the same order. `effect` keeps a node whose result
nobody reads. Words and tokens are int64 tensors on the CPU, whose layout is in
`jit/lowering/library_collectives.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.memory.devices import as_device
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import numel
from tracejit.core.ops.types import TensorType, int64

TOKEN = 2  # words of a token

Runner = Callable[[str, Any, Any, dict[str, Any]], Any]
_run: list[Runner] = []


def install_runner(run: Runner) -> None:
    """Set the function that carries out a collective on arrays: `run(name, array, words,
    attributes)`. Called once, by `distributed`."""
    _run[:] = [run]


def _token_type() -> TensorType:
    return TensorType(int64, (TOKEN,), as_device("cpu"))


def _same(input: Any, group: Any, token: Any, **attributes: Any) -> tuple[TensorType, TensorType]:
    return TensorType(input.dtype, tuple(input.shape), input.device), _token_type()


def _stacked(input: Any, group: Any, token: Any, size: int) -> tuple[TensorType, TensorType]:
    return TensorType(input.dtype, (size, *input.shape), input.device), _token_type()


def _one_of(input: Any, group: Any, token: Any, **attributes: Any
            ) -> tuple[TensorType, TensorType]:  # fmt: skip
    return TensorType(input.dtype, tuple(input.shape[1:]), input.device), _token_type()


def _eager(name: str) -> Callable[..., Any]:
    def eager(xp: Any, input: Any, group: Any, token: Any, **attributes: Any) -> Any:
        return _run[0](name, input, group, attributes), np.zeros(TOKEN, np.int64)

    return eager


def _record(name: str, infer: Callable[..., Any]) -> Op:
    return Op(
        name, "extern", ("input", "group", "token"), infer=infer, eager=_eager(name),
        outputs=("out", "token"), library=True, effect=True,
    )  # fmt: skip


def _barrier(xp: Any, group: Any, token: Any) -> Any:
    _run[0]("barrier", None, group, {})
    return np.zeros(TOKEN, np.int64)



def _bucket_type(*inputs: Any, divisor: int) -> TensorType:
    length = sum((numel(x.shape) for x in inputs[1:]), numel(inputs[0].shape))
    return TensorType(inputs[0].dtype, (length,), inputs[0].device)


def _bucket_array(xp: Any, *inputs: Any, divisor: int) -> Any:
    flat = xp.concatenate([x.reshape(-1) for x in inputs])
    return xp.divide(flat, flat.dtype.type(divisor))


# attributes: `op`, the name of MPI's operation; `root` in the group; `size` of it
all_reduce = _record("all_reduce", _same)
broadcast = _record("broadcast", _same)
reduce = _record("reduce", _same)
all_gather = _record("all_gather", _stacked)
reduce_scatter = _record("reduce_scatter", _one_of)
barrier = Op(
    "barrier", "extern", ("group", "token"), infer=lambda group, token: _token_type(),
    eager=_barrier, outputs=("token",), library=True, effect=True,
)  # fmt: skip
COLLECTIVES = (all_reduce, broadcast, reduce, all_gather, reduce_scatter, barrier)
bucket = Op(  # gradients, one behind the other, divided by the number of processes
    "bucket", "extern", ("*inputs",), infer=_bucket_type, eager=_bucket_array, library=True
)
