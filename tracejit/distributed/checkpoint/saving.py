"""`save` and `load`: the state of all processes, each tensor once.

In: nested dicts and lists of tensors and plain values. Out: files; or the tensors are written, and
plain values replaced. Called by programs.

What several processes have is written by one of them, so that all write about as much. The index
does not depend on the number of processes, so another number may read it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from typing import Any

from tracejit.core.eager.existing_memory import frombuffer
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops.types import uint8
from tracejit.distributed import groups
from tracejit.distributed.checkpoint.files import FileSystemReader, FileSystemWriter
from tracejit.distributed.objects import all_gather_object
from tracejit.serialization import load as load_value
from tracejit.serialization import save as save_value


class CheckpointException(RuntimeError):
    """Error: a checkpoint could not be written or read. `failures` maps ranks to errors.

    >>> from tracejit.distributed import checkpoint
    >>> try:
    ...     checkpoint.load({}, checkpoint_id="no such folder")
    ... except checkpoint.CheckpointException as error:
    ...     print(list(error.failures))
    [0]
    """

    def __init__(self, msg: str, failures: dict[int, BaseException]) -> None:
        shown = "".join(f"\nrank {rank}: {error}" for rank, error in failures.items())
        super().__init__(msg + shown)
        self.failures = failures


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Write the state of all processes to a folder; all must call it.

    state_dict     nested dicts and lists of tensors and plain values; objects with a `state_dict`
                   method stand for what it gives. Equal keys in several processes stand for equal
                   values, which one of them writes
    checkpoint_id  the folder; or give a `storage_writer`
    process_group  the processes that write; the default group if None
    planner        taken, and without effect
    no_dist        this process alone writes

    Works without a process group too. Raises CheckpointException in all processes if one fails; the
    checkpoint that was there stays. Raises ValueError without a folder.

    >>> import tempfile
    >>> import tracejit
    >>> from tracejit.distributed import checkpoint
    >>> model = tracejit.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"model": model, "step": 3}, checkpoint_id=folder)
    ...     sorted(checkpoint.FileSystemReader(folder).read_index()["keys"])
    ['model.bias', 'model.weight', 'step']
    """
    writer = _writer(checkpoint_id, storage_writer)
    group = _group(process_group, no_dist)
    rank = 0 if group is None else group.rank()
    own = dict(_flat(state_dict))
    plans = _exchange(_sizes(own), group)
    owners = _owners([plan for _, plan in plans])
    failure: str | None = None
    name, mine = "", [key for key, owner in owners.items() if owner == rank]
    try:
        writer.prepare()
        if mine:
            name = writer.write_data(rank, {key: _stored(own[key]) for key in mine})
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    told = _exchange((name, {key: isinstance(own[key], Tensor) for key in mine}, failure), group)
    _check(told, "the checkpoint was not written")
    if rank == 0:
        failure = _finish(writer, told)
    _check(_exchange(("", {}, failure if rank == 0 else None), group),
           "the checkpoint was not written")  # fmt: skip


def _finish(writer: FileSystemWriter, told: list[tuple[int, Any]]) -> str | None:
    """Write the index, and remove what it does not name; return an error's text."""
    index: dict[str, Any] = {}
    for _, (name, keys, _) in told:
        index |= {key: {"file": name, "tensor": is_tensor} for key, is_tensor in keys.items()}
    try:
        writer.write_index({"keys": index})
        writer.remove_others({entry["file"] for entry in index.values()})
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return None


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Write what a folder has into the tensors of a state, and replace its plain values.

    state_dict     as for `save`, with the keys that are wanted; an empty dict gets all that was
                   saved in its place, such as the state of an optimizer that made no step yet. The
                   number of processes may be another one than that which saved
    checkpoint_id  the folder; or give a `storage_reader`
    process_group  the processes that read; the default group if None
    planner        taken, and without effect
    no_dist        this process alone reads

    Raises CheckpointException in all processes if one fails: for a missing key, or another shape.
    Raises ValueError without a folder.

    >>> import tempfile
    >>> import tracejit
    >>> from tracejit.distributed import checkpoint
    >>> state = {"weight": tracejit.zeros(2), "step": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"weight": tracejit.ones(2), "step": 3}, checkpoint_id=folder)
    ...     checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'weight': tensor([1., 1.]), 'step': 3}
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise ValueError("load needs a checkpoint_id or a storage_reader")
        storage_reader = FileSystemReader(checkpoint_id)
    group = _group(process_group, no_dist)
    failure = None
    try:
        _read(state_dict, storage_reader)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    _check(_exchange(("", {}, failure), group), "the checkpoint was not read")


def _read(state: dict[str, Any], reader: FileSystemReader) -> None:
    keys = reader.read_index()["keys"]
    plain = {name: _state_of(value) for name, value in state.items()}
    _fill(plain, keys)
    for key, value in _flat(plain):
        if key not in keys:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")
        entry = keys[key]
        found = reader.read(entry["file"], key)
        if not entry["tensor"]:
            found = load_value(io.BytesIO(found.numpy().tobytes()), weights_only=True)
        if isinstance(value, Tensor) and isinstance(found, Tensor):
            if value.shape != found.shape:
                raise ValueError(f"Size mismatch between saved {tuple(found.shape)} and current: "
                                 f"{tuple(value.shape)} for {key}")
            value.detach().copy_(found)
        else:
            _put(plain, key, found)
    for name, value in state.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(plain[name])
        else:
            state[name] = plain[name]


# -- names ---------------------------------------------------------------------------------------


def _state_of(value: Any) -> Any:
    return value.state_dict() if hasattr(value, "state_dict") else value


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, tensor or plain value). Keys are paths: "model.weight", "steps.0"."""
    value = _state_of(value)
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _flat(part, f"{path}.{_quoted(name)}" if path else _quoted(name))
    elif isinstance(value, list) and value:
        for k, part in enumerate(value):
            yield from _flat(part, f"{path}.{k}" if path else str(k))
    else:
        yield path, value


def _quoted(name: Any) -> str:
    """Return a key's part of a path, in which a dot would be taken for the next part."""
    return str(name).replace("%", "%25").replace(".", "%2E")


def _fill(state: dict[str, Any], keys: Iterable[str]) -> None:
    """Put None in empty dicts for each key that was saved below them.

    Names of digits become integers, as in the state of an optimizer.
    """
    empty = {key: value for key, value in _flat(state) if isinstance(value, dict)}
    for key in keys:
        parts = key.split(".")
        for k in range(1, len(parts)):
            inner = empty.get(".".join(parts[:k]))
            if inner is None:
                continue
            for part in parts[k:-1]:
                inner = inner.setdefault(_unquoted(part), {})
            inner[_unquoted(parts[-1])] = None
            break


def _unquoted(part: str) -> Any:
    return int(part) if part.isdecimal() else part.replace("%2E", ".").replace("%25", "%")


def _put(state: Any, key: str, value: Any) -> None:
    """Put a value in its place in nested dicts and lists."""
    *way, last = key.split(".")
    for part in way:
        state = state[_name_in(state, part)]
    state[_name_in(state, last)] = value


def _name_in(container: Any, part: str) -> Any:
    if isinstance(container, list):
        return int(part)
    return next(name for name in container if _quoted(name) == part)


# -- who writes what -----------------------------------------------------------------------------


def _sizes(own: dict[str, Any]) -> dict[str, int]:
    return {
        key: value.nbytes if isinstance(value, Tensor) else 64 for key, value in own.items()
    }  # fmt: skip


def _owners(plans: list[dict[str, int]]) -> dict[str, int]:
    """Return the rank that writes each key: of those that have it, the one with least to write."""
    having: dict[str, list[int]] = {}
    for rank, plan in enumerate(plans):
        for key in plan:
            having.setdefault(key, []).append(rank)
    loads = [0] * len(plans)
    owners = {}
    for key, ranks in having.items():
        owner = min(ranks, key=lambda rank: loads[rank])
        owners[key] = owner
        loads[owner] += plans[owner][key]
    return owners


def _stored(value: Any) -> Any:
    """Return a tensor that stands for a value in a file."""
    if isinstance(value, Tensor):
        return value.detach().contiguous()
    file = io.BytesIO()
    save_value(value, file)
    file.seek(0)
    # now is the time to refuse what cannot be read without running code
    load_value(file, weights_only=True)
    return frombuffer(bytearray(file.getvalue()), dtype=uint8)


# -- the processes -------------------------------------------------------------------------------


def _writer(path: Any, writer: FileSystemWriter | None) -> FileSystemWriter:
    if writer is not None:
        return writer
    if path is None:
        raise ValueError("save needs a checkpoint_id or a storage_writer")
    return FileSystemWriter(path)


def _group(group: Any, alone: bool) -> Any:
    if alone or not groups.is_initialized():
        return None
    return groups.member(group, "checkpoint")


def _exchange(value: Any, group: Any) -> list[tuple[int, Any]]:
    """Return (rank, value) of all processes."""
    if group is None:
        return [(0, value)]
    every: list[Any] = [None] * group.size()
    all_gather_object(every, value, group)
    return list(enumerate(every))


def _check(told: list[tuple[int, Any]], text: str) -> None:
    failures: dict[int, BaseException] = {
        rank: RuntimeError(failure) for rank, (_, _, failure) in told if failure is not None
    }
    if failures:
        raise CheckpointException(text, failures)
