"""Losses of pairs, triples and labels with a margin, and of distributions' parameters.

In: predictions and targets; `size_average` and `reduce` are the older spelling of `reduction`. Out:
the mean or sum of the losses, or (`reduction="none"`) each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tracejit.core.ops.activations import logsigmoid
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.control import ErrorOf, raise_if_record
from tracejit.core.ops.losses import checked, legacy, must_become, reduced
from tracejit.core.ops.moments import norm
from tracejit.core.ops.pointwise_arithmetic import not_bool
from tracejit.core.ops.pointwise_logic import clamp_min, where
from tracejit.core.ops.pointwise_math import exp, log, log1p
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.shapes import broadcast, equal, hint, same_shape, shape_text
from tracejit.core.ops.types import SCALAR_NAMES, int64


@autocasts(cpu="float32", cuda="float32")
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Any:  # fmt: skip
    """Compute max(0, -target * (input1 - input2) + margin), `target` being 1 or -1.

    All three have as many dimensions, and broadcast. The result is (), with reduction="none" the
    broadcast shape. RuntimeError for other dimensions.

    >>> import tracejit
    >>> x, y = tracejit.tensor([1.]), tracejit.tensor([3.])
    >>> tracejit.nn.functional.margin_ranking_loss(x, y, tracejit.tensor([1]))
    tensor(2.)
    """
    dims = [len(x.shape) for x in (input1, input2, target)]
    if len(set(dims)) > 1:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {shape_text(input1.shape)}, input2: {shape_text(input2.shape)}, target: "
            f"{shape_text(target.shape)} "
        )
    each = clamp_min(-target * (input1 - input2) + margin, 0)
    return reduced(each, legacy(reduction, size_average, reduce))


@autocasts(cpu="float32", cuda="float32")
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Any:  # fmt: skip
    """Compute `input` where the target is 1, max(0, margin - input) where it is -1.

    Both broadcast; the result is (), with reduction="none" the broadcast shape.

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> F.hinge_embedding_loss(tracejit.tensor([0.2, 0.7]), tracejit.tensor([1, -1]))
    tensor(0.2500)
    """
    far = where(target != 1, clamp_min(margin - input, 0), 0)
    near = where(target != -1, input, 0)
    return reduced(far + near, legacy(reduction, size_average, reduce))


@autocasts(cpu="float32", cuda="float32")
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Any:  # fmt: skip
    """Compute 1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    Inputs are (N, D) for a target (N,), or (D,) for (). The result is (), with reduction="none" the
    target's shape. RuntimeError for other dimensions.

    >>> import tracejit
    >>> x = tracejit.tensor([[1., 0.]])
    >>> F = tracejit.nn.functional
    >>> F.cosine_embedding_loss(x, tracejit.tensor([[0., 1.]]), tracejit.tensor([1]))
    tensor(1.)
    """
    dims = len(target.shape)
    if dims not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not len(input1.shape) == len(input2.shape) == dims + 1:
        raise RuntimeError(
            f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with sizes "
            f"{shape_text(input1.shape)} and {shape_text(input2.shape)}."
        )
    epsilon = 1e-12
    products = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + epsilon) * ((input2 * input2).sum(-1) + epsilon)
    cosine = products / squares.sqrt()
    near = where(target == 1, 1 - cosine, 0)
    far = where(target == -1, clamp_min(cosine - margin, 0), 0)
    return reduced(near + far, legacy(reduction, size_average, reduce))


@autocasts(cpu="float32", cuda="float32")
def soft_margin_loss(input: Any, target: Any, size_average: bool | None = None,
                     reduce: bool | None = None, reduction: str = "mean") -> Any:  # fmt: skip
    """Compute log(1 + exp(-target * input)) in the input's shape and dtype; `target` is 1 or -1.

    The result is (), with reduction="none" the input's shape. RuntimeError for a target that does
    not broadcast to it.

    >>> import tracejit
    >>> tracejit.nn.functional.soft_margin_loss(tracejit.tensor([0.]), tracejit.tensor([1.]))
    tensor(0.6931)
    """
    not_bool(None, (input,))
    shape = broadcast(tuple(input.shape), tuple(target.shape))
    if not same_shape(shape, tuple(input.shape)):
        raise RuntimeError(f"output with shape {shape_text(input.shape)} doesn't match the "
                           f"broadcast shape {shape_text(shape)}")
    must_become(input.dtype, (input, target, 1.0))
    loss = log1p(exp(-convert(target, input.dtype) * input))
    return reduced(loss, legacy(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Any:  # fmt: skip
    """Average the cross entropy of each class by itself over the classes (the last dimension).

    Input and target are (*, C), `weight` (C,). The result is (), with reduction="none" (*).
    IndexError for no dimension.

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> F.multilabel_soft_margin_loss(tracejit.zeros(1, 2), tracejit.tensor([[1., 0.]]))
    tensor(0.6931)
    """
    each = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    each = each if weight is None else each * weight
    if not input.shape:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    each = each.sum(len(input.shape) - 1) / input.shape[-1]
    return reduced(each, legacy(reduction, size_average, reduce))


def _must_have_classes(input: Any) -> None:
    if len(input.shape) > 2 or any(size == 0 for size in input.shape[-1:]):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, "
                           f"but got: {shape_text(input.shape)}")


def _must_be_labels(target: Any) -> None:
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {SCALAR_NAMES[target.dtype.name]}")


@autocasts(cpu="float32", cuda="float32")
def multi_margin_loss(input: Any, target: Any, p: int = 1, margin: float = 1.0,
                      weight: Any = None, size_average: bool | None = None,
                      reduce: bool | None = None, reduction: str = "mean") -> Any:  # fmt: skip
    """Sum max(0, margin - input[y] + input[i])^p over the classes i other than the target y.

    The sum is multiplied by `weight[y]` and divided by the number C of classes. `input` is (N, C)
    or (C,), `target` (N,) or (), `weight` (C,). ValueError for a `p` but 1 and 2, RuntimeError for
    other sizes.

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> F.multi_margin_loss(tracejit.tensor([[0.1, 0.2, 0.4]]), tracejit.tensor([2]))
    tensor(0.5000)
    """
    reduction = checked(legacy(reduction, size_average, reduce))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and len(weight.shape) != 1:
        raise ValueError("weight must be one-dimensional")
    _must_have_classes(input)
    rows = input if len(input.shape) == 2 else input.reshape((1, -1))
    samples, classes = rows.shape
    labels = target.reshape((-1,))
    if len(target.shape) > 1 or labels.shape[0] != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{hint(samples)}], but got "
            f"{shape_text(target.shape)}. Input has shape {shape_text(input.shape)}.")
    if weight is not None and weight.shape[0] != classes:
        raise RuntimeError(f"inconsistent weight size, expected {hint(classes)} but got "
                           f"{shape_text(weight.shape)}")
    _must_be_labels(target)
    outside = ErrorOf(RuntimeError, ("target out of range",))
    raise_if_record(((labels < 0) | (labels >= classes)).any(), error=outside)
    right = rows.gather(1, labels.unsqueeze(1))
    short = clamp_min(margin - right + rows, 0)
    each = short * short if p == 2 else short
    each = each if weight is None else each * weight[labels].unsqueeze(1)
    each = each.scatter(1, labels.unsqueeze(1), 0)
    result = each.sum(1) / classes
    result = result if target.shape else result.squeeze(0)
    return reduced(result, reduction)


@autocasts(cpu="float32", cuda="float32")
def multilabel_margin_loss(input: Any, target: Any, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Any:
    """Sum max(0, 1 - (input[y] - input[i])) over the labels y and all other classes i.

    The sum is divided by the number of classes. `input` is (N, C) or (C,). `target` has the same
    shape: labels up to the first -1.

    RuntimeError for sizes that differ and labels out of range.

    >>> import tracejit
    >>> x, labels = tracejit.tensor([0.1, 0.2, 0.4, 0.8]), tracejit.tensor([3, 0, -1, 1])
    >>> tracejit.nn.functional.multilabel_margin_loss(x, labels)
    tensor(0.8500)
    """
    reduction = checked(legacy(reduction, size_average, reduce))
    shape, found = input.shape, target.shape
    _must_have_classes(input)
    if not same_shape(shape, found):
        raise RuntimeError(f"inconsistent target size: {shape_text(found)} for input of size: "
                           f"{shape_text(shape)}")
    _must_be_labels(target)
    rows = input if len(shape) == 2 else input.reshape((1, -1))
    labels, count = target.reshape(tuple(rows.shape)), rows.shape[1]
    outside = ErrorOf(RuntimeError, ("argument #2 'target' is out of range",))
    raise_if_record(((labels < -1) | (labels >= count)).any(), error=outside)
    # Labels end at the first -1; what follows may be any class, as `given` masks it.
    given = (labels == -1).to(int64).cumsum(1) == 0
    labels = where(given, labels, 0)
    wanted = (labels * 0).scatter_add(1, labels, given.to(int64)) > 0
    short = 1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)
    counted = given.unsqueeze(2) & ~wanted.unsqueeze(1) & (short > 0)  # NaN is not above 0
    each = where(counted, short, 0).sum((1, 2)) / count
    each = each if len(shape) == 2 else each.squeeze(0)
    return reduced(each, reduction)


def _distance(one: Any, other: Any, p: float, eps: float) -> Any:
    return norm(one - other + eps, p, -1)


@autocasts(cpu="float32", cuda="float32")
def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Any:  # fmt: skip
    """Compute max(0, margin + |anchor - positive| - |anchor - negative|) of tensors (N, D) or (D,).

    The distances are p-norms of the last dimension. With `swap` the distance of positive and
    negative counts where it is smaller. ValueError unless `margin` is positive.

    >>> import tracejit
    >>> x = tracejit.zeros(1, 2)
    >>> tracejit.nn.functional.triplet_margin_loss(x, x, x + 0.5)
    tensor(0.2929)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplets(
        anchor, positive, negative, lambda a, b: _distance(a, b, p, eps), margin, swap,
        legacy(reduction, size_average, reduce), "triplet_margin_loss",
    )  # fmt: skip


def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *,
                                      distance_function: Callable[[Any, Any], Any] | None = None,
                                      margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean") -> Any:  # fmt: skip
    """Compute `triplet_margin_loss` with a `distance_function` of two tensors; None: the Euclidean
    distance.

    The three tensors (N, *) have the same number of dimensions. ValueError unless `margin` is
    positive.

    >>> import tracejit
    >>> x = tracejit.zeros(1, 2)
    >>> tracejit.nn.functional.triplet_margin_with_distance_loss(x, x, x + 0.5)
    tensor(0.2929)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or (lambda a, b: _distance(a, b, 2, 1e-6))
    return _triplets(
        anchor, positive, negative, distance, margin, swap, reduction,
        "triplet_margin_with_distance_loss",
    )  # fmt: skip


def _triplets(anchor: Any, positive: Any, negative: Any, distance: Callable[[Any, Any], Any],
              margin: float, swap: bool, reduction: str, name: str) -> Any:  # fmt: skip
    dims = [len(x.shape) for x in (anchor, positive, negative)]
    if len(set(dims)) > 1:
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        other = distance(positive, negative)
        far = where(other < far, other, far)
    return reduced(clamp_min(margin + near - far, 0), reduction)


@autocasts(cpu="float32", cuda="float32")
def poisson_nll_loss(input: Any, target: Any, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8,
                     reduce: bool | None = None, reduction: str = "mean") -> Any:  # fmt: skip
    """Compute the negative log likelihood of counts under a Poisson rate, or under its logarithm.

    log_input  True: exp(input) - target * input; False: input - target * log(input + eps)
    full       True adds Stirling's approximation of log(target!)

    Both broadcast; the result is (), with reduction="none" the broadcast shape.

    >>> import tracejit
    >>> tracejit.nn.functional.poisson_nll_loss(tracejit.tensor([0.]), tracejit.tensor([2.]))
    tensor(1.)
    """
    reduction = checked(legacy(reduction, size_average, reduce))
    each = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        stirling = target * log(target) - target + log(target * (2 * math.pi)) * 0.5
        each = each + where(target > 1, stirling, 0)
    return reduced(each, reduction)


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Any:  # fmt: skip
    """Compute the negative log likelihood of targets under a Gaussian: (log(v) + (input - target)^2
    / v) / 2.

    Its mean is `input` (*), its variance v is `var`, but at least `eps`: of the same shape, without
    the last dimension, or a number. With `full`, add the constant log(2 pi) / 2.

    ValueError where `var` is of no fitting size or has a negative element.

    >>> import tracejit
    >>> F = tracejit.nn.functional
    >>> F.gaussian_nll_loss(tracejit.zeros(2), tracejit.ones(2), tracejit.ones(2))
    tensor(0.5000)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input * 0 + var
    else:
        negative = ErrorOf(ValueError, ("var has negative entry/entries",))
        raise_if_record((var < 0).any(), error=negative)
    shape, found = input.shape, var.shape
    if len(found) == len(shape) - 1 and same_shape(tuple(found), tuple(shape[:-1])):
        var = var.unsqueeze(-1)
    elif len(found) != len(shape) or not all(
        equal(n, 1) or equal(n, m) for n, m in zip(found[-1:], shape[-1:])
    ):
        raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    held = var.detach().clamp(min=eps)
    var = var + (held - var.detach())  # the bound counts as a constant for gradients
    each = (log(var) + (input - target) ** 2 / var) * 0.5
    if full:
        each = each + 0.5 * math.log(2 * math.pi)
    return reduced(each, reduction)
