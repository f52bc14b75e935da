"""Kernel ABI: what the names in a kernel's text mean, compiled and as plain Python.

In: `buffers`, `scratch` and a number. Out: a typed pointer when compiled (see `kernel_emitter`),
the NumPy array itself when the same text runs as Python. Kernel texts import these names.

    kernel(buffers, operands, sizes, scratch, status, lo, hi)

Dtypes without arithmetic of their own are seen as bytes, not values: bool is uint8, float16 and
bfloat16 are uint16. One rule keeps loops vectorised: operands of one instruction are different
memory. So a buffer that is updated in place is listed once, and the kernel reads and writes it
through that one pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

VERSION = 1
VECTOR_BYTES = 64
PARAMETERS = ("buffers", "operands", "sizes", "scratch", "status", "lo", "hi")

# dtype name -> type of the elements a kernel sees
ELEMENTS = {
    "bool": "uint8", "uint8": "uint8", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "float16": "uint16", "bfloat16": "uint16", "float32": "float32",
    "float64": "float64", "complex64": "complex64", "complex128": "complex128",
}  # fmt: skip


def _pointer_function(dtype: str) -> Callable[..., Any]:
    def pointer(buffers: Any, k: int) -> Any:
        return buffers[k]

    pointer.__name__ = pointer.__qualname__ = f"{dtype}_pointer"
    pointer.__doc__ = f"Operand memory as {ELEMENTS[dtype]} elements."
    return pointer


def _scratch_function(element: str) -> Callable[..., Any]:
    def pointer(scratch: Any, offset: int) -> Any:
        size = np.dtype(element).itemsize
        return scratch[offset : offset + (len(scratch) - offset) // size * size].view(element)

    pointer.__name__ = pointer.__qualname__ = f"{element}_scratch"
    pointer.__doc__ = f"This worker's scratch memory from byte `offset` on, as {element} elements."
    return pointer


def _local_function(element: str) -> Callable[..., Any]:
    def pointer(count: int) -> Any:
        return np.empty(count, element)

    pointer.__name__ = pointer.__qualname__ = f"{element}_local"
    pointer.__doc__ = f"Memory of the kernel's own for {element} elements, a fixed number."
    return pointer


POINTERS = {dtype: _pointer_function(dtype) for dtype in ELEMENTS}
SCRATCH = {element: _scratch_function(element) for element in dict.fromkeys(ELEMENTS.values())}
LOCALS = {element: _local_function(element) for element in SCRATCH}
LOCAL_FUNCTIONS = {f: e for e, f in LOCALS.items()}
# function -> (element type, True for operands and False for scratch)
POINTER_FUNCTIONS = {f: (ELEMENTS[d], True) for d, f in POINTERS.items()}
POINTER_FUNCTIONS |= {f: (e, False) for e, f in SCRATCH.items()}

bool_pointer = POINTERS["bool"]
uint8_pointer = POINTERS["uint8"]
int8_pointer = POINTERS["int8"]
int16_pointer = POINTERS["int16"]
int32_pointer = POINTERS["int32"]
int64_pointer = POINTERS["int64"]
float16_pointer = POINTERS["float16"]
bfloat16_pointer = POINTERS["bfloat16"]
float32_pointer = POINTERS["float32"]
float64_pointer = POINTERS["float64"]
complex64_pointer = POINTERS["complex64"]
complex128_pointer = POINTERS["complex128"]
uint8_scratch = SCRATCH["uint8"]
uint16_scratch = SCRATCH["uint16"]
int8_scratch = SCRATCH["int8"]
int16_scratch = SCRATCH["int16"]
int32_scratch = SCRATCH["int32"]
int64_scratch = SCRATCH["int64"]
float32_scratch = SCRATCH["float32"]
float64_scratch = SCRATCH["float64"]
uint8_local = LOCALS["uint8"]
uint16_local = LOCALS["uint16"]
int8_local = LOCALS["int8"]
int16_local = LOCALS["int16"]
int32_local = LOCALS["int32"]
int64_local = LOCALS["int64"]
float32_local = LOCALS["float32"]
float64_local = LOCALS["float64"]


# -- what only the runner's own text uses: no meaning as plain Python ---------------------------


def _compiled_only(name: str) -> Callable[..., Any]:
    def primitive(*arguments: Any) -> Any:
        raise RuntimeError(f"{name} exists in compiled kernels only")

    primitive.__name__ = primitive.__qualname__ = name
    return primitive


PRIMITIVES = {
    name: _compiled_only(name)
    for name in (
        "call_kernel",  # (address, buffers, operands, sizes, scratch, status, lo, hi): no result
        "call_function",  # (address, int64...) -> int64, by the C convention
        "pointer_at",  # (address) -> pointer to int64
        "address_of",  # (pointer) -> int64
        "atomic_add",  # (pointer, index, value) -> value before
        "atomic_load",
        "atomic_store",
        "atomic_swap_if",  # (pointer, index, expected, new) -> whether it was `expected`
        "pause",  # hint: this is a spinning loop
        "load_vector",  # (pointer, index) -> VECTOR_BYTES of elements, as one value
        "store_vector",  # (pointer, index, vector)
        "load_part",  # (pointer, index, count) -> vector: its first `count` elements, then zeros
        "store_part",  # (pointer, index, vector, count): its first `count` elements
        "vector_sum",  # (vector) -> scalar: halves added until one element is left
        "spread",  # (scalar) -> vector
    )
}
call_kernel = PRIMITIVES["call_kernel"]
call_function = PRIMITIVES["call_function"]
pointer_at = PRIMITIVES["pointer_at"]
address_of = PRIMITIVES["address_of"]
atomic_add = PRIMITIVES["atomic_add"]
atomic_load = PRIMITIVES["atomic_load"]
atomic_store = PRIMITIVES["atomic_store"]
atomic_swap_if = PRIMITIVES["atomic_swap_if"]
pause = PRIMITIVES["pause"]
load_vector = PRIMITIVES["load_vector"]
store_vector = PRIMITIVES["store_vector"]
load_part = PRIMITIVES["load_part"]
store_part = PRIMITIVES["store_part"]
vector_sum = PRIMITIVES["vector_sum"]
spread = PRIMITIVES["spread"]
