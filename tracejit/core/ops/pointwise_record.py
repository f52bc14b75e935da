"""Elementwise ops: the helper that builds a record from a few lines, promotion, and casts.

In: names, NumPy functions, kernel expressions and gradient rules from `pointwise_arithmetic.py`,
`pointwise_math.py` and `pointwise_logic.py`. Out: records of kind "pointwise", which broadcast
their operands and promote them as PyTorch does.

Explicit `convert` nodes convert tensors of another dtype, so that a record's tensor operands share
one dtype. Python numbers stay numbers, typed by that dtype wherever the op runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.core.ops import overriding, shapes
from tracejit.core.ops.numpy_names import names_among, renamed
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.record import Elsewhere, Op, apply
from tracejit.core.ops.types import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    SCALAR_NAMES,
    TensorType,
    asked_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    dtype_of_number,
    element,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    result_type,
    rounded,
    uint8,
)

_CATEGORY = {bool: BOOL, int: INTEGER, float: FLOATING, complex: COMPLEX}
NO_TENSOR = "expected at least one tensor among the operands"
_HALVES = (float16.numpy, bfloat16.numpy)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 64) - 1


def is_tensor(x: Any) -> bool:
    """Return True for a tensor (eager, deferred, a graph's value, a runtime number)."""
    return isinstance(x, Operators) or hasattr(type(x), "dispatch") and x.dtype is not None


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex, np.number, np.bool_))


def decisive(x: Any, *special: float) -> Any:
    """Return an operand as eager mode needs it, to compute in Python or to choose a formula.

    A runtime number says if it is one of the `special` values, or if it is a constant of the
    program.
    """
    ask = getattr(type(x), "specialize_if_in", None)
    return x if ask is None else ask(x, special)


def constant(x: Any) -> Any:
    """Return a runtime number as a constant of the program."""
    return x.concretize() if hasattr(type(x), "specialize_if_in") else x


def in_a_word(x: Any) -> Any:
    """Return an operand; where no int64 holds a runtime int, its value: no program holds it."""
    ask = getattr(type(x), "in_a_word", None)
    return x if ask is None else ask(x)


# -- promotion -------------------------------------------------------------------------------------
def promote(operands: Sequence[Any], mixed: Callable[..., tuple] | None = None) -> tuple:
    """Bring operands to one dtype: convert tensors, coerce numbers to its kind (integers wrap).

    mixed  converts tensors of different dtypes to the common one; None: `_promote_mixed`
    """
    common = None
    highest = -1  # category of the numbers
    for x in operands:
        category = _CATEGORY.get(type(x))
        if category is None:
            d = getattr(x, "dtype", None)
            if type(d) is dtype:
                if common is None:
                    common = d
                elif d is not common:
                    return (mixed or _promote_mixed)(operands, common_dtype(operands))
                continue
            if x is None:
                continue
            category = dtype_of_number(x).category
        highest = max(highest, category)
    if common is None or highest > common.category:
        return _promote_mixed(operands, common_dtype(operands))
    if highest < 0:
        return tuple(operands)
    return tuple([x if x is None or type(getattr(x, "dtype", None)) is dtype else coerce(x, common)
                  for x in operands])


def promote_float(operands: Sequence[Any]) -> tuple:
    """Promote as `promote` does, to the default dtype where the common one is not floating."""
    first = getattr(operands[0], "dtype", None)
    if len(operands) == 1 and type(first) is dtype and first.category >= FLOATING:
        return (operands[0],)
    common = common_dtype(operands)
    return _promote_mixed(operands, common if common.category >= FLOATING else get_default_dtype())


def _promote_mixed(operands: Sequence[Any], common: dtype) -> tuple:
    """Promote to `common`; runtime numbers beside halves keep what float32 holds, as numbers do."""
    if common.numpy not in _HALVES:
        return promote_to(operands, common)
    operands = [decisive(x) for x in operands]  # gradient rules compute with them, too
    return tuple(convert(x, float32) if getattr(x, "is_weak", False) else y
                 for x, y in zip(operands, promote_to(operands, common), strict=True))


def promote_rounded(operands: Sequence[Any]) -> tuple:
    """Promote as `promote` does, but round numbers beside halves to halves: additions do so."""
    found = promote(operands)
    for x in found:
        if type(x) is float:
            return _rounded_beside_halves(operands, found)
    if len(found) == 2 and getattr(found[0], "dtype", None) is getattr(found[1], "dtype", None):
        return found
    return _rounded_beside_halves(operands, found)


def _rounded_beside_halves(operands: Sequence[Any], found: tuple) -> tuple:
    common = common_dtype(operands)
    if common.numpy not in _HALVES:
        return found
    if any(getattr(x, "is_weak", False) for x in operands):
        operands = promote_to(operands, common)
        found = operands
    return tuple(float(element(x, common.numpy)) if type(x) is float else x for x in found)


def _wide_factors(operands: Sequence[Any], common: dtype) -> tuple:
    """Promote as `_promote_mixed`; a float without dimensions keeps what float32 holds of it."""
    found = _promote_mixed(operands, common)
    if common.numpy not in _HALVES:
        return found
    return tuple(convert(x, float32) if is_tensor(x) and not x.shape
                 and x.dtype.category == FLOATING and x.dtype.itemsize > 2 else y
                 for x, y in zip(operands, found, strict=True))


promote_factors = functools.partial(promote, mixed=_wide_factors)


def common_dtype(operands: Sequence[Any]) -> dtype:
    """Return the dtype of the computation. Runtime numbers alone keep their own width."""
    tensors = [x for x in operands if is_tensor(x)]
    if tensors and all(getattr(x, "is_weak", False) for x in tensors):
        common = tensors[0].dtype
        for x in operands:
            if x is not None and not is_tensor(x) and dtype_of_number(x).category > common.category:
                common = float64 if isinstance(x, float) else dtype_of_number(x)
            elif is_tensor(x):
                common = promote_types(common, x.dtype)
        return common
    return result_type(*operands)


def promote_to(operands: Sequence[Any], target: dtype) -> tuple:
    """Convert tensors to `target`, coerce numbers."""
    return tuple(x if x is None else convert(x, target) if is_tensor(x) else coerce(x, target)
                 for x in operands)


def coerce(number: Any, target: dtype) -> Any:
    """Return a Python number of the target's kind. Symbolic sizes stay themselves, but wrap."""
    if isinstance(number, (np.number, np.bool_)):
        number = number.item()
    if type(number) not in _CATEGORY:
        narrow = target.category == INTEGER and target.itemsize <= 2
        return _wrapped(number, target) if narrow and hasattr(number, "same_as") else number
    if type(number) is int:
        in_64_bits(number)
    if type(number) is complex and target.category < COMPLEX:
        number = _without_imaginary(number, target)
    if target.category == FLOATING:
        return float(number)
    if target is bool_:
        return bool(number)
    if target.category == COMPLEX:
        return complex(number)
    return _wrapped(int(number), target)


_C_NAMES = {"float32": "float", "float64": "double", "float16": "at::Half",
            "bfloat16": "c10::BFloat16", "int64": "int64_t", "int32": "int", "int16": "short",
            "int8": "signed char", "uint8": "unsigned char", "bool": "bool"}  # fmt: skip


def _without_imaginary(number: complex, target: dtype) -> float:
    if number.imag != 0 and target is not bool_:
        raise RuntimeError(f"value cannot be converted to type {_C_NAMES[target.name]} without "
                           "overflow")
    return number.real if target is not bool_ else number != 0


def _wrapped(number: Any, target: dtype) -> Any:
    """Return an integer, wrapped to the target's bits."""
    bits = 8 * target.itemsize
    if target is uint8:
        return number % (1 << bits)
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def beyond_int64(x: Any) -> bool:
    """Return True if x is an int that no int64 holds."""
    return type(x) is int and not -(1 << 63) <= x < 1 << 63


def in_64_bits(number: int) -> int:
    """Return `number`; OverflowError if neither a signed nor an unsigned word of 64 bits holds it.

    >>> in_64_bits(2**63)
    9223372036854775808
    """
    if number > _HIGHEST:
        raise OverflowError("int too big to convert")
    if number < _LOWEST:
        raise OverflowError("can't convert negative int to unsigned")
    return number


def representable(operands: Sequence[Any]) -> tuple:
    """Promote as `promote` does, and round numbers to the common dtype: comparisons see them so."""
    if any(getattr(x, "is_weak", False) for x in operands):
        return promote_to(operands, common_dtype(operands))
    operands = promote(operands)
    if any(type(x) is float for x in operands):
        common = dtype_among(*operands)
        if common is float16 or common is bfloat16:
            return tuple(float(element(x, common.numpy)) if type(x) is float else x
                         for x in operands)
    return operands


_PROMOTIONS: dict[str, Callable[[Sequence[Any]], tuple]] = {
    "default": promote,
    "float": promote_float,
    "compare": representable,
    "predicate": promote,
}


# -- records ---------------------------------------------------------------------------------------
def pointwise(name: str, eager: str | Callable[..., Any], scalar: str | None = None,
              promotion: str | Callable[[Sequence[Any]], tuple] = "default", *,
              operands: Sequence[str] = (), methods: Sequence[str] | None = None,
              result: dtype | None = None, check: Callable[[Op, tuple], None] | None = None,
              tensors: Sequence[str] = (), node_name: str | None = None, fast: str = "",
              fused: str = "",
              **rules: Callable[..., Any]) -> Op:
    """Build the record of an elementwise op and hang it on `Operators` as a method.

    eager      name of a NumPy function, or (xp, *arrays) -> array; halves come as float32
    scalar     the kernel expression, e.g. "tanh({input})"; operands in order of appearance
    promotion  default | float (integers become floating) | compare (bool result, numbers rounded) |
               predicate (bool result), or a function of the operands
    methods    names of methods; None: the op's own name
    result     dtype of the result, where it is not the operands'
    check      (op, operands) -> None, raises for dtypes the op does not take
    tensors    operands that may not be numbers, from the first on
    fast       the kind of function that computes small plain calls (`Op.fast`)
    fused      how eager mode runs it as one compiled program (`Op.fused`)
    rules      operand name -> gradient rule
    """
    if not operands:
        fields = [text.partition("}")[0] for text in (scalar or "").split("{")[1:]]
        operands = tuple(dict.fromkeys(f for f in fields if f != "dtype"))
    prepare = _PROMOTIONS[promotion] if isinstance(promotion, str) else promotion
    if promotion in ("compare", "predicate"):
        result = bool_

    def front(given: tuple, attributes: dict) -> tuple[tuple, dict]:
        if attributes:
            given, attributes = _by_name(op, given, attributes)
        if len(given) != len(op.operands):
            raise TypeError(f"{name}() takes {len(op.operands)} arguments "
                            f"({', '.join(op.operands)}), got {len(given)}")
        if tensors:
            must_be_tensors(name, tensors, given)
        if check is not None:
            check(op, given)
        return prepare(given), attributes

    op = Op(name, "pointwise", tuple(operands), infer=elementwise_type(result),
            eager=in_float32(eager, result), rules=rules, scalar=scalar, node_name=node_name,
            front=front, fast=fast, fused=fused)
    for spelling in (name,) if methods is None else methods:
        method(spelling)(op)
    return op


def dtype_among(*operands: Any) -> dtype:
    """Return the dtype of the first tensor; TypeError if there is none."""
    for x in operands:
        if is_tensor(x):
            found: dtype = x.dtype
            return found
    raise TypeError(NO_TENSOR)


def must_be_tensors(name: str, operands: Sequence[str], given: Sequence[Any]) -> None:
    """Raise TypeError if one of the first operands is a number.

    A runtime number may stand for a first operand, where there are several.
    """
    for k, (operand, x) in enumerate(zip(operands, given), 1):
        if not is_tensor(x) or len(operands) > 1 and getattr(x, "is_weak", False):
            raise TypeError(f"{name}(): argument '{operand}' (position {k}) must be Tensor, not "
                            f"{type(x).__name__}")


def _by_name(op: Op, given: tuple, attributes: dict) -> tuple[tuple, dict]:
    """Put operands passed by keyword in their places."""
    named = [n for n in op.operands[len(given):] if n in attributes]
    if len(named) != len(attributes):
        renaming = renamed(attributes, names_among(op.operands))
        if renaming.keys() != attributes.keys():
            return _by_name(op, given, renaming)
        unknown = next(n for n in attributes if n not in named)
        raise TypeError(f"{op.name}() got an unexpected keyword argument '{unknown}'")
    return (*given, *(attributes[n] for n in named)), {}


def real_only(message: str, error: type[Exception] = NotImplementedError,
              first: Callable[[Op, tuple], None] | None = None) -> Callable[[Op, tuple], None]:
    """Make a check that refuses complex operands, after the check `first`.

    `{}` in the message is PyTorch's name of their dtype.
    """
    def check(op: Op, operands: tuple) -> None:
        if first is not None:
            first(op, operands)
        must_be_real(message, operands, error)

    return check


def must_be_real(message: str, operands: Sequence[Any],
                 error: type[Exception] = NotImplementedError) -> None:
    """Raise `error` if an operand is complex."""
    for x in operands:
        d = getattr(x, "dtype", None)
        if d.category == COMPLEX if type(d) is dtype else isinstance(x, complex):
            raise error(message.format(SCALAR_NAMES[result_type(*operands).name]))


def elementwise_type(result: dtype | None) -> Callable[..., TensorType]:
    """Make the `infer` of an op that broadcasts operands of one dtype; `result`: another dtype."""
    def infer(*operands: Any) -> TensorType:
        tensors = [x for x in operands if is_tensor(x) or type(x) is TensorType]
        for x in tensors:
            if hasattr(type(x), "sparse_product"):
                raise Elsewhere(x.dispatch)
        if not tensors:
            raise TypeError(NO_TENSOR)
        shape = shapes.broadcast(*[x.shape for x in tensors])
        return TensorType(result or _shared_dtype(tensors), shape, device_of(tensors))

    return infer


def _shared_dtype(tensors: Sequence[Any]) -> dtype:
    """Return the dtype of operands: halves before the float32 of runtime numbers among them."""
    first = tensors[0].dtype
    if first is float32:
        return next((x.dtype for x in tensors if x.dtype.numpy in _HALVES), first)
    return first


def device_of(tensors: Sequence[Any]) -> Any:
    """Return the device of a result: tensors with dimensions must share one, 0-dim ones may differ.

    A runtime number, or a constant of a graph, has none (None) and goes along with any.
    """
    placed = [x for x in tensors if x.device is not None] or tensors
    placed = [x for x in placed if len(x.shape)] or placed
    for x in placed[1:]:
        if x.device != placed[0].device:
            raise RuntimeError("Expected all tensors to be on the same device, but found at least "
                               f"two devices, {placed[0].device} and {x.device}!")
    return placed[0].device


def in_float32(eager: str | Callable[..., Any], result: dtype | None) -> Callable[..., Any]:
    """Return the array function of a record; halves compute in float32 and are rounded once."""
    if isinstance(eager, str):
        numpy_function = getattr(np, eager)
        attribute: str = eager

        def function(xp: Any, *arrays: Any) -> Any:
            return (numpy_function if xp is np else getattr(xp, attribute))(*arrays)
    else:
        function = eager

    def run(xp: Any, *arrays: Any, **attributes: Any) -> Any:
        for a in arrays:
            d = getattr(a, "dtype", None)
            if d is not None and d.itemsize == 2 and d in _HALVES:
                wide = [x.astype(np.float32) if hasattr(x, "astype") and x.dtype == d else x
                        for x in arrays]
                out = function(xp, *wide, **attributes)
                return out if result is bool_ else out.astype(d)
        return function(xp, *arrays, **attributes)

    return run


# -- casts -----------------------------------------------------------------------------------------
def _cast_type(input: Any, dtype: dtype) -> TensorType:
    return TensorType(dtype, tuple(input.shape), input.device)


def _real_part(input: Any, dtype: dtype) -> Any:
    """Return the part that NumPy may convert to `dtype` without a warning."""
    return input.real if input.dtype.kind == "c" and dtype.category < COMPLEX else input


def _cast_array(xp: Any, input: Any, dtype: dtype) -> Any:
    part = _real_part(input, dtype)
    to = dtype.numpy
    if xp is not np and part.dtype.kind not in "iub" and to.kind in "iu" and to.itemsize < 8:
        part = part.astype(np.int64)  # a GPU stops at the ends of the range, a CPU wraps around
    return rounded(part, dtype)


cast = Op("convert", "pointwise", ("input",), infer=_cast_type,
          eager=_cast_array,
          scalar="{dtype}({input})", node_name="ToCopyBackward0",
          rules={"input": lambda grad, input_type: convert(grad, input_type.dtype)})

copy = Op("clone", "pointwise", ("input",), infer=elementwise_type(None),
          eager=lambda xp, input: input.copy(), scalar="{input}",
          rules={"input": lambda grad: grad})

stop_gradient = Op("stop_gradient", "pointwise", ("input",), infer=elementwise_type(None),
                   eager=lambda xp, input: input.copy(), scalar="{input}")

nonzero_test = Op("truth", "pointwise", ("input",), infer=elementwise_type(bool_),
                  eager=lambda xp, input: input.astype(bool), scalar="({input} != 0)")


def convert(input: Any, dtype: dtype) -> Any:
    """Return `input` in `dtype`: itself if it has that dtype already.

    >>> import tracejit
    >>> convert(tracejit.tensor([1, 2]), tracejit.float32)
    tensor([1., 2.])
    """
    if input.dtype is dtype:
        return input
    dtype = asked_dtype(dtype)
    if input.dtype is dtype:
        return input
    if dtype is bool_:
        return apply(nonzero_test, (input,), {})
    return apply(cast, (input,), {"dtype": dtype})


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """Copy `input` to memory of its own, in the same shape and dtype; gradients flow through.

    >>> import tracejit
    >>> tracejit.clone(tracejit.tensor([1.0]))
    tensor([1.])
    """
    try:
        return copy(input)
    except Exception:
        return overriding.instead(clone, (input,), {})


def type_as(self: Any, other: Any) -> Any:
    """Return `self` in the dtype of `other`."""
    return convert(self, other.dtype)


def resolve_conj(input: Any) -> Any:
    """Return `input`, of any shape: conjugation is never pending.

    >>> import tracejit
    >>> tracejit.resolve_conj(tracejit.tensor([1j]))
    tensor([0.+1.j])
    """
    return input


def resolve_neg(input: Any) -> Any:
    """Return `input`, of any shape: negation is never pending.

    >>> import tracejit
    >>> tracejit.resolve_neg(tracejit.tensor([1.0]))
    tensor([1.])
    """
    return input


def _converting(target: dtype) -> Callable[[Any], Any]:
    def call(self: Any, *, memory_format: Any = None) -> Any:
        return convert(self, target)

    call.__doc__ = f"""Return `self` in {target.name}, the same shape; itself if it has that dtype.

    Fractions are cut off where integers take numbers, and gradients flow between floating dtypes.

    >>> import tracejit
    >>> tracejit.tensor([0, 3]).to(tracejit.{target.name}).dtype
    tracejit.{target.name}
    """
    return call


method("clone")(clone)
method("type_as")(type_as)
method("resolve_conj")(resolve_conj)
method("resolve_neg")(resolve_neg)
for _spelling, _target in {
    "float": float32, "double": float64, "half": float16, "bfloat16": bfloat16, "int": int32,
    "long": int64, "short": int16, "char": int8, "byte": uint8, "bool": bool_,
    "cfloat": complex64, "cdouble": complex128,
}.items():
    method(_spelling)(_converting(_target))
