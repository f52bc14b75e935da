"""Losses as PyTorch's package itself has them: `reduction` is a number, and stands elsewhere.

In: predictions and targets. Reduction 1 is the mean, 2 the sum, 0 each loss. 0 is also the default,
whatever PyTorch's own schemas say. Out: losses. Called by users as `tracejit.kl_div` and so on.
TypeError for a reduction that is no int.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import ctc, losses, margin_losses


def _named(reduction: Any, name: str, position: int) -> Any:
    """Return the reduction as `nn.functional` names it."""
    if isinstance(reduction, bool) or not isinstance(reduction, int):
        raise TypeError(f"{name}(): argument 'reduction' (position {position}) must be int, not "
                        f"{type(reduction).__name__}")
    return {1: "mean", 2: "sum"}.get(reduction, "none")


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: int = 0, zero_infinity: bool = False) -> Any:
    """Call `nn.functional.ctc_loss` of (T, N, C): (N,), or a 0-dim tensor with `reduction` 1 (mean)
    or 2 (sum).

    >>> import tracejit
    >>> log_probs = tracejit.zeros(2, 1, 2).log_softmax(-1)
    >>> tracejit.ctc_loss(log_probs, tracejit.tensor([[1]]), (2,), (1,))
    tensor([0.2877])
    """
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                        _named(reduction, "ctc_loss", 6), zero_infinity)


def kl_div(input: Any, target: Any, reduction: int = 0, *, log_target: bool = False) -> Any:
    """Call `nn.functional.kl_div`: the shapes broadcast; `reduction` is 0 (none), 1 (mean) or 2
    (sum).

    >>> import tracejit
    >>> tracejit.kl_div(tracejit.zeros(2), tracejit.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3863])
    """
    return losses.divergence(input, target, _named(reduction, "kl_div", 3), log_target)


def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None,
                                     pos_weight: Any = None, reduction: int = 0) -> Any:
    """Call `nn.functional.binary_cross_entropy_with_logits` of two tensors of the same shape.

    `reduction` is 0 (none), 1 (mean) or 2 (sum).

    >>> import tracejit
    >>> tracejit.binary_cross_entropy_with_logits(tracejit.zeros(2), tracejit.ones(2))
    tensor([0.6931, 0.6931])
    """
    named = _named(reduction, "binary_cross_entropy_with_logits", 5)
    return losses.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight,
                                                   reduction=named)


def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0,
                        reduction: int = 0) -> Any:
    """Call `nn.functional.margin_ranking_loss`: the shapes broadcast.

    `reduction` is 0 (none), 1 (mean) or 2 (sum).

    >>> import tracejit
    >>> x, y = tracejit.tensor([1.]), tracejit.tensor([3.])
    >>> tracejit.margin_ranking_loss(x, y, tracejit.tensor([1]))
    tensor([2.])
    """
    return margin_losses.margin_ranking_loss(input1, input2, target, margin,
                                             reduction=_named(reduction, "margin_ranking_loss", 5))


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 0) -> Any:
    """Call `nn.functional.hinge_embedding_loss`: the shapes broadcast.

    `reduction` is 0 (none), 1 (mean) or 2 (sum).

    >>> import tracejit
    >>> tracejit.hinge_embedding_loss(tracejit.tensor([0.2, 0.7]), tracejit.tensor([1, -1]))
    tensor([0.2000, 0.3000])
    """
    named = _named(reduction, "hinge_embedding_loss", 4)
    return margin_losses.hinge_embedding_loss(input, target, margin, reduction=named)


def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0,
                          reduction: int = 0) -> Any:
    """Call `nn.functional.cosine_embedding_loss` of (N, D), (N, D) and (N,).

    `reduction` is 0 (none), 1 (mean) or 2 (sum).

    >>> import tracejit
    >>> x = tracejit.tensor([[1., 0.]])
    >>> tracejit.cosine_embedding_loss(x, x, tracejit.tensor([1]))
    tensor([0.])
    """
    named = _named(reduction, "cosine_embedding_loss", 5)
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, reduction=named)


def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0,
                        p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                        reduction: int = 0) -> Any:
    """Call `nn.functional.triplet_margin_loss` of three tensors (N, D).

    `reduction` is 0 (none), 1 (mean) or 2 (sum).

    >>> import tracejit
    >>> x = tracejit.zeros(1, 2)
    >>> tracejit.triplet_margin_loss(x, x, x + 0.5)
    tensor([0.2929])
    """
    return margin_losses.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                             reduction=_named(reduction, "triplet_margin_loss", 8))


def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float,
                     reduction: int) -> Any:
    """Call `nn.functional.poisson_nll_loss`: the shapes broadcast.

    `reduction` is 0 (none), 1 (mean) or 2 (sum).

    >>> import tracejit
    >>> tracejit.poisson_nll_loss(tracejit.zeros(1), tracejit.ones(1), True, False, 1e-8, 0)
    tensor([1.])
    """
    return margin_losses.poisson_nll_loss(input, target, log_input, full, eps=eps,
                                          reduction=_named(reduction, "poisson_nll_loss", 6))


NAMES = ("ctc_loss kl_div binary_cross_entropy_with_logits margin_ranking_loss "
         "hinge_embedding_loss cosine_embedding_loss triplet_margin_loss poisson_nll_loss").split()
FUNCTIONS = {name: globals()[name] for name in NAMES}
