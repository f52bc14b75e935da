"""Losses over class indices: cross_entropy and nll_loss.

In: scores (N, C, ...) and class numbers (N, ...). Out: the weighted mean, the sum, or each
element's loss. The gradient of cross_entropy is written as (softmax - one-hot) times a scale, the
one-hot being a comparison with the class numbers, so that it fuses and nothing but input and
target is kept.
"""

from __future__ import annotations

from typing import Any

from tracejit.ops import shapes
from tracejit.ops.autocast import autocasts
from tracejit.ops.composite import composite, must_float, widened
from tracejit.ops.creation import iota
from tracejit.ops.losses import legacy, reduced
from tracejit.ops.pointwise_logic import where
from tracejit.ops.pointwise_record import convert, must_be_real
from tracejit.ops.record import apply
from tracejit.ops.softmax import log_softmax, softmax
from tracejit.ops.types import FLOATING, SCALAR_NAMES, TensorType, int64


def _class_dim(input: Any) -> int:
    return 0 if len(input.shape) == 1 else 1


def _importance(target: Any, weight: Any, ignore_index: int, d: Any) -> Any:
    """The weight of every element: that of its class, 0 where it is ignored."""
    kept = target != ignore_index
    if weight is None:
        return convert(kept, d)
    flat = where(kept, target, 0).reshape((shapes.numel(tuple(target.shape)),))
    chosen = weight.index_select(0, flat).reshape(tuple(target.shape))
    return where(kept, chosen, 0)


def _picked(scores: Any, target: Any, dim: int, ignore_index: int) -> Any:
    """Each element's score of its own class."""
    safe = where(target != ignore_index, target, 0).unsqueeze(dim)
    return scores.gather(dim, safe).squeeze(dim)


def _along_classes(weight: Any, ndim: int) -> Any:
    """Class weights in the shape (C, 1 ...) that broadcasts with scores."""
    for _ in range(ndim - 2):
        weight = weight.unsqueeze(-1)
    return weight


def _cross_entropy_body(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                        label_smoothing: float) -> Any:
    dim = _class_dim(input)
    scores = log_softmax(widened(input), dim)
    importance = _importance(target, weight, ignore_index, scores.dtype)
    loss = -_picked(scores, target, dim, ignore_index) * importance
    if label_smoothing:
        weighted = scores if weight is None else scores * _along_classes(weight, len(input.shape))
        uniform = where(target != ignore_index, -weighted.sum(dim), 0)
        loss = loss * (1 - label_smoothing) + uniform * (label_smoothing / input.shape[dim])
    if reduction == "mean":
        return convert(loss.sum() / importance.sum(), input.dtype)
    return convert(reduced(loss, reduction), input.dtype)


def _cross_entropy_rule(grad: Any, input: Any, target: Any, weight: Any, ignore_index: int,
                        reduction: str, label_smoothing: float) -> Any:
    dim = _class_dim(input)
    x = widened(input)
    importance = _importance(target, weight, ignore_index, x.dtype)
    scale = _shared(widened(grad), importance) if reduction == "mean" else widened(grad)
    probabilities = softmax(x, dim)
    own = _is_own(input, target, dim)
    slope = where(own, probabilities - 1, probabilities) * importance.unsqueeze(dim)
    if label_smoothing:
        kept = (target != ignore_index).unsqueeze(dim)
        if weight is None:
            uniform = probabilities * input.shape[dim] - 1
        else:
            classes = _along_classes(weight, len(input.shape))
            uniform = probabilities * weight.sum() - classes
        smooth = where(kept, uniform, 0) * (label_smoothing / input.shape[dim])
        slope = slope * (1 - label_smoothing) + smooth
    return slope * (scale.unsqueeze(dim) if reduction == "none" else scale)


def _shared(grad: Any, importance: Any) -> Any:
    """The gradient of each of the terms of a mean; 0 where all of them are ignored."""
    total = importance.sum()
    return where(total == 0, 0, grad / total)


def _is_own(input: Any, target: Any, dim: int) -> Any:
    """A bool tensor like the scores: whether a class is the element's own."""
    classes = _along_classes(iota(input.shape[dim], target), len(input.shape))
    return classes == target.unsqueeze(dim)


def _cross_entropy_type(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                        label_smoothing: float) -> TensorType:
    shape = tuple(target.shape) if reduction == "none" else ()
    return TensorType(input.dtype, shape, input.device)


cross_entropy_record = composite(
    "cross_entropy", ("input", "target", "weight"), _cross_entropy_body, infer=_cross_entropy_type,
    node_name="NllLossBackward0", may_fail=True, input=_cross_entropy_rule)


def _nll_body(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    importance = _importance(target, weight, ignore_index, input.dtype)
    loss = -_picked(input, target, _class_dim(input), ignore_index) * importance
    return loss.sum() / importance.sum() if reduction == "mean" else reduced(loss, reduction)


def _nll_rule(grad: Any, input: Any, target: Any, weight: Any, ignore_index: int,
              reduction: str) -> Any:
    dim = _class_dim(input)
    importance = _importance(target, weight, ignore_index, input.dtype)
    each = _shared(grad, importance) if reduction == "mean" else grad
    return where(_is_own(input, target, dim), (-each * importance).unsqueeze(dim), 0)


nll_loss_record = composite(
    "nll_loss", ("input", "target", "weight"), _nll_body,
    infer=lambda input, target, weight, ignore_index, reduction: TensorType(
        input.dtype, tuple(target.shape) if reduction == "none" else (), input.device),
    may_fail=True, input=_nll_rule)


def _check(input: Any, target: Any, weight: Any, reduction: str) -> None:
    dim = _class_dim(input)
    expected = tuple(s for k, s in enumerate(input.shape) if k != dim)
    given = tuple(target.shape)
    if len(given) == len(input.shape) and shapes.same_shape(given, tuple(input.shape)):
        kind = SCALAR_NAMES[target.dtype.name]
        raise RuntimeError("Expected floating point type for target with class probabilities, got "
                           f"{kind}")
    if len(expected) != len(given) or not len(input.shape):
        raise ValueError(f"Expected target of shape {shapes.shape_text(expected)} for input "
                         f"{shapes.shape_text(tuple(input.shape))}, but got "
                         f"{shapes.shape_text(given)}")
    if not shapes.same_shape(expected, given):
        if len(given) > 1 and shapes.equal(expected[0], given[0]):
            raise RuntimeError(f"Expected target size {shapes.shape_text(expected)}, got "
                               f"{shapes.shape_text(given)}")
        first, second = shapes.hint(input.shape[0]), shapes.hint((*given, 1)[0])
        raise ValueError(f"Expected input batch_size ({first}) to match target batch_size "
                         f"({second}).")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.name} for target")
    if weight is not None and not shapes.same_shape(tuple(weight.shape), (input.shape[dim],)):
        raise RuntimeError("cross_entropy: weight tensor should be defined either for all "
                           f"{shapes.hint(input.shape[dim])} classes or no classes but got weight "
                           f"tensor of shape: {shapes.shape_text(tuple(weight.shape))}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


@autocasts(cpu="float32", cuda="float32")
def cross_entropy(input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """-log_softmax(input) at the class `target` names, or its mean under `target`'s probabilities.

    input (N, C, ...) or (C,); target class numbers (N, ...) or (), or probabilities like `input`;
    weight (C,). "mean" divides by the sum of the weights of the targets' classes.

    >>> import tracejit
    >>> scores = tracejit.tensor([[0., 0.], [0., 0.]])
    >>> tracejit.nn.functional.cross_entropy(scores, tracejit.tensor([0, 1]))
    tensor(0.6931)

    RuntimeError or ValueError if shapes or dtypes do not fit, IndexError for a class out of range.
    """
    must_float("cross_entropy", input.dtype)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError("label_smoothing must be between 0.0 and 1.0. Got: "
                           f"{float(label_smoothing)}")
    reduction = legacy(reduction, size_average, reduce)
    if target.dtype.category == FLOATING:
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    _check(input, target, weight, reduction)
    attributes = {"ignore_index": int(ignore_index), "reduction": reduction,
                  "label_smoothing": float(label_smoothing)}
    return apply(cross_entropy_record, (input, convert(target, int64), weight), attributes)


def _soft_cross_entropy(input: Any, target: Any, weight: Any, reduction: str,
                        label_smoothing: float) -> Any:
    """Targets are probabilities."""
    dim = _class_dim(input)
    if not shapes.same_shape(tuple(input.shape), tuple(target.shape)):
        raise RuntimeError("cross_entropy: probabilities must have the shape of input, got "
                           f"{shapes.shape_text(tuple(target.shape))} and "
                           f"{shapes.shape_text(tuple(input.shape))}")
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / input.shape[dim]
    terms = log_softmax(input, dim) * target
    if weight is not None:
        terms = terms * _along_classes(weight, len(input.shape))
    loss = -terms.sum(dim)
    if reduction == "mean":
        return loss.sum() / shapes.numel(tuple(loss.shape))
    return reduced(loss, reduction)


@autocasts(cpu="float32", cuda="float32")
def nll_loss(input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Any:
    """-input at the class `target` names: `cross_entropy` of logarithms of probabilities."""
    reduction = legacy(reduction, size_average, reduce)
    _check(input, target, weight, reduction)
    must_be_real("\"nll_loss_out_frame\" not implemented for '{}'", (input,))
    attributes = {"ignore_index": int(ignore_index), "reduction": reduction}
    return apply(nll_loss_record, (input, convert(target, int64), weight), attributes)
