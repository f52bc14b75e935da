"""Arithmetic on shapes whose sizes may be symbolic, asking no more of them than an op depends on.

In: tuples of ints and symbolic sizes. Out: tuples of the same, or the error PyTorch would raise.
Called by every `infer`.

A symbolic size is anything with `.hint` and `.same_as`. `==` on it records a guard, so this file
compares structure first. It uses `==` only where the op's meaning depends on the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tracejit.core.memory.limits import must_fit

Shape = tuple


def is_static(size: Any) -> bool:
    """Return True if a size is a plain int.

    >>> is_static(3)
    True
    """
    return type(size) is int


def hint(size: Any) -> int:
    """Return the example's value of a size; record no guard.

    >>> hint(3)
    3
    """
    return size if type(size) is int else int(getattr(size, "hint", size))


def as_size(value: Any) -> Any:
    """Return an integer argument: ints and symbolic sizes as they are, all else as int.

    TypeError for objects that are no integers.

    >>> as_size(3), as_size(True)
    (3, 1)
    """
    if type(value) is int or isinstance(value, int) and not isinstance(value, bool):
        return value
    if not hasattr(value, "__index__"):
        raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an integer")
    return value.__index__()


def symbolic(size: Any) -> Any:
    """Return the size that stands for an int that differs between calls; sizes as they are.

    >>> symbolic(3)
    3
    """
    return size.as_size() if hasattr(type(size), "as_size") else size


def counted(size: Any) -> Any:
    """Return a size that may be -1 (to be inferred): symbolic only where it is not negative."""
    size = symbolic(size)
    return size if type(size) is int or size >= 0 else int(size)


def is_one(size: Any) -> bool:
    """Return True if a size is known to be 1, by being written or guarded so; record no guard."""
    return size == 1 if type(size) is int else same_structure(size, 1)


def same_structure(a: Any, b: Any) -> bool:
    """Return True if two sizes are known to be equal; record no guard.

    >>> same_structure(2, 2), same_structure(2, 3)
    (True, False)
    """
    if type(a) is int and type(b) is int:
        return a == b
    symbolic, other = (b, a) if type(a) is int else (a, b)
    return symbolic.same_as(other) if hasattr(symbolic, "same_as") else symbolic == other


def equal(a: Any, b: Any) -> bool:
    """Return True if two sizes are equal; guarded where only the example says so."""
    return same_structure(a, b) or bool(a == b)


def same(a: Any, b: Any, what: str | Callable[[], str]) -> Any:
    """Return one of two equal sizes, the static one if any; RuntimeError(`what`) if they differ.

    what  the text, or a function that makes it, where it takes time

    >>> same(3, 3, "sizes differ")
    3
    """
    if not equal(a, b):
        raise RuntimeError(what if isinstance(what, str) else what())
    return a if type(a) is int or type(b) is not int else b


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Return True if two shapes are equal; guarded where only the example says so.

    >>> same_shape((2, 3), (2, 3)), same_shape((2,), (2, 1))
    (True, False)
    """
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))


def known_same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Return True if two shapes are known to be equal; record no guard."""
    return len(a) == len(b) and all(same_structure(x, y) for x, y in zip(a, b))


def numel(shape: Iterable[Any]) -> Any:
    """Return the number of elements, an int or a symbolic size.

    >>> numel((2, 3)), numel(())
    (6, 1)
    """
    total: Any = 1
    for size in shape:
        total = total * size
    return total


def overflows(shape: Sequence[int], itemsize: int) -> bool:
    """Return True if 63 bits cannot count the bytes of so many elements.

    >>> overflows((2, 3), 4), overflows((2**40, 2**40, 0), 4)
    (False, True)
    """
    total = 1
    for size in shape:
        total *= size
        if total >> 64:
            return True
    return total * itemsize >> 63 > 0


def check_storage(shape: Sequence[int], itemsize: int) -> None:
    """Raise RuntimeError if 63 bits cannot count the bytes of so many elements.

    >>> check_storage((2, 3), 4)
    """
    if overflows(shape, itemsize):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={shape_text(shape)}")


def check_memory(shape: Sequence[Any], itemsize: int) -> None:
    """Raise RuntimeError if no memory holds so many elements; skip unknown and symbolic sizes.

    >>> check_memory((2, 3), 4)
    """
    if all(type(size) is int for size in shape):
        nbytes = math.prod(shape) * itemsize
        if nbytes >> 30:
            check_storage(shape, itemsize)
            must_fit(nbytes)


def check_numel(shape: Sequence[int]) -> None:
    """Raise RuntimeError if 63 bits cannot count so many elements.

    >>> check_numel((2, 3))
    """
    if numel(shape) >> 63:
        raise RuntimeError("numel: integer multiplication overflow")


def broadcast(*shapes: Sequence[Any]) -> Shape:
    """Return the common shape of operands, aligned at their last dimensions.

    >>> broadcast((3, 1), (4,))
    (3, 4)

    Raises RuntimeError naming the last dimension that does not fit.
    """
    result: Shape = ()
    for shape in shapes:
        result = _broadcast_two(result, shape) if result else tuple(shape)
    return result


def _broadcast_two(a: Sequence[Any], b: Sequence[Any]) -> Shape:
    if len(a) < len(b):
        longer, shorter, swapped = b, a, True
    else:
        longer, shorter, swapped = a, b, False
    offset = len(longer) - len(shorter)
    sizes = list(longer)
    for k in reversed(range(len(shorter))):
        size = shorter[k]
        found = _broadcast_size(sizes[offset + k], size)
        if found is None:
            x, y = (size, longer[offset + k]) if swapped else (longer[offset + k], size)
            raise RuntimeError(f"The size of tensor a ({hint(x)}) must match the size of tensor b "
                               f"({hint(y)}) at non-singleton dimension {offset + k}")
        sizes[offset + k] = found
    return tuple(sizes)


def _broadcast_size(x: Any, y: Any) -> Any:
    """Return the common size; None if there is none. A literal 1 asks nothing of the other."""
    if type(x) is int and type(y) is int:
        return x if x == y or y == 1 else y if x == 1 else None
    if type(x) is int and x == 1 or type(y) is int and y == 1:
        return y if type(x) is int else x
    if same_structure(x, y) or hint(x) == hint(y) and x == y:
        return x if type(x) is int else y if type(y) is int else x
    if hint(x) == 1 and x == 1:
        return y
    if hint(y) == 1 and y == 1:
        return x
    return None


def check_expanded_dims(shape: Sequence[Any], target: Sequence[Any]) -> int:
    """Count the dimensions of `target` before those of `shape`; RuntimeError if it has fewer."""
    lead = len(target) - len(shape)
    if lead < 0:
        raise RuntimeError(f"expand(tensor{shape_text(shape)}, size={shape_text(target)}): "
                           f"the number of sizes provided ({len(target)}) must be greater or equal "
                           f"to the number of dimensions in the tensor ({len(shape)})")
    return lead


def check_expands(shape: Sequence[Any], target: Sequence[Any]) -> None:
    """Raise RuntimeError if `shape` does not broadcast to exactly `target`."""
    lead = check_expanded_dims(shape, target)
    for k, size in reversed(list(enumerate(shape))):
        if not _expands(size, target[lead + k]):
            raise RuntimeError(
                f"The expanded size of the tensor ({hint(target[lead + k])}) must match the "
                f"existing size ({hint(size)}) at non-singleton dimension {lead + k}.  "
                f"Target sizes: {shape_text(target)}.  Tensor sizes: {shape_text(shape)}")


def _expands(size: Any, target: Any) -> bool:
    if is_one(size) or same_structure(size, target):
        return True
    if hint(size) == 1 and hint(target) != 1:
        return bool(size == 1)
    return bool(size == target)


def normalize_dim(dim: int, ndim: int, wrap_scalar: bool = True) -> int:
    """Count a dimension number from the front; IndexError with PyTorch's text if out of range.

    >>> normalize_dim(-1, 3)
    2

    TypeError for objects that are no integers: a bool there is an argument in the wrong place.
    """
    if isinstance(dim, bool):
        raise TypeError("argument 'dim' must be int, not bool")
    dim, extent = as_size(dim), ndim or (1 if wrap_scalar else 0)
    if not -extent <= dim < extent:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-extent}, "
                         f"{extent - 1}], but got {dim})")
    return int(dim) % extent if extent else 0


def normalize_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Return sorted dimension numbers of None (all), an int or a sequence.

    RuntimeError for duplicates.

    >>> normalize_dims((-1, 0), 3), normalize_dims(None, 2)
    ((0, 2), (0, 1))
    """
    if dims is None or isinstance(dims, (tuple, list)) and not dims:
        return tuple(range(ndim))
    given = [normalize_dim(d, ndim) for d in (dims if isinstance(dims, (tuple, list)) else (dims,))]
    for d in given:
        if given.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(sorted(given)) if ndim else ()


def broadcast_dims(shape: Sequence[Any], target: Sequence[Any]) -> tuple[int, ...]:
    """Return the dimensions along which `target` was repeated to make `shape`.

    >>> broadcast_dims((2, 3, 4), (3, 1))
    (0, 2)

    Sizes that broadcasting showed to be 1 (literal or guarded) answer without a new guard.
    """
    lead = len(shape) - len(target)
    repeated = [lead + k for k, size in enumerate(target)
                if not same_structure(size, shape[lead + k]) and _repeated(shape[lead + k], size)]
    return (*range(lead), *repeated)


def _repeated(size: Any, original: Any) -> bool:
    if is_one(original):
        return True
    return hint(original) == 1 and hint(size) != 1 and bool(original == 1)


def shape_text(shape: Sequence[Any], brackets: str = "[]") -> str:
    """Return a shape as PyTorch's messages print it.

    >>> shape_text((2, 3))
    '[2, 3]'
    """
    return brackets[0] + ", ".join(str(hint(s)) for s in shape) + brackets[1]
