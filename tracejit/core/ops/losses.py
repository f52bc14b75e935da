"""Loss functions that compare elementwise.

In: predictions and targets of one shape. Out: the mean or sum of the elements' losses, or
(`reduction="none"`) each of them. `classification.py` has those that take class indices.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.activations import logsigmoid
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, widened
from tracejit.core.ops.control import ErrorOf, raise_if_record
from tracejit.core.ops.logarithms import xlogy
from tracejit.core.ops.pointwise_arithmetic import no_bools
from tracejit.core.ops.pointwise_logic import clamp, clamp_min
from tracejit.core.ops.pointwise_math import exp, log, log1p, sigmoid, sign
from tracejit.core.ops.pointwise_record import (
    constant,
    convert,
    device_of,
    is_number,
    is_tensor,
    must_be_real,
    must_be_tensors,
    pointwise,
    promote,
)
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import (
    COMPLEX,
    FLOATING,
    SCALAR_NAMES,
    TensorType,
    bool_,
    must_cast,
    promote_types,
)


def reduced(loss: Any, reduction: str) -> Any:
    """Return the loss tensor, its mean or its sum; ValueError for another `reduction`."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    checked(reduction)
    return loss


def checked(reduction: str) -> str:
    """Return `reduction`; ValueError for other words."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def legacy(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """Return `reduction`, unless the two older arguments say otherwise."""
    if size_average is None and reduce is None:
        return reduction
    meant = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn("size_average and reduce args will be deprecated, please use "
                  f"reduction='{meant}' instead.", stacklevel=4)
    return meant


def loss_record(name: str, element: Op, node_name: str | None = None) -> Op:
    """Make the record of a loss: the values of an elementwise record, times `weight`, reduced.

    Its operands are those of `element`, in one dtype, and `weight` (or None).
    """
    def body(*operands: Any, reduction: str) -> Any:
        *own, weight = operands
        each = element(*own)
        return reduced(each if weight is None else each * weight, reduction)

    def infer(*operands: Any, reduction: str) -> TensorType:
        tensors = [x for x in operands if x is not None and not is_number(x)]
        shape = shapes.broadcast(*[tuple(x.shape) for x in tensors])
        return TensorType(tensors[0].dtype, shape if reduction == "none" else (),
                          device_of(tensors))

    rules: dict[str, Any] = {operand: _rule_of(element, operand) for operand in element.rules}
    return composite(name, (*element.operands, "weight"), body, infer=infer, node_name=node_name,
                     weight=_rule_of(element, None), **rules)


def _rule_of(element: Op, operand: str | None) -> Callable[..., Any]:
    """Make the gradient rule of one operand, or of the weight (None).

    It is each element's gradient, times the element's share of the loss's gradient.
    """
    needs = element.operands if operand is None else element.needs[operand][1:]
    types = tuple(f"{name}_type" for name in ("input", "target", "weight"))
    names = tuple(dict.fromkeys(("grad", "weight", "reduction", *types, *needs)))

    def rule(*values: Any) -> Any:
        found = dict(zip(names, values))
        kinds = [found[name] for name in types if found[name] is not None]
        shape = shapes.broadcast(*[kind.shape for kind in kinds])
        grad = found["grad"]
        if found["reduction"] == "mean":
            grad = convert(widened(grad) / shapes.numel(shape), grad.dtype)
        grad = grad if found["reduction"] == "none" else grad.expand(shape)
        own = [found[name] for name in needs]
        if operand is None:
            return grad * element(*own)
        return element.rules[operand](grad if found["weight"] is None else grad * found["weight"],
                                      *own)

    kind = inspect.Parameter.POSITIONAL_ONLY
    rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names])
    return rule


# PyTorch's kernel names, for its error about complex numbers
_KERNELS = {"mse_loss": "mse_cpu", "huber_loss": "huber_cpu", "smooth_l1_loss": "smooth_l1_cpu",
            "binary_cross_entropy": "binary_cross_entropy",
            "binary_cross_entropy_with_logits": "log_sigmoid_cpu"}  # fmt: skip


def _loss(record: Op, operands: tuple, weight: Any, reduction: str) -> Any:
    """Apply a record to operands in one dtype, halves too: the dtype that they promote to."""
    checked(reduction)
    must_be_real(f"\"{_KERNELS[record.name]}\" not implemented for '{{}}'", operands)
    kinds = [x.dtype for x in operands if is_tensor(x)]
    if all(kind.category < FLOATING for kind in kinds):
        raise NotImplementedError(f"\"{_KERNELS[record.name]}\" not implemented for "
                                  f"'{SCALAR_NAMES[kinds[0].name]}'")
    if any(is_tensor(x) and x.dtype.itemsize == 2 for x in operands):
        operands = tuple(map(constant, operands))  # else runtime numbers round to halves
    return apply(record, promote((*operands, weight)), {"reduction": reduction})


# -- differences -----------------------------------------------------------------------------------
_squared_error = pointwise(
    "squared_error", lambda xp, input, target: xp.square(input - target),
    "(({input} - {target}) * ({input} - {target}))", methods=(), node_name="MseLossBackward0",
    input=lambda grad, input, target: grad * 2 * (input - target),
    target=lambda grad, input, target: grad * -2 * (input - target))

_absolute_error = pointwise(
    "absolute_error", lambda xp, input, target: abs(input - target), "abs({input} - {target})",
    methods=(), check=no_bools, node_name="AbsBackward0",
    input=lambda grad, input, target: grad * sign(input - target),
    target=lambda grad, input, target: grad * sign(target - input))


mse_record = loss_record("mse_loss", _squared_error)


def _broadcast(input: Any, target: Any) -> tuple[Any, Any]:
    """Return both in the dtype that tensors of the broadcast shape promote to: a tensor without
    dimensions counts as well. Warn where one has fewer elements than there are differences."""
    if target.shape == input.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
        "Please ensure they have the same size.", stacklevel=4)
    shapes.broadcast(tuple(input.shape), tuple(target.shape))
    kinds = {input.dtype, target.dtype}
    if len(kinds) > 1 and bool_ not in kinds and 0 in (len(input.shape), len(target.shape)):
        common = promote_types(*kinds)
        return convert(input, common), convert(target, common)
    return input, target


def must_become(kind: Any, operands: Sequence[Any]) -> None:
    """Raise RuntimeError where the dtype that operands promote to does not cast to `kind`."""
    must_cast(promote(tuple(operands))[0].dtype, kind)


def _weighed(each: Any, weight: Any, input: Any, reduction: str, mean: bool = True) -> Any:
    """Multiply the elements' losses by `weight` and reduce them; `mean`: "mean" divides by the
    weights."""
    if not shapes.same_shape(tuple(weight.shape), tuple(input.shape)):
        raise ValueError("Weights and input must have the same size.")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', "
                         "'sum'.")
    loss = each * weight
    weighs = mean and reduction == "mean"
    return loss.sum() / weight.sum() if weighs else reduced(loss, reduction)


@autocasts(cpu="float32", cuda="float32")
def mse_loss(input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Any = None) -> Any:
    """Return (input - target) ** 2; with a `weight` of the input's shape the mean is the weighted
    one.

    >>> import tracejit
    >>> tracejit.nn.functional.mse_loss(tracejit.tensor([1., 2.]), tracejit.tensor([1., 4.]))
    tensor(2.)
    """
    input, target = _broadcast(input, target)
    reduction = legacy(reduction, size_average, reduce)
    if weight is not None:
        return _weighed((input - target) ** 2, weight, input, reduction)
    return _loss(mse_record, (input, target), None, reduction)


@autocasts(cpu="float32", cuda="float32")
def l1_loss(input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Any = None) -> Any:
    """Return |input - target|, which broadcast; `weight` and `reduction` as in `mse_loss`: (), or
    with "none" the broadcast shape.

    >>> import tracejit
    >>> tracejit.nn.functional.l1_loss(tracejit.tensor([1., 2.]), tracejit.tensor([1., 4.]))
    tensor(1.)
    """
    input, target = _broadcast(input, target)
    reduction = legacy(reduction, size_average, reduce)
    is_complex = any(x.dtype.category == COMPLEX for x in (input, target))
    each = abs(input - target) if is_complex else _absolute_error(input, target)
    return reduced(each, reduction) if weight is None else _weighed(each, weight, input, reduction)


def _huber_array(xp: Any, input: Any, target: Any, delta: Any) -> Any:
    z = abs(input - target)
    return xp.where(z < delta, 0.5 * z * z, delta * (z - 0.5 * delta))


_Z = "abs({input} - {target})"
_huber = pointwise(
    "huber_error", _huber_array,
    f"({{dtype}}(0.5) * {_Z} * {_Z} if {_Z} < {{delta}} "
    f"else {{delta}} * ({_Z} - {{dtype}}(0.5) * {{delta}}))",
    methods=(), operands=("input", "target", "delta"),
    input=lambda grad, input, target, delta: grad * clamp(input - target, -delta, delta),
    target=lambda grad, input, target, delta: grad * clamp(target - input, -delta, delta))
huber_record = loss_record("huber_loss", _huber)


@autocasts(cpu="float32")
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0,
               weight: Any = None) -> Any:
    """Return half the squared difference below `delta`, linear beyond, times `weight`.

    Input and target broadcast; the result is (), with reduction="none" the broadcast shape, in the
    input's dtype. RuntimeError unless `delta` > 0. Huber (1964) introduced it.

    >>> import tracejit
    >>> tracejit.nn.functional.huber_loss(tracejit.tensor([0.5, 3.]), tracejit.tensor([0., 0.]))
    tensor(1.3125)
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    kind = input.dtype
    input, target = _broadcast(input, target)
    must_become(kind, (input, target))
    if weight is None:
        return convert(_loss(huber_record, (input, target, delta), None, reduction), kind)
    each = convert(_loss(huber_record, (input, target, delta), None, "none"), kind)
    return _weighed(each, weight, input, reduction, mean=False)


def _smooth_array(xp: Any, input: Any, target: Any, beta: Any) -> Any:
    z = abs(input - target)
    return xp.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta)


_smooth = pointwise(
    "smooth_error", _smooth_array,
    f"({{dtype}}(0.5) * {_Z} * {_Z} / {{beta}} if {_Z} < {{beta}} "
    f"else {_Z} - {{dtype}}(0.5) * {{beta}})",
    methods=(), operands=("input", "target", "beta"),
    input=lambda grad, input, target, beta: grad * clamp((input - target) / beta, -1, 1),
    target=lambda grad, input, target, beta: grad * clamp((target - input) / beta, -1, 1))
smooth_l1_record = loss_record("smooth_l1_loss", _smooth, "SmoothL1LossBackward0")


@autocasts(cpu="float32", cuda="float32")
def smooth_l1_loss(input: Any, target: Any, size_average: bool | None = None,
                   reduce: bool | None = None, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Return `huber_loss` divided by `beta`; with `beta` 0 it is `l1_loss`.

    The result is (), with reduction="none" the broadcast shape. RuntimeError for a negative `beta`.

    >>> import tracejit
    >>> tracejit.nn.functional.smooth_l1_loss(tracejit.tensor([0.5, 3.]), tracejit.tensor([0., 0.]))
    tensor(1.3125)
    """
    reduction = legacy(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    input, target = _broadcast(input, target)
    return _loss(smooth_l1_record, (input, target, beta), None, reduction)


# -- probabilities ---------------------------------------------------------------------------------
def _bce_input(grad: Any, input: Any, target: Any) -> Any:
    return grad * (input - target) / clamp_min((1 - input) * input, 1e-12)


def _bce_array(xp: Any, input: Any, target: Any) -> Any:
    log, log_rest = xp.maximum(xp.log(input), -100), xp.maximum(xp.log1p(-input), -100)
    return (target - 1) * log_rest - target * log


_LOG, _LOG1M = "log({input})", "log1p(-{input})"
_bce = pointwise(
    "binary_cross_entropy_error", _bce_array,
    "(({target} - {dtype}(1)) * "
    f"({{dtype}}(-100) if {_LOG1M} < {{dtype}}(-100) else {_LOG1M}) - "  # NaN stays NaN
    f"{{target}} * ({{dtype}}(-100) if {_LOG} < {{dtype}}(-100) else {_LOG}))",
    methods=(), operands=("input", "target"),
    input=_bce_input,
    target=lambda grad, input: grad * (log1p(-input) - log(input)))

_bce_logits = pointwise(
    "logits_cross_entropy_error",
    lambda xp, input, target: (
        (1 - target) * input + xp.maximum(-input, 0) + xp.log1p(xp.exp(-abs(input)))),
    "(({dtype}(1) - {target}) * {input} + ((-{input}) if {input} < {dtype}(0) else {dtype}(0)) "
    "+ log1p(exp(-abs({input}))))",
    methods=(), operands=("input", "target"),
    input=lambda grad, input, target: grad * (sigmoid(input) - target),
    target=lambda grad, input: grad * -input)


bce_record = loss_record("binary_cross_entropy", _bce)
bce_logits_record = loss_record("binary_cross_entropy_with_logits", _bce_logits)


@autocasts(cpu="float32", cuda="unsafe")
def binary_cross_entropy(input: Any, target: Any, weight: Any = None,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Any:
    """Return -(target log(input) + (1 - target) log(1 - input)); logarithms are at least -100.

    Input and target have the same shape; `weight` broadcasts to it. The result is (), with "none"
    that shape. ValueError for other shapes, RuntimeError for inputs outside [0, 1].

    >>> import tracejit
    >>> tracejit.nn.functional.binary_cross_entropy(tracejit.tensor([0.5]), tracejit.tensor([1.]))
    tensor(0.6931)
    """
    reduction = legacy(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input "
                         f"size ({input.shape}) is deprecated. Please ensure they have the same "
                         "size.")
    if target.dtype is not input.dtype:
        names = [SCALAR_NAMES[x.dtype.name] for x in (target, input)]
        raise RuntimeError("Found dtype {} but expected {}".format(*names))
    must_be_real("\"binary_cross_entropy\" not implemented for '{}'", (input,))
    for name, values in (("input", input), ("target", target)):
        error = ErrorOf(RuntimeError, (f"all elements of {name} should be between 0 and 1",))
        raise_if_record(((values >= 0) & (values <= 1)).all().logical_not(), error=error)
    return _loss(bce_record, (input, target), weight, reduction)


@autocasts(cpu="float32", cuda="float32")
def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Any = None) -> Any:
    """Return `binary_cross_entropy` of sigmoid(input), stable for large inputs; in the target's
    dtype.

    Input and target have the same shape; `weight` and `pos_weight`, a factor of the positive term,
    broadcast to it. The result is (), with "none" that shape. ValueError for other shapes.

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> F.binary_cross_entropy_with_logits(tracejit.tensor([0.]), tracejit.tensor([1.]))
    tensor(0.6931)
    """
    reduction = legacy(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size "
                         f"({input.shape})")
    if input.dtype.category < FLOATING:
        raise NotImplementedError("\"log_sigmoid_cpu\" not implemented for "
                                  f"'{SCALAR_NAMES[input.dtype.name]}'")
    if target.dtype is bool_:
        no_bools(None, (target, True))
    must_become(target.dtype, (input, target))
    if pos_weight is None:
        return convert(_loss(bce_logits_record, (input, target), weight, reduction), target.dtype)
    loss = (1 - target) * input - ((pos_weight - 1) * target + 1) * logsigmoid(input)
    loss = convert(loss if weight is None else loss * weight, target.dtype)
    return reduced(loss, reduction)


@autocasts(cpu="float32", cuda="float32")
def divergence(input: Any, target: Any, reduction: str, log_target: bool) -> Any:
    """Return `kl_div` without its warning."""
    must_be_tensors("kl_div", ("input", "target"), (input, target))
    must_be_real("kl_div: Complex inputs not supported.", (input, target), RuntimeError)
    if input.dtype.category < FLOATING or target.dtype.category < FLOATING:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = exp(target) * (target - input)
    else:
        loss = xlogy(target, target) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.shape else loss.sum()
    return reduced(loss, reduction)


def kl_div(input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Any:
    """Return target * (log(target) - input), `input` being logarithms; "batchmean" is per sample.

    log_target  True: targets are logarithms too

    Both broadcast; the result is (), with "none" the broadcast shape. RuntimeError for integers.

    >>> import tracejit
    >>> log_q = tracejit.tensor([[0.5, 0.5]]).log()
    >>> tracejit.nn.functional.kl_div(log_q, tracejit.tensor([[1., 0.]]), reduction="batchmean")
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.", stacklevel=2)
    return divergence(input, target, reduction, log_target)
