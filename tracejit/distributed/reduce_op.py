"""Operations that combine the values of processes; PyTorch's `ReduceOp`.

In: a dtype and an operation. Out: the name of MPI's operation, or PyTorch's error where there is
none. Called by `collectives`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from tracejit.core.ops.types import FLOATING, dtype


class ReduceOp(Enum):
    """Operation that combines the values of processes.

    SUM, PRODUCT, MIN, MAX  of numbers; complex ones have no MIN and MAX
    AVG                     the mean: of floating and complex numbers only
    BAND, BOR, BXOR         of the bits of integers, or of bools
    PREMUL_SUM              refused with RuntimeError: scale the tensor before

    >>> ReduceOp.SUM
    <RedOpType.SUM: 0>
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    @property
    def op(self) -> ReduceOp:
        """The operation itself: PyTorch's objects hold one."""
        return self

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


# PyTorch's members are of this class, and pass for a ReduceOp.
ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]

_MPI = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD", ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX", ReduceOp.BAND: "BAND", ReduceOp.BOR: "BOR", ReduceOp.BXOR: "BXOR",
}  # fmt: skip
# Of truth values a sum is "any", a product is "all".
_MPI_OF_BOOL = {
    ReduceOp.SUM: "LOR", ReduceOp.PRODUCT: "LAND", ReduceOp.MIN: "LAND", ReduceOp.MAX: "LOR",
    ReduceOp.BAND: "LAND", ReduceOp.BOR: "LOR", ReduceOp.BXOR: "LXOR",
}  # fmt: skip
_BITWISE = frozenset({ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR})
_OF_COMPLEX = frozenset({ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT})


def mpi_operation(name: str, op: Any, kind: dtype) -> str:
    """Return the name of MPI's operation for tensors of a dtype.

    Raises TypeError if `op` is no ReduceOp, ValueError for complex numbers that have no order, and
    RuntimeError where PyTorch does.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: expected op to be a ReduceOp, got {op!r}")
    if op is ReduceOp.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with MPI: scale the tensor before")
    if kind.is_complex and op not in _OF_COMPLEX:
        raise ValueError(f"{name} does not support {op} on complex tensors")
    if op in _BITWISE and kind.category >= FLOATING:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and kind.category < FLOATING:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {kind}")
    return (_MPI_OF_BOOL if kind.name == "bool" else _MPI)[op]
