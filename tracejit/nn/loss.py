"""Losses as layers.

In: predictions and targets. Out: a 0-dim tensor, or one of elements with `reduction="none"`. Each
calls the function of `nn.functional` of its name. `weight` is a buffer: it moves with the module.
`size_average` and `reduce` are PyTorch's older spelling of `reduction`, and keep their places.
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.core.ops.linear_cross_entropy import LinearCrossEntropyOptions
from tracejit.core.ops.losses import legacy
from tracejit.nn import functional as F
from tracejit.nn.linear import Linear
from tracejit.nn.module import Module


class _Loss(Module):
    """Base class of losses with a reduction: "mean", "sum" or "none"."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = legacy(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    """Base class of losses with a weight for each class or element."""

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """Mean squared error between inputs and targets: (input - target)^2, in squared units of the
    input.

    reduction         "mean" (default), "sum" or "none"
    size_average, reduce  older spelling of `reduction`; they warn

    Input and target have the same shape (*), or shapes that broadcast, with a warning. The output
    is (), with "none" the broadcast shape. The call raises ValueError for other words.

    >>> import tracejit
    >>> tracejit.nn.MSELoss()(tracejit.tensor([1.0, 2.0]), tracejit.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Mean absolute error between inputs and targets: |input - target|, in the units of the input.

    reduction         "mean" (default), "sum" or "none"
    size_average, reduce  older spelling of `reduction`; they warn

    Input and target have the same shape (*), or shapes that broadcast, with a warning. The output
    is (), with "none" the broadcast shape. The call raises ValueError for other words.

    >>> import tracejit
    >>> tracejit.nn.L1Loss()(tracejit.tensor([1.0, 2.0]), tracejit.tensor([1.0, 4.0]))
    tensor(1.)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared error near 0, absolute error beyond: d^2 / (2 * beta) where |d| < beta, else |d| -
    beta / 2, with d = input - target.

    reduction  "mean" (default), "sum" or "none"
    beta       bound between both parts, in the units of the input; default 1, 0 gives `L1Loss`

    Input and target have the same shape (*); output (), with "none" (*). The call raises
    RuntimeError for a negative beta. The source is Girshick, "Fast R-CNN" (2015).

    >>> import tracejit
    >>> tracejit.nn.SmoothL1Loss()(tracejit.tensor([0.5, 3.0]), tracejit.tensor([0.0, 0.0]))
    tensor(1.3125)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Any:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared error near 0, absolute error beyond: d^2 / 2 where |d| <= delta, else delta * (|d| -
    delta / 2), with d = input - target.

    reduction  "mean" (default), "sum" or "none"
    delta      bound between both parts, in the units of the input; default 1

    Input and target have the same shape (*); output (), with "none" (*). Raises TypeError for a
    delta that is no number; the call raises RuntimeError unless it is positive. The source is
    Huber, "Robust estimation of a location parameter" (1964).

    >>> import tracejit
    >>> tracejit.nn.HuberLoss()(tracejit.tensor([0.5, 3.0]), tracejit.tensor([0.0, 0.0]))
    tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Any:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of target classes: -weight[y] * input[y], `input` being
    log-probabilities.

    weight        (C,): factor of each class, kept as a buffer; None (default) is 1
    ignore_index  class that does not count; default -100
    reduction     "mean" (default) divides by the sum of the weights; "sum" or "none"

    Input (N, C, *) or (C,), floating; target (N, *) or (), int64 from 0 to C - 1. The output is (),
    with "none" as the target. Raises IndexError for a class out of range, ValueError or
    RuntimeError where shapes do not fit.

    >>> import tracejit
    >>> tracejit.nn.NLLLoss()(tracejit.tensor([[-0.5, -1.0]]), tracejit.tensor([1]))
    tensor(1.)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Any:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of targets under the softmax of scores: -log_softmax(input)[y], the mean over a
    batch.

    weight           (C,): factor of each class, kept as a buffer; None (default) is 1
    ignore_index     class that does not count; default -100
    reduction        "mean" (default) divides by the sum of the weights; "sum" or "none"
    label_smoothing  share of the target that is spread over all classes, from 0 to 1; default 0

    Input (N, C, *) or (C,), scores of any size. Target (N, *) or (), int64 from 0 to C - 1, or
    probabilities in the shape of the input. The output is (), with "none" as the class numbers.
    Raises IndexError for a class out of range, ValueError or RuntimeError where shapes do not fit.

    >>> import tracejit
    >>> loss = tracejit.nn.CrossEntropyLoss()
    >>> round(loss(tracejit.zeros(1, 4), tracejit.tensor([2])).item(), 4)
    1.3863
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """Linear layer and `CrossEntropyLoss` of its scores.

    in_features       size of the vectors that are classified
    num_classes       number C of classes
    out_features      the places that each have scores of all classes; () (default) is one place
    bias              True: the linear layer adds one; default False
    reduction, weight, label_smoothing  as in `CrossEntropyLoss`
    ignore_index      a class that does not count; None is -100 where targets are classes
    options           `LinearCrossEntropyOptions`; results do not depend on them

    `linear` holds the parameters: `weight` (C * prod(out_features), in_features). Input (N,
    in_features); target (N, *out_features) of int64. The output is (), with "none" as the target.
    Raises RuntimeError for a `weight` that is not (C,), or smoothing beyond [0, 1].

    >>> import tracejit
    >>> loss = tracejit.nn.LinearCrossEntropyLoss(3, 5)
    >>> loss(tracejit.ones(2, 3), tracejit.tensor([0, 4])).shape
    tracejit.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got "
                               f"{tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError("expected label_smoothing to be in range [0, 1], got "
                               f"{label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias,
                             device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Any, target: Any) -> Any:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: -weight * (y * log(x) + (1 - y) * log(1 - x)).
    Logarithms are at least -100, so that results are finite.

    weight     factor of each element, which broadcasts, kept as a buffer; None (default) is 1
    reduction  "mean" (default), "sum" or "none"

    Input and target have the same shape (*), the same dtype and elements in [0, 1]; output (), with
    "none" (*). Raises ValueError for other shapes, RuntimeError for elements out of range.
    `BCEWithLogitsLoss` is more precise.

    >>> import tracejit
    >>> tracejit.nn.BCELoss()(tracejit.tensor([0.5, 0.9]), tracejit.tensor([1.0, 1.0]))
    tensor(0.3993)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross entropy of the sigmoid of scores, computed without overflow: -weight *
    (pos_weight * y * log(s) + (1 - y) * log(1 - s)), s = sigmoid(x).

    weight      factor of each element, which broadcasts, kept as a buffer; None (default) is 1
    reduction   "mean" (default), "sum" or "none"
    pos_weight  factor of the positive term, which broadcasts: above 1 for better recall; a buffer

    Input and target have the same shape (*); output (), with "none" (*). Targets are in [0, 1].
    Raises ValueError where the shapes differ.

    >>> import tracejit
    >>> tracejit.nn.BCEWithLogitsLoss()(tracejit.zeros(2), tracejit.tensor([0.0, 1.0]))
    tensor(0.6931)
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Any = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Any, target: Any) -> Any:
        return F.binary_cross_entropy_with_logits(
            input, target, weight=self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class NLLLoss2d(NLLLoss):
    """Negative log-likelihood of each pixel's class: `NLLLoss` under its older name for images.

    weight, ignore_index, reduction  as in `NLLLoss`

    Input (N, C, H, W), log-probabilities; target (N, H, W) of int64. The output is (), with "none"
    (N, H, W). Errors are those of `NLLLoss`.

    >>> import tracejit
    >>> classes = tracejit.zeros(1, 1, 1, dtype=tracejit.int64)
    >>> tracejit.nn.NLLLoss2d()(tracejit.full((1, 2, 1, 1), -0.5), classes)
    tensor(0.5000)
    """
