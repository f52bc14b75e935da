"""Losses of pairs, triples and labels with a margin as layers, and of distributions' parameters.

In: predictions and targets. Out: a 0-dim tensor, or one of elements with `reduction="none"`. Each
calls the function of `nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.distance import PairwiseDistance
from tracejit.nn.loss import _Loss, _WeightedLoss


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of targets from inputs: target * (log(target) - input), `input`
    being log-probabilities.

    reduction   "mean" (default, over elements, warns), "batchmean" (over the batch: the
                divergence), "sum" or "none"
    log_target  True: targets are log-probabilities too; default False

    Input and target have the same shape (N, *), or shapes that broadcast. The output is (), with
    "none" (N, *). Raises RuntimeError for integers. The source is Kullback and Leibler, "On
    information and sufficiency" (1951).

    >>> import tracejit
    >>> log_q = tracejit.tensor([[0.5, 0.5]]).log()
    >>> tracejit.nn.KLDivLoss(reduction="batchmean")(log_q, tracejit.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", log_target: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Any:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class _Margin(_Loss):
    """Base class of losses with a margin."""

    def __init__(
        self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class MarginRankingLoss(_Margin):
    """Loss of pairs in the wrong order: max(0, -target * (input1 - input2) + margin).

    margin     distance that the right order should have, in the units of the inputs; default 0
    reduction  "mean" (default), "sum" or "none"

    Inputs and target have the same shape (*); target 1 wants input1 above input2, -1 below. The
    output is (), with "none" (*). Raises RuntimeError where numbers of dimensions differ.

    >>> import tracejit
    >>> x, y = tracejit.tensor([1.0]), tracejit.tensor([3.0])
    >>> tracejit.nn.MarginRankingLoss()(x, y, tracejit.tensor([1]))
    tensor(2.)
    """

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Margin):
    """Loss of pairs of vectors by their angle: 1 - cos where the target is 1, max(0, cos - margin)
    where it is -1.

    margin     cosine that is small enough, from -1 to 1; default 0
    reduction  "mean" (default), "sum" or "none"

    Inputs (N, D) or (D,); target (N,) or () of 1 and -1. The output is (), with "none" as the
    target. Raises RuntimeError for other dimensions.

    >>> import tracejit
    >>> x = tracejit.tensor([[1.0, 0.0]])
    >>> tracejit.nn.CosineEmbeddingLoss()(x, tracejit.tensor([[0.0, 1.0]]), tracejit.tensor([1]))
    tensor(1.)
    """

    def forward(self, input1: Any, input2: Any, target: Any) -> Any:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Margin):
    """Loss of distances: `input` where the target is 1, max(0, margin - input) where it is -1.

    margin     distance that is large enough, in the units of the input; default 1
    reduction  "mean" (default), "sum" or "none"

    Input (*), a distance; target of the same shape, 1 for similar pairs and -1 for others. The
    output is (), with "none" (*).

    >>> import tracejit
    >>> tracejit.nn.HingeEmbeddingLoss()(tracejit.tensor([0.2, 0.7]), tracejit.tensor([1, -1]))
    tensor(0.2500)
    """

    def __init__(
        self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Any, target: Any) -> Any:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Logistic loss of scores: log(1 + exp(-target * input)).

    reduction         "mean" (default), "sum" or "none"
    size_average, reduce  older spelling of `reduction`; they warn

    Input (*), a score; target of the same shape, 1 or -1. The output is (), with "none" (*). Raises
    RuntimeError where the target does not broadcast to the input's shape.

    >>> import tracejit
    >>> tracejit.nn.SoftMarginLoss()(tracejit.tensor([0.0, 2.0]), tracejit.tensor([1.0, 1.0]))
    tensor(0.4100)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of each class by itself, averaged over the classes: -(y * log(s) + (1 -
    y) * log(1 - s)), s = sigmoid(input).

    weight     (C,): factor of each class, kept as a buffer; None (default) is 1
    reduction  "mean" (default), "sum" or "none"

    Input and target are (N, C) or (C,), the target's elements 0 or 1. The output is (), with "none"
    (N,) or (). Raises IndexError for inputs of no dimension.

    >>> import tracejit
    >>> tracejit.nn.MultiLabelSoftMarginLoss()(tracejit.zeros(1, 2), tracejit.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of classes: sum max(0, margin - input[y] + input[i])^p / C over the classes i
    other than the target y.

    p          power, 1 (default) or 2
    margin     distance that the target's score should have; default 1
    weight     (C,): factor of each target class, kept as a buffer; None (default) is 1
    reduction  "mean" (default), "sum" or "none"

    Input (N, C) or (C,); target (N,) or (), int64 from 0 to C - 1. The output is (), with "none" as
    the target. Raises ValueError for another p or a weight that is no vector.

    >>> import tracejit
    >>> tracejit.nn.MultiMarginLoss()(tracejit.tensor([[0.1, 0.2, 0.4]]), tracejit.tensor([2]))
    tensor(0.5000)
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Any = None,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D "
                "instead"
            )
        self.p, self.margin = p, margin

    def forward(self, input: Any, target: Any) -> Any:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight,
            reduction=self.reduction,
        )  # fmt: skip


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of several labels: sum max(0, 1 - (input[y] - input[i])) / C over labels y and all
    other classes i.

    reduction         "mean" (default), "sum" or "none"
    size_average, reduce  older spelling of `reduction`; they warn

    Input (N, C) or (C,); target of the same shape, int64: labels up to the first -1. The output is
    (), with "none" (N,) or (). Raises RuntimeError for other sizes and labels out of range.

    >>> import tracejit
    >>> x, labels = tracejit.tensor([[0.1, 0.2, 0.4, 0.8]]), tracejit.tensor([[3, 0, -1, 1]])
    >>> round(tracejit.nn.MultiLabelMarginLoss()(x, labels).item(), 4)
    0.85
    """

    def forward(self, input: Any, target: Any) -> Any:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class CTCLoss(_Loss):
    """Connectionist temporal classification: minus the log of the probability that the steps say
    the labels, over all alignments with blanks between.

    blank          class of the blank; default 0
    reduction      "mean" (default, each over its number of labels first), "sum" or "none"
    zero_infinity  True: labels that are too many for the steps cost 0, not inf; default False

    Inputs: `log_probs` (T, N, C) or (T, C), from `LogSoftmax`; `targets` (N, S), or all labels one
    after the other; `input_lengths` and `target_lengths` (N,), tensors or tuples. The output is (),
    with "none" (N,). Raises RuntimeError for lengths and labels that do not fit. The source is
    Graves et al., "Connectionist temporal classification" (2006).

    >>> import tracejit
    >>> log_probs = tracejit.zeros(2, 1, 2).log_softmax(-1)
    >>> tracejit.nn.CTCLoss()(log_probs, tracejit.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any
    ) -> Any:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
            self.zero_infinity,
        )  # fmt: skip


class TripletMarginWithDistanceLoss(_Loss):
    """Loss of triplets: max(0, margin + distance(anchor, positive) - distance(anchor, negative)).

    distance_function  function of two tensors; None (default): the Euclidean distance of the last
                      dimension
    margin            how much farther the negative should be, a positive number; default 1
    swap              True: the distance of positive and negative counts where it is smaller;
                      default False
    reduction         "mean" (default), "sum" or "none"

    Inputs are three tensors (N, *) of the same shape; output (), with "none" as the distances.
    Raises ValueError unless the margin is positive.

    >>> import tracejit
    >>> far = lambda x, y: (x - y).abs().sum(-1)
    >>> loss = tracejit.nn.TripletMarginWithDistanceLoss(distance_function=far)
    >>> loss(tracejit.zeros(1, 2), tracejit.ones(1, 2), tracejit.ones(1, 2))
    tensor(1.)
    """

    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got "
                f"{margin} instead"
            )
        self.distance_function = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


class TripletMarginLoss(_Loss):
    """Loss of triplets: max(0, margin + |anchor - positive| - |anchor - negative|).

    margin     how much farther the negative should be, a positive number; default 1
    p          order of the norm of the last dimension; default 2
    eps        number added to each difference; default 1e-6
    swap       True: the distance of positive and negative counts where it is smaller; default False
    reduction  "mean" (default), "sum" or "none"

    Inputs are three tensors (N, D) or (D,) of the same shape; output (), with "none" (N,) or ().
    Raises ValueError unless the margin is positive. The source is Balntas et al., "Learning shallow
    convolutional feature descriptors with triplet losses" (2016).

    >>> import tracejit
    >>> x = tracejit.zeros(1, 2)
    >>> tracejit.nn.TripletMarginLoss()(x, x, x + 0.5)
    tensor(0.2929)
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Any:
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
            swap=self.swap, reduction=self.reduction,
        )  # fmt: skip


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under a Poisson distribution: exp(input) - target * input.

    log_input  True (default): inputs are logarithms of rates; False: rates, in input - target *
               log(input + eps)
    full       True: add Stirling's approximation of log(target!); default False
    eps        number that keeps the logarithm finite; default 1e-8
    reduction  "mean" (default), "sum" or "none"

    Input and target have the same shape (*), or shapes that broadcast. The output is (), with
    "none" the broadcast shape. Raises ValueError for another `reduction`.

    >>> import tracejit
    >>> tracejit.nn.PoissonNLLLoss()(tracejit.tensor([0.0]), tracejit.tensor([2.0]))
    tensor(1.)
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: bool | None = None,
        eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Any, target: Any) -> Any:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
            reduction=self.reduction,
        )  # fmt: skip


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of targets under a Gaussian: (log(v) + (input - target)^2 / v) / 2,
    where v = max(var, eps).

    full       True: add the constant log(2 pi) / 2; default False
    eps        least variance, a number; default 1e-6
    reduction  "mean" (default), "sum" or "none"

    Input (*), the mean; target of the same shape; var (*), with the last size left out or 1, or a
    number. The output is (), with "none" (*). Raises ValueError for another `var` or a negative
    element. The source is Nix and Weigend, "Estimating the mean and variance of the target
    probability distribution" (1994).

    >>> import tracejit
    >>> tracejit.nn.GaussianNLLLoss()(tracejit.zeros(2), tracejit.ones(2), tracejit.ones(2))
    tensor(0.5000)
    """

    def __init__(
        self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Any, target: Any, var: Any) -> Any:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )
