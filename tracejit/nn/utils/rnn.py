"""Sequences of different lengths in one tensor: padded, or packed step by step; PyTorch's
`nn.utils.rnn`.

In: sequences, or a padded batch with lengths. Out: padded tensors and `PackedSequence`s, which
recurrent layers take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tracejit
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager.type_names import scalar_name

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
           "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence"]  # fmt: skip


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Elements of several sequences, step by step: all first ones, all second ones, ...

    data            (total length, ...)
    batch_sizes     the numbers of sequences that have a first element, a second one, ...; int64
    sorted_indices, unsorted_indices  from the caller's order to one by decreasing length, and back

    `pack_padded_sequence` and `pack_sequence` make it; not to be put together by hand.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return `data.to(...)`, packed as before, or the object itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [None if x is None else x.to(data.device) for x in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self) -> PackedSequence:
        """Move the data to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """Move the data to a CUDA device."""
        return self.to("cuda" if device is None else device)

    def double(self) -> PackedSequence:
        """Cast the data to float64."""
        return self.to(tracejit.float64)

    def float(self) -> PackedSequence:
        """Cast the data to float32."""
        return self.to(tracejit.float32)

    def half(self) -> PackedSequence:
        """Cast the data to float16."""
        return self.to(tracejit.float16)

    def long(self) -> PackedSequence:
        """Cast the data to int64."""
        return self.to(tracejit.int64)

    def int(self) -> PackedSequence:
        """Cast the data to int32."""
        return self.to(tracejit.int32)

    def short(self) -> PackedSequence:
        """Cast the data to int16."""
        return self.to(tracejit.int16)

    def char(self) -> PackedSequence:
        """Cast the data to int8."""
        return self.to(tracejit.int8)

    def byte(self) -> PackedSequence:
        """Cast the data to uint8."""
        return self.to(tracejit.uint8)

    @property
    def is_cuda(self) -> bool:
        """True if `data` lies on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the position of each number in a permutation of 0 .. n - 1.

    >>> import tracejit
    >>> tracejit.nn.utils.rnn.invert_permutation(tracejit.tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    return None if permutation is None else permutation.argsort()


# -- steps that sequences have ---------------------------------------------------------------------
def present_steps(batch_sizes: Tensor) -> Tensor:
    """Return a bool tensor (T, N): True where a sequence, in packed order, has a step."""
    count = tracejit.arange(int(batch_sizes[0]), device=batch_sizes.device)
    return count < batch_sizes.unsqueeze(1)


def as_padded(data: Tensor, present: Tensor, value: float = 0.0) -> tuple[Tensor, Tensor]:
    """Return packed data as (T, N, ...), `value` where a sequence has no such step. Return also the
    rows of (T * N, ...) that packed elements lie in."""
    rows = present.flatten().nonzero().squeeze(1).to(data.device)
    if len(rows) != len(data):
        raise RuntimeError(f"batch_sizes count {len(rows)} elements, but there are {len(data)}")
    padded = data.new_full((present.numel(), *data.shape[1:]), value).index_copy(0, rows, data)
    return padded.unflatten(0, present.shape), rows


# -- packing ---------------------------------------------------------------------------------------
def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack the first `lengths[k]` elements of each sequence of a padded batch (T, N, ...).

    lengths         a list of ints or a 1-dimensional tensor
    batch_first     the input is (N, T, ...)
    enforce_sorted  the lengths decrease; else the sequences are sorted first

    >>> import tracejit
    >>> x = tracejit.tensor([[1, 2], [3, 0]])
    >>> packed = tracejit.nn.utils.rnn.pack_padded_sequence(x, [2, 1])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 2, 3], [2, 1])

    RuntimeError for lengths that are not positive, not in order, too long, or not one for each
    sequence.
    """
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    counts = _lengths(lengths)
    order = None
    if not enforce_sorted:
        counts, order = counts.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    steps = input.transpose(0, 1) if batch_first else input
    _check_lengths(counts, *steps.shape[:2])
    longest = int(counts[0])
    present = tracejit.arange(longest).unsqueeze(1) < counts
    # packed data are the padded elements, step by step, without those behind an end
    rows = present.flatten().nonzero().squeeze(1).to(input.device)
    data = steps[:longest].flatten(0, 1).index_select(0, rows)
    return PackedSequence(data, present.sum(1), order)


def _lengths(lengths: Any) -> Tensor:
    if not isinstance(lengths, Tensor):
        return tracejit.tensor(list(lengths), dtype=tracejit.int64)
    if len(lengths.shape) != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{len(lengths.shape)}D {lengths.device.type} {scalar_name(lengths.dtype)} tensor"
        )
    return lengths.to("cpu", tracejit.int64)


def _check_lengths(counts: Tensor, longest: int, batch: int) -> None:
    given = counts.tolist()
    if len(given) != batch:
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(given)} (batch_size={batch})"
        )
    if min(given) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if given != sorted(given, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if given[0] > longest:
        raise RuntimeError(f"Expected lengths of at most {longest}, but got {given[0]}")


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (T, N, ...) or, with `batch_first`, (N, T, ...), and the lengths, in the caller's
    order.

    total_length  T, if not the length of the longest sequence

    >>> import tracejit
    >>> from tracejit.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([tracejit.tensor([1, 2]), tracejit.tensor([3])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))

    ValueError where `total_length` is too short.
    """
    data, batch_sizes, _, back = sequence
    present = present_steps(batch_sizes)
    longest = present.shape[0]
    lengths = present.sum(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being "
                f"{longest}"
            )
        more = present.new_zeros(total_length - longest, present.shape[1])
        present = tracejit.cat([present, more])
    padded, _ = as_padded(data, present, padding_value)
    padded = padded.transpose(0, 1) if batch_first else padded
    if back is not None:
        padded = padded.index_select(0 if batch_first else 1, back)
        # lengths stay on the CPU
        lengths = lengths.index_select(0, back.to("cpu"))
    return padded, lengths


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (T, ...) of different lengths. See `pack_padded_sequence`.

    >>> import tracejit
    >>> a, b = tracejit.tensor([1, 2, 3]), tracejit.tensor([4, 5])
    >>> tracejit.nn.utils.rnn.pack_sequence([a, b]).data.tolist()
    [1, 4, 2, 5, 3]
    """
    lengths = [len(x) for x in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that were packed, in the caller's order.

    >>> import tracejit
    >>> from tracejit.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([tracejit.tensor([1, 2]), tracejit.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


# -- padding ---------------------------------------------------------------------------------------
def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Return sequences (T, ...) as one (longest, N, ...) or, with `batch_first`, (N, longest, ...).

    padding_side  "right": behind the elements; "left": before them

    >>> import tracejit
    >>> a, b = tracejit.tensor([1, 2, 3]), tracejit.tensor([4])
    >>> tracejit.nn.utils.rnn.pad_sequence([a, b], batch_first=True, padding_value=-1).tolist()
    [[1, 2, 3], [4, -1, -1]]

    RuntimeError for no sequences, or another side.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    given = list(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(len(x) for x in given)

    def filled(x: Tensor) -> Tensor:
        more = x.new_full((longest - len(x), *x.shape[1:]), padding_value)
        return tracejit.cat([x, more] if padding_side == "right" else [more, x])

    return tracejit.stack([filled(x) for x in given], 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Return the first `lengths[k]` elements of each sequence of a padded batch.

    >>> import tracejit
    >>> x = tracejit.tensor([[1, 2], [3, 0]])
    >>> tracejit.nn.utils.rnn.unpad_sequence(x, tracejit.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [x[:n] for x, n in zip(rows, lengths.tolist())]
