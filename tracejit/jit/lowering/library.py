"""Library kernels: ops that are no loop over elements, as hand-written kernels of the one ABI.

In: a node. Out: the `Library` that computes it, or None: then a host call does. Lowering puts its
name, kernel and sizes into an instruction. When sizes are bound, the runtime asks `bound` how the
work is cut, by shape alone. Called by `fuse.py`, `schedule.py` and `jit/runtime/`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracejit.jit.ir.graph import Node
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.program import Kernel

MOST = 16  # chunks of one instruction


class Bound(NamedTuple):
    """Instruction for known sizes.

    - `scratch`: bytes that each worker needs
    - `work`: how long it takes, as bytes moved
    """

    sizes: tuple[int, ...]
    total: int
    chunk: int
    scratch: int = 0
    work: int = 0


@dataclass(frozen=True)
class Library:
    """Computation of one op by a kernel of its own.

    - `takes`: True if it can compute this node
    - `kernel`: its text, by node
    - `sizes`: integers the text reads, by node
    - `bound`: the instruction, once they have values
    - `compiled_only`: True if the text means nothing as plain Python
    """

    takes: Callable[[Node], bool]
    kernel: Callable[[Node], Kernel]
    sizes: Callable[[Node], tuple[SizeLike, ...]]
    bound: Callable[[tuple[int, ...]], Bound]
    compiled_only: bool = False


@functools.cache
def libraries() -> dict[str, Library]:
    """Return the libraries by name of the op."""
    from tracejit.jit.lowering import library_averages as averages
    from tracejit.jit.lowering import library_collectives as collectives
    from tracejit.jit.lowering import library_convolution as convolution
    from tracejit.jit.lowering import library_order as order
    from tracejit.jit.lowering import library_pooling as pooling
    from tracejit.jit.lowering import library_scan as scan

    families = (averages, collectives, convolution, order, pooling, scan)
    return {name: library for family in families for name, library in family.LIBRARIES.items()}


def library_of(node: Node) -> Library | None:
    """Return the library that computes the node on the CPU, or None."""
    if not node.op.library:
        return None
    found = libraries().get(node.op.name)
    if found is None or any(v.type.device.type != "cpu" for v in node.outputs):
        return None
    return found if found.takes(node) else None


def kernel_of(name: str, source: str, scratch: int = 0) -> Kernel:
    """Make a kernel whose identity is its text. Products fuse into sums, as in a library's."""
    source = f'{source}\n\nFASTMATH = ("contract",)\n'
    digest = hashlib.sha256(source.encode()).hexdigest()[:32]
    return Kernel(name, source, digest, loops=1, scratch_bytes=scratch)


def chunk_of(total: int, work: int, worth: int = 1 << 18) -> int:
    """Return a part of `total` such that each moves `worth` bytes or so."""
    parts = max(1, min(MOST, work // worth, total))
    return -(-total // parts)


def product_of(sizes: Any) -> Any:
    """Return the product of sizes, which may be symbolic."""
    total: Any = 1
    for size in sizes:
        total = total * size
    return total
