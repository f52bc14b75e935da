"""Losses over class indices: cross_entropy and nll_loss.

In: scores (N, C, ...) and class numbers (N, ...). Out: the weighted mean, the sum, or each
element's loss.

The gradient of cross_entropy is (softmax - one-hot) times a scale. Its one-hot is a comparison with
the class numbers: so it fuses, and only input and target are kept.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, must_float, widened, widened_dtype
from tracejit.core.ops.creation import iota
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.gather_scatter import gather_record
from tracejit.core.ops.losses import checked, legacy, reduced
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.pointwise_record import convert, must_be_tensors
from tracejit.core.ops.record import apply
from tracejit.core.ops.softmax import log_softmax, softmax
from tracejit.core.ops.types import FLOATING, SCALAR_NAMES, TensorType, int64, uint8


def _class_dim(input: Any) -> int:
    return 0 if len(input.shape) == 1 else 1


def _importance(target: Any, weight: Any, ignore_index: int, d: Any) -> Any:
    """Return the weight of each element: that of its class, 0 where it is ignored."""
    kept = target != ignore_index
    if weight is None:
        return convert(kept, d)
    flat = where(kept, target, 0).reshape((shapes.numel(tuple(target.shape)),))
    chosen = weight.index_select(0, flat).reshape(tuple(target.shape))
    return where(kept, chosen, 0)


def _picked(scores: Any, target: Any, dim: int, ignore_index: int) -> Any:
    """Return each element's score of its own class; 0 where it is ignored, even if scores are inf
    or NaN."""
    kept = target != ignore_index
    safe = where(kept, target, 0).unsqueeze(dim)
    return where(kept, gather_record(scores, safe, dim=dim, naming="target").squeeze(dim), 0)


def _along_classes(weight: Any, ndim: int) -> Any:
    """Reshape class weights to (C, 1 ...), which broadcasts with scores."""
    for _ in range(ndim - 2):
        weight = weight.unsqueeze(-1)
    return weight


def _cross_entropy_body(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                        label_smoothing: float) -> Any:
    dim = _class_dim(input)
    scores = log_softmax(widened(input), dim)
    picked = _picked(scores, target, dim, ignore_index)
    importance = _importance(target, weight, ignore_index, scores.dtype)
    loss = -picked * importance
    if label_smoothing:
        weighted = scores if weight is None else scores * _along_classes(weight, len(input.shape))
        uniform = where(target != ignore_index, -weighted.sum(dim), 0)
        loss = loss * (1 - label_smoothing) + uniform * (label_smoothing / input.shape[dim])
    if reduction == "mean":
        return convert(loss.sum() / importance.sum(), input.dtype)
    return convert(reduced(loss, reduction), input.dtype)


def _gradient_body(grad: Any, input: Any, target: Any, weight: Any, ignore_index: int,
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


cross_entropy_backward = composite(
    "cross_entropy_backward", ("grad", "input", "target", "weight"), _gradient_body,
    infer=lambda grad, input, *others, **attributes: TensorType(
        widened_dtype(input.dtype), tuple(input.shape), input.device), fused="whole")


def _cross_entropy_rule(grad: Any, input: Any, target: Any, weight: Any, ignore_index: int,
                        reduction: str, label_smoothing: float) -> Any:
    return cross_entropy_backward(grad, input, target, weight, ignore_index=ignore_index,
                                  reduction=reduction, label_smoothing=label_smoothing)


def _shared(grad: Any, importance: Any) -> Any:
    """Return the gradient of each term of a mean; 0 where all of them are ignored."""
    total = importance.sum()
    return where(total == 0, 0, grad / total)


def _is_own(input: Any, target: Any, dim: int) -> Any:
    """Return a bool tensor like the scores: True for the element's own class."""
    classes = _along_classes(iota(input.shape[dim], target), len(input.shape))
    return classes == target.unsqueeze(dim)


def _cross_entropy_type(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                        label_smoothing: float) -> TensorType:
    shape = tuple(target.shape) if reduction == "none" else ()
    return TensorType(input.dtype, shape, input.device)


cross_entropy_record = composite(
    "cross_entropy", ("input", "target", "weight"), _cross_entropy_body, infer=_cross_entropy_type,
    node_name="NllLossBackward0", may_fail=True, fused="whole", input=_cross_entropy_rule)


def _nll_body(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    picked = _picked(input, target, _class_dim(input), ignore_index)
    importance = _importance(target, weight, ignore_index, input.dtype)
    loss = -picked * importance
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


def _check_shapes(input: Any, target: Any) -> None:
    shape, given = tuple(input.shape), tuple(target.shape)
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) > 1 and not shapes.equal(shape[0], (*given, 0)[0]):
        raise ValueError(f"Expected input batch_size ({shapes.hint(shape[0])}) to match target "
                         f"batch_size ({shapes.hint((*given, 0)[0])}).")
    expected = shape[:1] + shape[2:] if len(shape) > 1 else ()
    if shapes.same_shape(expected, given):
        return
    wanted, found, whole = map(shapes.shape_text, (expected, given, shape))
    if len(shape) < 3 and len(given) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(shape) == 1:
        raise ValueError("For 1D input, 1D target must have size 1, but got target size: "
                         f"{shapes.hint(given[0])}")
    if len(shape) != 4:
        raise RuntimeError(f"Expected target size {wanted}, got {found}")
    if len(given) != 3:
        raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets "
                           f"of dimension: {len(given)}")
    raise RuntimeError(f"size mismatch (got input: {whole} , target: {found}")


def _check(input: Any, target: Any, weight: Any, reduction: str) -> Any:
    """Check arguments as PyTorch does; return `target` as the records take it."""
    checked(reduction)
    if len(input.shape) == 1 and len(target.shape) == 1 and shapes.equal(target.shape[0], 1):
        target = target.reshape(())
    _check_shapes(input, target)
    if weight is not None:
        classes = input.shape[_class_dim(input)]
        if not shapes.same_shape(tuple(weight.shape), (classes,)):
            more = f"{shapes.hint(classes)} classes or no classes but got weight tensor of shape: "
            more = more + shapes.shape_text(weight.shape) if len(input.shape) < 3 else (
                "or no classes")
            raise RuntimeError(f"weight tensor should be defined either for all {more}")
    if target.dtype not in (int64, uint8):
        raise RuntimeError("expected target dtype to be Long or Byte, but got "
                           f"{SCALAR_NAMES[target.dtype.name]}")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError("expected scalar type {} but found {}".format(
            *(SCALAR_NAMES[x.dtype.name] for x in (input, weight))))
    return convert(target, int64)


def _check_tensors(name: str, input: Any, target: Any, weight: Any, ignore_index: Any) -> None:
    must_be_tensors(name, ("input", "target", "weight"),
                    (input, target) if weight is None else (input, target, weight))
    if isinstance(ignore_index, float):
        raise TypeError(f"{name}(): argument 'ignore_index' (position 5) must be int, not float")


_cross_entropy_direct = Direct("fused", "cross_entropy")


@autocasts(cpu="float32", cuda="float32")
def cross_entropy(input: Any, target: Any, weight: Any = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """Return -log_softmax(input) at the class `target` names, or its mean under `target`'s
    probabilities.

    input (N, C, ...) or (C,); target class numbers (N, ...) or (), or probabilities like `input`;
    weight (C,). "mean" divides by the sum of the weights of the targets' classes.

    >>> import tracejit
    >>> scores = tracejit.tensor([[0., 0.], [0., 0.]])
    >>> tracejit.nn.functional.cross_entropy(scores, tracejit.tensor([0, 1]))
    tensor(0.6931)

    RuntimeError or ValueError if shapes or dtypes do not fit, IndexError for a class out of range.
    """
    if size_average is None and reduce is None:
        found = _cross_entropy_direct.direct((input, target, weight), ignore_index, reduction,
                                             label_smoothing)
        if found is not NotImplemented:
            return found
    reduction = legacy(reduction, size_average, reduce)
    _check_tensors("cross_entropy_loss", input, target, weight, ignore_index)
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    label_smoothing = max(label_smoothing, 0.0)
    if shapes.same_shape(tuple(input.shape), tuple(target.shape)):
        return _soft_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    must_float("log_softmax_lastdim_kernel_impl", input.dtype)
    target = _check(input, target, weight, reduction)
    attributes = {"ignore_index": int(ignore_index), "reduction": reduction,
                  "label_smoothing": float(label_smoothing)}
    return apply(cross_entropy_record, (input, target, weight), attributes)


def _soft_cross_entropy(input: Any, target: Any, weight: Any, ignore_index: int, reduction: str,
                        label_smoothing: float) -> Any:
    """Compute `cross_entropy` for targets that are probabilities."""
    if target.dtype.category != FLOATING:
        raise RuntimeError("Expected floating point type for target with class probabilities, got "
                           f"{SCALAR_NAMES[target.dtype.name]}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    dim = _class_dim(input)
    classes = input.shape[dim]
    if weight is not None and not shapes.same_shape(tuple(weight.shape), (classes,)):
        raise RuntimeError("cross_entropy: weight tensor should be defined either for all "
                           f"{shapes.hint(classes)} classes or no classes but got weight tensor of "
                           f"shape: {shapes.shape_text(weight.shape)}")
    must_float("log_softmax_lastdim_kernel_impl", input.dtype)
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
    """Return -input at the class `target` names: `cross_entropy` of logarithms of probabilities.

    input (N, C, *) or (C,), floating; target (N, *) or (), int64; weight (C,). The result is (),
    with "none" as the target. "mean" divides by the sum of the weights of the targets' classes.
    IndexError for a class out of range, ValueError or RuntimeError where shapes do not fit.

    >>> import tracejit
    >>> tracejit.nn.functional.nll_loss(tracejit.tensor([[-0.5, -1.0]]), tracejit.tensor([1]))
    tensor(1.)
    """
    reduction = legacy(reduction, size_average, reduce)
    _check_tensors("nll_loss_nd", input, target, weight, ignore_index)
    target = _check(input, target, weight, reduction)
    frame = "nll_loss_out_frame" if len(input.shape) < 3 else "nll_loss2d_forward_out_frame"
    must_float(frame, input.dtype)
    attributes = {"ignore_index": int(ignore_index), "reduction": reduction}
    return apply(nll_loss_record, (input, target, weight), attributes)
