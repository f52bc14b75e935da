"""Sums and differences with a factor: add, sub, rsub, addcmul and addcdiv.

In: tensors and numbers. Out: tensors, in the dtype PyTorch's promotion gives. Halves are added in
float32 and rounded once. Their numbers are rounded to halves first, as PyTorch's are.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.fitting import fitting, plain_number, promote_computed
from tracejit.core.ops.older_orders import older_order
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_arithmetic import add_record, no_bools, sub_record
from tracejit.core.ops.pointwise_record import (
    convert,
    is_tensor,
    must_be_tensors,
    pointwise,
    promote_rounded,
)
from tracejit.core.ops.types import (
    FLOATING,
    bfloat16,
    bool_,
    dtype_of_number,
    float16,
    result_type,
)

_add_scaled = pointwise(
    "add_scaled", lambda xp, input, other, alpha: input + alpha * other,
    "({input} + {alpha} * {other})", promote_rounded, methods=(),
    operands=("input", "other", "alpha"), node_name="AddBackward0",
    input=lambda grad: grad,
    other=lambda grad, alpha: grad * alpha)


def _is_half(input: Any, other: Any, alpha: Any) -> bool:
    """Return True if a half times a factor must be computed in float32."""
    plain = type(alpha) in (int, bool, complex) and (alpha == 1 or type(alpha) is not int)
    return not plain and result_type(input, other) in (float16, bfloat16)


def _scaled(input: Any, other: Any, alpha: Any, name: str) -> Any:
    alpha = plain_number(alpha)
    if type(alpha) is int and alpha == 1:
        return other
    if name != "add":
        no_bools(None, (input, other))
    if type(alpha) is not int:
        both = [x.dtype if is_tensor(x) else dtype_of_number(x) for x in (input, other)]
        if type(alpha) is bool and any(d is not bool_ for d in both):
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
        if type(alpha) is bool:
            return other & alpha
        if isinstance(alpha, (float, complex)) and all(d.category < FLOATING for d in both):
            raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                               "point number.")
    if isinstance(alpha, (bool, complex)):
        common = result_type(input, other)
        if isinstance(alpha, complex) and not common.is_complex:
            raise RuntimeError("For non-complex input tensors, argument alpha must not be a "
                               "complex number.")
        if isinstance(alpha, bool) and common is not bool_:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
    elif is_tensor(other) and other.dtype is bool_ and result_type(input, other) is bool_:
        alpha = bool(alpha)
    common = result_type(input, other)
    if is_tensor(other) and other.dtype is not common:
        other = convert(other, common)  # the product would be rounded, or wrap, in a narrower type
    return other * fitting(alpha, common)


@older_order("alpha")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return input + alpha * other of tensors or numbers that broadcast, in the dtype both promote
    to.

    RuntimeError for shapes that do not broadcast.

    >>> import tracejit
    >>> tracejit.add(tracejit.tensor([1., 2.]), 3, alpha=2)
    tensor([7., 8.])
    """
    if _is_half(input, other, alpha):
        return _add_scaled(input, other, fitting(alpha, result_type(input, other)))
    return add_record(input, _scaled(input, other, alpha, "add"))


@older_order("alpha")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return input - alpha * other of tensors or numbers that broadcast, in the dtype both promote
    to.

    RuntimeError for bool tensors and shapes that do not broadcast.

    >>> import tracejit
    >>> tracejit.sub(tracejit.tensor([1., 2.]), 3, alpha=2)
    tensor([-5., -4.])
    """
    if _is_half(input, other, alpha):
        no_bools(None, (input, other))
        return _add_scaled(input, other, fitting(-alpha, result_type(input, other)))
    return sub_record(input, _scaled(input, other, alpha, "sub"))


subtract = sub


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return other - alpha * input of tensors or numbers that broadcast, in the dtype both promote
    to.

    RuntimeError for bool tensors and shapes that do not broadcast.

    >>> import tracejit
    >>> tracejit.rsub(tracejit.tensor([1., 2.]), 3)
    tensor([2., 1.])
    """
    must_be_tensors("rsub", ("input",), (input,))
    return sub(other, input, alpha=alpha)


for _function in (add, sub, subtract):
    method()(_function)
method("subtract")(sub)

_addcmul = pointwise(
    "addcmul", lambda xp, input, tensor1, tensor2, value: input + value * (tensor1 * tensor2),
    "({input} + {value} * ({tensor1} * {tensor2}))", promote_computed, methods=(),
    operands=("input", "tensor1", "tensor2", "value"),
    input=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * (tensor2 * value),
    tensor2=lambda grad, tensor1, value: grad * (tensor1 * value))

_addcdiv = pointwise(
    "addcdiv", lambda xp, input, tensor1, tensor2, value: input + value * (tensor1 / tensor2),
    "({input} + {value} * ({tensor1} / {tensor2}))", promote_computed, methods=(),
    operands=("input", "tensor1", "tensor2", "value"),
    input=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * (value / tensor2),
    tensor2=lambda grad, tensor1, tensor2, value: -grad * (value * tensor1 / (tensor2 * tensor2)))


@autocasts(cuda="widest")
@older_order("value")
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return input + value * tensor1 * tensor2, which broadcast.

    >>> import tracejit
    >>> tracejit.addcmul(tracejit.zeros(2), tracejit.ones(2), tracejit.ones(2), value=3)
    tensor([3., 3.])
    """
    if all(x.dtype is bool_ for x in (input, tensor1, tensor2)):
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
    common, value = result_type(input, tensor1, tensor2), plain_number(value)
    if isinstance(value, float) and common.category < FLOATING:
        value = int(fitting(value, common))
    return _addcmul(input, tensor1, tensor2, value)


@autocasts(cuda="widest")
@older_order("value")
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    """Return input + value * tensor1 / tensor2, which broadcast; RuntimeError for integers, as in
    PyTorch.

    >>> import tracejit
    >>> tracejit.addcdiv(tracejit.zeros(2), tracejit.ones(2), tracejit.full((2,), 2.0))
    tensor([0.5000, 0.5000])
    """
    if all(x.dtype.category < FLOATING for x in (tensor1, tensor2)):
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future  "
                           "release addcdiv will perform a true division of tensor1 and tensor2.")
    return _addcdiv(input, tensor1, tensor2, value)


for _function in (addcmul, addcdiv):
    method()(_function)
