"""Element types and promotion: the dtype in which an operation computes.

In: dtypes, Python scalars, anything with `.dtype` and `.shape`. Out: a `dtype`. Called by every
op's front end.

Promotion follows PyTorch: dimensioned tensors decide before 0-dim tensors, which decide before
Python numbers. A lower class only matters where it brings a higher category (bool < int < float <
complex).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

BOOL, INTEGER, FLOATING, COMPLEX = range(4)
# PyTorch's names of element types in messages
SCALAR_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
CPP_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


class dtype:
    """Element type, e.g. `tracejit.float32`. Instances are singletons, compared with `is`.

    >>> import tracejit
    >>> tracejit.float32.itemsize, tracejit.float32.is_floating_point
    (4, True)
    """

    __slots__ = ("name", "numpy", "itemsize", "category", "rank")
    _by_name: dict[str, dtype] = {}

    def __init__(self, name: str, numpy_type: Any, category: int, rank: int):
        self.name, self.numpy, self.category, self.rank = name, np.dtype(numpy_type), category, rank
        self.itemsize = self.numpy.itemsize
        dtype._by_name[name] = self

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        return self.name not in ("uint8", "bool")

    def to_real(self) -> dtype:
        """Return the dtype of the parts of a complex number; a real dtype itself."""
        return self if self.category != COMPLEX else float32 if self is complex64 else float64

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts have this dtype, or hold it: complex64 for halves.

        RuntimeError for integers.
        """
        if self.category < FLOATING:
            raise RuntimeError(f"Unknown Complex ScalarType for {SCALAR_NAMES[self.name]}")
        return self if self.category == COMPLEX else complex128 if self is float64 else complex64

    def __repr__(self) -> str:
        return f"tracejit.{self.name}"

    def __str__(self) -> str:
        """Return PyTorch's text, as programs take the part behind "torch.", or compare the whole.

        >>> str(float32), float32
        ('torch.float32', tracejit.float32)
        """
        return f"torch.{self.name}"

    def __reduce__(self):
        return (dtype_named, (self.name,))

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: Any) -> dtype:
        return self


def require_cpu(device: Any) -> None:
    """Raise NotImplementedError for complex numbers on another device: none computes with them.

    >>> require_cpu(None)
    """
    if device is not None and device.type == "cuda":
        raise NotImplementedError(f"complex tensors are not supported on {device}: use the CPU")


def dtype_named(name: str) -> dtype:
    return dtype._by_name[name]


bool_ = dtype("bool", np.bool_, BOOL, 0)
uint8 = dtype("uint8", np.uint8, INTEGER, 1)
int8 = dtype("int8", np.int8, INTEGER, 2)
int16 = dtype("int16", np.int16, INTEGER, 3)
int32 = dtype("int32", np.int32, INTEGER, 4)
int64 = dtype("int64", np.int64, INTEGER, 5)
float16 = dtype("float16", np.float16, FLOATING, 6)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOATING, 6)
float32 = dtype("float32", np.float32, FLOATING, 7)
float64 = dtype("float64", np.float64, FLOATING, 8)
complex64 = dtype("complex64", np.complex64, COMPLEX, 9)
complex128 = dtype("complex128", np.complex128, COMPLEX, 10)

_OF_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}
_OF_NUMPY = {d.numpy: d for d in dtype._by_name.values()}


class _Default:
    """Dtype of new floating point tensors."""

    dtype = float32


default = _Default()


def rounded(array: Any, to: dtype) -> Any:
    """Convert an array to another dtype.

    Floats wider than float32 become float16 by way of float32, as in PyTorch and in kernels. So a
    number just beside the middle of two halves is rounded twice.

    >>> rounded(np.array([1 + 2**-11 + 2**-40]), float16).tolist()
    [1.0]
    """
    if to is float16 and array.dtype.kind == "f" and array.dtype.itemsize > 4:
        array = array.astype(np.float32)
    return array.astype(to.numpy)


def element(number: Any, to: np.dtype) -> Any:
    """Return a Python number as a NumPy one, rounded as `rounded` does.

    >>> element(1 + 2**-11 + 2**-40, float16.numpy)
    np.float16(1.0)
    """
    return to.type(np.float32(number)) if to == float16.numpy else to.type(number)


def dtype_of_numpy(numpy_type: Any) -> dtype:
    """Return the dtype of a NumPy dtype; TypeError for those without one here (uint16, object
    ...)."""
    found = _OF_NUMPY.get(np.dtype(numpy_type))
    if found is None:
        known = ", ".join(dtype._by_name)
        raise TypeError(
            f"can't convert np.ndarray of type {np.dtype(numpy_type)}; supported: {known}"
        )
    return found


def asked_dtype(kind: Any) -> Any:
    """Return the dtype that `dtype=kind` means; Python's types of numbers mean those that hold
    them.

    None stays None. TypeError for objects that are no element type.

    >>> asked_dtype(bool), asked_dtype(float)
    (tracejit.bool, tracejit.float64)
    """
    if kind is None or type(kind) is dtype:
        return kind
    found = _OF_PYTHON.get(kind) if isinstance(kind, type) else None
    if found is None:
        if isinstance(kind, dtype):
            raise NotImplementedError(f"tensors of {kind!r} are not supported")
        raise TypeError(f"argument 'dtype' must be tracejit.dtype, not {type(kind).__name__}")
    return found


def get_default_dtype() -> dtype:
    """Return the dtype of new floating point tensors: float32, or that of `set_default_dtype`.

    >>> import tracejit
    >>> tracejit.get_default_dtype()
    tracejit.float32
    """
    return default.dtype


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of new floating point tensors; only floating dtypes are allowed.

    >>> import tracejit
    >>> tracejit.set_default_dtype(tracejit.float32)
    """
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"set_default_dtype: only floating-point types are supported, got {d!r}")
    default.dtype = asked_dtype(d)


def dtype_of_number(value: Any) -> dtype:
    """Return the dtype that a Python number stands for when it meets no tensor."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return default.dtype
    if isinstance(value, complex):
        return complex64 if default.dtype is not float64 else complex128
    raise TypeError(f"expected a number, got {type(value).__name__}")


def promote_types(a: dtype, b: dtype) -> dtype:
    """Return the smallest dtype to which both convert, by PyTorch's table.

    >>> import tracejit
    >>> tracejit.promote_types(tracejit.int64, tracejit.float16)
    tracejit.float16
    """
    a, b = asked_dtype(a), asked_dtype(b)
    if a is b:
        return a
    if a.category != b.category:
        high, low = (a, b) if a.category > b.category else (b, a)
        if high is complex64 and low is float64:
            return complex128
        return high
    if a.category == INTEGER and uint8 in (a, b):
        other = b if a is uint8 else a
        return int16 if other is int8 else other
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.rank > b.rank else b


def result_type(*operands: Any) -> dtype:
    """Return the dtype in which these tensors and numbers, mixed, compute.

    >>> import tracejit
    >>> tracejit.result_type(tracejit.tensor([1], dtype=tracejit.int8), 2.5)
    tracejit.float32
    """
    classes: list[dtype | None] = [None, None, None]  # dimensioned, 0-dim, numbers
    for x in operands:
        if x is None:
            continue
        d = getattr(x, "dtype", None)
        if not isinstance(d, dtype):
            kind, d = 2, dtype_of_number(x)
        else:
            kind = 2 if getattr(x, "is_weak", False) else 0 if len(x.shape) else 1
            if kind == 2 and d.is_floating_point:  # a runtime float counts as a Python float
                d = default.dtype
        seen = classes[kind]
        classes[kind] = d if seen is None else promote_types(seen, d)
    result: dtype | None = None
    for d in classes:
        if d is not None and (result is None or d.category > result.category):
            result = d if result is None else promote_across(result, d)
    if result is None:
        raise TypeError("result_type: expected at least one tensor or number")
    return result


def promote_across(strong: dtype, weak: dtype) -> dtype:
    """Return the dtype of a lower class with a higher category (complex keeps float's width)."""
    if weak.category == COMPLEX and strong.category == FLOATING:
        return complex128 if strong is float64 else complex64
    return weak


def can_cast(source: dtype, target: dtype) -> bool:
    """Return True if a result of `source` may be stored in-place in a tensor of `target`.

    >>> import tracejit
    >>> tracejit.can_cast(tracejit.float32, tracejit.int64)
    False
    """
    source, target = asked_dtype(source), asked_dtype(target)
    return source.category <= target.category and not (
        source.category == INTEGER and target is bool_
    )


def must_cast(source: dtype, target: dtype) -> None:
    """Raise RuntimeError if a result of `source` has no place in a tensor of `target`."""
    if not can_cast(source, target):
        raise RuntimeError(f"result type {SCALAR_NAMES[source.name]} can't be cast to the desired "
                           f"output type {SCALAR_NAMES[target.name]}")


class TensorType(NamedTuple):
    """Type of a tensor, as inference knows it: sizes are ints or symbolic sizes."""

    dtype: dtype
    shape: tuple
    device: Any = None
