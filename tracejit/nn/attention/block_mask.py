"""Masks of attention by blocks: the blocks that a mask shows in part, and those it shows whole.

In: a mask (B, H, L, S), or tables of blocks. Out: a `BlockMask`. Called by `flex_attention`.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn.functional import pad


def _table(blocks: Any) -> tuple[Any, Any]:
    """Return the number of blocks of each row, and block numbers with the row's own first."""
    # stable: the numbers rise among shown blocks, and among the others
    order = blocks.to(tracejit.int32).argsort(-1, descending=True, stable=True)
    return blocks.sum(-1).to(tracejit.int32), order.to(tracejit.int32)


def _blocks(table: tuple[Any, Any]) -> Any:
    """Return the blocks of a table as a dense tensor: 1 where listed, else 0."""
    many, order = table
    listed = (tracejit.arange(order.size(-1), device=many.device) < many.unsqueeze(-1)).int()
    return tracejit.zeros_like(listed).scatter(-1, order.long(), listed)


class BlockMask:
    """Mask function, and the blocks where the mask shows any score.

    kv_num_blocks     (B, H, rows): the number of blocks that each row shows in part
    kv_indices        (B, H, rows, columns): the numbers of these blocks
    full_kv_num_blocks, full_kv_indices  whole blocks, or None where they count as the others
    q_num_blocks ...  the same by columns
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None,
        q_num_blocks: Any = None,
        q_indices: Any = None,
        full_q_num_blocks: Any = None,
        full_q_indices: Any = None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: Any = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Any = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Make the mask whose blocks these tables list by rows. Without `seq_lengths`, it ends with
        whole blocks."""
        sizes = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if mask_mod is None:
            from tracejit.nn.attention.flex_attention import noop_mask as mask_mod
        columns = [(None, None), (None, None)]
        if compute_q_blocks:
            columns[0] = _table(_blocks((kv_num_blocks, kv_indices)).transpose(-2, -1))
            if full_kv_num_blocks is not None:
                whole = _blocks((full_kv_num_blocks, full_kv_indices))
                columns[1] = _table(whole.transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        return cls(seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
                   *columns[0], *columns[1], sizes, mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of scores."""
        return tracejit.Size(self.shape).numel()

    def to_dense(self) -> Any:
        """Return the blocks, 1 where the mask shows any score."""
        blocks = _blocks((self.kv_num_blocks, self.kv_indices))
        if self.full_kv_num_blocks is not None:
            blocks = blocks | _blocks((self.full_kv_num_blocks, self.full_kv_indices))
        return blocks

    def sparsity(self) -> float:
        """Return the percentage of scores that lie in no shown block."""
        shown = int(self.to_dense().sum()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - shown / self.numel())

    def _tables(self) -> tuple:
        return (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices,
                self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices)

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Return the arguments of `BlockMask(...)`: lengths, tables, sizes of blocks, the
        function."""
        ends: tuple = (self.seq_lengths, self.BLOCK_SIZE)
        if flatten:
            return (*ends[0], *self._tables(), *ends[1], self.mask_mod)
        return (ends[0], *self._tables(), ends[1], self.mask_mod)

    def to(self, device: Any) -> BlockMask:
        """Return the same mask with its tables on another device."""
        moved = (None if t is None else t.to(device) for t in self._tables())
        return BlockMask(self.seq_lengths, *moved, BLOCK_SIZE=self.BLOCK_SIZE,
                         mask_mod=self.mask_mod)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def of_mask(shown: Any, mask_mod: Any, sizes: tuple[int, int], apart: bool) -> BlockMask:
    """Return the blocks of a mask (B, H, L, S). With `apart`, whole blocks have tables of their
    own."""
    rows, columns = (-(-n // size) for n, size in zip(shown.shape[-2:], sizes))
    lengths = (shown.shape[-2], shown.shape[-1])
    # with False, so that a block cut at the edge is never whole
    padded = pad(shown, (0, columns * sizes[1] - lengths[1], 0, rows * sizes[0] - lengths[0]))
    counts = padded.view(*shown.shape[:2], rows, sizes[0], columns, sizes[1]).sum((3, 5))
    whole = counts == sizes[0] * sizes[1]
    partly = (counts > 0) & ~whole if apart else counts > 0
    return BlockMask.from_kv_blocks(*_table(partly), *(_table(whole) if apart else (None, None)),
                                    BLOCK_SIZE=sizes, mask_mod=mask_mod, seq_lengths=lengths)
