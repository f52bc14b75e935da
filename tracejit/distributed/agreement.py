"""Check that all processes of a group call the same collective, of the same size.

In: a collective that a process is about to start. Out: nothing, or an error in all processes that
names both. Called by `collectives` at level DETAIL, which TORCH_DISTRIBUTED_DEBUG sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tracejit.distributed.groups import ProcessGroup
from tracejit.distributed.operation import Operation

_BYTES = 160  # of a text
_ROOT = {"Ibcast": 3, "Ireduce": 5, "Igather": 6, "Iscatter": 6}  # place among the arguments


def check(
    group: ProcessGroup, name: str, function: str, count: int, arguments: Sequence[int | None],
    keep: Any,
) -> None:  # fmt: skip
    """Compare a collective with those of the other processes. RuntimeError if they differ."""
    if group.size() == 1:
        return
    texts = _exchanged(group, name, _text(name, function, count, arguments, keep))
    other = next((rank for rank, text in enumerate(texts) if text != texts[0]), None)
    if other is not None:
        raise RuntimeError(
            "Detected mismatch between collectives on ranks. "
            f"Rank {group.ranks[0]} is running collective: {texts[0]}, but "
            f"Rank {group.ranks[other]} is running collective: {texts[other]}."
        )


def _text(
    name: str, function: str, count: int, arguments: Sequence[int | None], keep: Any
) -> str:
    """Return what must be the same in all processes."""
    if function.startswith("Ialltoall"):  # each process has sizes of its own
        return name
    sizes = Operation.sizes(count, keep)
    root = f", root {arguments[_ROOT[function]]}" if function in _ROOT else ""
    return name + (f" of {sizes}" if sizes else "") + root


def _exchanged(group: ProcessGroup, name: str, text: str) -> list[str]:
    """Return the texts of all processes, in the order of the group."""
    own = np.zeros(_BYTES, np.uint8)
    data = text.encode()[:_BYTES]
    own[: len(data)] = np.frombuffer(data, np.uint8)
    every = np.zeros((group.size(), _BYTES), np.uint8)
    word = group.library.word(1)
    made = group.ring.post(
        name, group.library.function("Iallgather"),
        (own.ctypes.data, _BYTES, word, every.ctypes.data, _BYTES, word, group.handle, None),
        (own, every),
    )  # fmt: skip
    watch = group.ring.watch
    if watch is not None:
        made.look = partial(watch.look_for_missing, group, group.posted.count + 1, name)
    made.wait(group.seconds)
    return [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in every]
