"""Collectives: kernels that start one, and one that waits for it.

In: nodes of collectives. Out: library kernels. A kernel passes addresses and numbers to native code
of the process group, which starts the call of MPI and goes on: kernels behind it run meanwhile.
`schedule.py` puts the wait before the first instruction that needs the result.

The words of a process group are an input of the program, so no text depends on a process. Words
BEGIN and LAND are addresses of functions, which `distributed.communicator` has compiled. A token
has the place of what was begun, and the function that waits for it.
"""

from __future__ import annotations

import functools

from tracejit.core.ops import collectives as records
from tracejit.jit.ir.graph import Node
from tracejit.jit.ir.sizes import SizeLike
from tracejit.jit.lowering.library import Bound, Library, kernel_of, product_of
from tracejit.jit.lowering.program import Kernel

# Words of a process group.
BEGIN, LAND, RING, COMMUNICATOR, NUMBER, IN_PLACE, SECONDS, RANK = range(8)
FUNCTIONS, TYPES, OPERATIONS = 8, 32, 48  # two words a function: for counts of 32 bits, of 64
WORDS = 64
COLLECTIVES = tuple(op.name for op in records.COLLECTIVES)
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128")  # fmt: skip
COMBINED = ("SUM", "PROD", "MIN", "MAX", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR")
BUDGET = 20_000  # looks at a collective, before Python looks at signals and at dead processes
WAITS = "wait"  # the name of waiting instructions
MOST_ALOFT = 64  # a program begins no more without a wait: all programs share 1,024 slots

_START = '''\
"""{name}: starts it. Its result is there after the wait."""
from tracejit.jit.lowering.abi import address_of, call_function, int64_pointer, uint8_pointer


def {name}(buffers, operands, sizes, scratch, status, lo, hi):
    x = uint8_pointer(buffers, operands[0])
    group = int64_pointer(buffers, operands[1])
    out = uint8_pointer(buffers, operands[3])
    token = int64_pointer(buffers, operands[4])
    token[0] = call_function(
        group[{begin}], address_of(group), {what}, address_of(x), address_of(out), sizes[0],
        sizes[1], sizes[2], sizes[3], sizes[4]
    )
    token[1] = group[{land}]
    status[{flown}] += 1
'''
_BARRIER = '''\
"""barrier: starts it."""
from tracejit.jit.lowering.abi import address_of, call_function, int64_pointer


def barrier(buffers, operands, sizes, scratch, status, lo, hi):
    group = int64_pointer(buffers, operands[0])
    token = int64_pointer(buffers, operands[2])
    token[0] = call_function(group[{begin}], address_of(group), {what}, 0, 0, 0, 0, 0, 0, 0)
    token[1] = group[{land}]
    status[{flown}] += 1
'''
_WAIT = '''\
"""Waits for a collective. A status says that it takes long: Python looks, and calls again."""
from tracejit.jit.lowering.abi import call_function, int64_pointer


def wait(buffers, operands, sizes, scratch, status, lo, hi):
    token = int64_pointer(buffers, operands[sizes[0]])
    if token[0] == 0:
        status[0] = 1
    elif call_function(token[1], token[0], {budget}) == 0:
        status[0] = 2
        status[1] = token[0]
    else:
        status[{flown}] += {landing}
'''
_BUCKET = '''\
"""Gradients one behind the other, divided by the number of processes."""
from tracejit.jit.lowering.abi import {dtype}_pointer


def bucket_{dtype}_{count}(buffers, operands, sizes, scratch, status, lo, hi):
    out = {dtype}_pointer(buffers, operands[{count}])
    at = 0
{copies}
'''
_COPY = '''\
    x{k} = {dtype}_pointer(buffers, operands[{k}])
    for i in range(sizes[{k}]):
        out[at + i] = x{k}[i] / {dtype}({divisor})
    at += sizes[{k}]'''
GONE, LATE = "the process group was destroyed", "waits for other processes"
LATE_STATUS = 2  # the number of LATE in a status
FLOWN = 3  # the word of a status that counts what was begun, and what was waited for times LANDING
LANDING = 1 << 32


@functools.cache
def _start_kernel(name: str) -> Kernel:
    text = _BARRIER if name == "barrier" else _START
    what = COLLECTIVES.index(name)
    return kernel_of(name, text.format(name=name, what=what, begin=BEGIN, land=LAND, flown=FLOWN))


@functools.cache
def wait_kernel() -> Kernel:
    """Return the kernel that waits. Its operands are all buffers of a collective, the token
    last; its size is the token's place among them."""
    text = _WAIT.format(budget=BUDGET, flown=FLOWN, landing=LANDING)
    kernel = kernel_of(WAITS, text)
    return Kernel(kernel.name, kernel.source, kernel.digest, loops=0, messages=(GONE, LATE))


def _sizes(node: Node) -> tuple[SizeLike, ...]:
    """Return count, dtype, operation, root, bytes of the operand."""
    if node.op.name == "barrier":
        return ()
    x, out, attributes = node.inputs[0], node.outputs[0], node.attributes
    counted = out if node.op.name == "reduce_scatter" else x
    count = product_of(counted.shape)
    op = COMBINED.index(attributes["op"]) if "op" in attributes else 0
    root = attributes.get("root", 0)
    nbytes = product_of(x.shape) * x.dtype.itemsize
    return count, DTYPES.index(x.dtype.name), op, root, nbytes


@functools.cache
def _bucket_kernel(dtype: str, count: int, divisor: int) -> Kernel:
    copies = "\n".join(_COPY.format(k=k, dtype=dtype, divisor=divisor) for k in range(count))
    text = _BUCKET.format(dtype=dtype, count=count, copies=copies)
    text = text.replace("\nfrom tracejit", f"\nfrom numpy import {dtype}\n\nfrom tracejit", 1)
    return kernel_of(f"bucket_{dtype}_{count}", text)


def _bucket_of(node: Node) -> Kernel:
    dtype = node.outputs[0].dtype.name
    return _bucket_kernel(dtype, len(node.inputs), node.attributes["divisor"])


_bucket = Library(
    lambda node: node.outputs[0].dtype.name in ("float32", "float64"), _bucket_of,
    lambda node: tuple(product_of(x.shape) for x in node.inputs),
    lambda sizes: Bound(sizes, 1, 1, work=16 * sum(sizes)),
)  # fmt: skip


def _library(name: str) -> Library:
    return Library(
        lambda node: True, lambda node: _start_kernel(name), _sizes,
        lambda sizes: Bound(sizes, 1, 1), compiled_only=True,
    )  # fmt: skip


LIBRARIES = {"bucket": _bucket, **{name: _library(name) for name in COLLECTIVES}}
LIBRARIES[WAITS] = Library(
    lambda node: False, lambda node: wait_kernel(), lambda node: (),
    lambda sizes: Bound(sizes, 1, 1), compiled_only=True,
)  # fmt: skip
