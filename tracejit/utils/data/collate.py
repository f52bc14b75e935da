"""From samples to a batch: nested containers whose leaves are stacked tensors.

In: a list of samples (`default_collate`), or one sample (`default_convert`). Out: tensors in the
samples' own containers. Called by the loader, in its worker processes where there are some.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from tracejit.core.eager.construction import as_tensor, tensor
from tracejit.core.eager.recording import active
from tracejit.core.eager.state import of_result
from tracejit.core.eager.tensor import Tensor
from tracejit.core.memory import CPU
from tracejit.core.ops.joining import stack
from tracejit.core.ops.types import float64

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
np_str_obj_array_pattern = re.compile("[SaUO]")  # of arrays that are no numbers


def default_collate(batch: Any) -> Any:
    """Make one batch of samples: tensors, arrays and numbers are stacked along a new first
    dimension.

    Containers keep their type, except that tuples become lists; texts stay lists of texts. Floats
    become float64. Raises TypeError for what cannot be stacked, RuntimeError for sequences of
    different lengths and tensors of different shapes.

    >>> default_collate([(1, {"y": 0.5}), (2, {"y": 1.5})])
    [tensor([1, 2]), {'y': tensor([0.5000, 1.5000], dtype=tracejit.float64)}]
    """
    sample = batch[0]
    if isinstance(sample, Tensor):
        return _stacked(batch)
    if isinstance(sample, np.ndarray):
        if np_str_obj_array_pattern.search(sample.dtype.str):
            raise TypeError(default_collate_err_msg_format.format(sample.dtype))
        return stack([as_tensor(array) for array in batch], 0)
    if isinstance(sample, np.generic) and not isinstance(sample, (str, bytes)):
        return as_tensor(np.array(batch))
    if isinstance(sample, float):
        return tensor(batch, dtype=float64)
    if isinstance(sample, int):
        return tensor(batch)
    # A text is a Sequence too, of texts without end.
    if isinstance(sample, (str, bytes)):
        return batch
    if isinstance(sample, Mapping):
        return _mapping(sample, {k: default_collate([d[k] for d in batch]) for k in sample})
    if isinstance(sample, Sequence):
        lengths = {len(other) for other in batch}
        if len(lengths) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = zip(*batch)
        if isinstance(sample, tuple) and not hasattr(sample, "_fields"):
            return [default_collate(column) for column in columns]
        return _sequence(sample, [default_collate(column) for column in columns])
    raise TypeError(default_collate_err_msg_format.format(type(sample)))


def default_convert(data: Any) -> Any:
    """Make tensors of a sample's arrays and NumPy numbers; everything else stays as it is.

    Tuples become lists.

    >>> import numpy as np
    >>> default_convert((np.arange(2), "text"))
    [tensor([0, 1]), 'text']
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and not hasattr(data, "_fields"):
        return [default_convert(x) for x in data]
    if isinstance(data, Sequence):
        return _sequence(data, [default_convert(x) for x in data])
    return data


def _stacked(batch: Any) -> Any:
    """Stack a batch, without an op for each sample where no one could tell."""
    first = batch[0]
    if active.tracer is None and not active.inference and all(
            isinstance(x, Tensor) and x._dtype is first._dtype and x._shape == first._shape
            and x._device.type == "cpu" and not x._requires_grad for x in batch):
        return of_result(np.stack([x.array for x in batch]), first._dtype, CPU)
    return stack(batch, 0)


def _mapping(like: Any, items: dict) -> Any:
    """Return `items` in a mapping of the type of `like`; a dict where it cannot be made."""
    try:
        if isinstance(like, MutableMapping):
            # A copy keeps attributes that the constructor does not know.
            made = copy.copy(like)
            made.update(items)
            return made
        return type(like)(items)
    except TypeError:
        return items


def _sequence(like: Any, items: list) -> Any:
    """Return `items` in a sequence of the type of `like`; a list where it cannot be made."""
    try:
        if hasattr(like, "_fields"):
            return type(like)(*items)
        if isinstance(like, MutableSequence) and type(like) is not list:
            made = copy.copy(like)
            for k, item in enumerate(items):
                made[k] = item
            return made
        return type(like)(items)
    except TypeError:
        return items
