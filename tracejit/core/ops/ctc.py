"""Connectionist temporal classification: how likely a sequence of labels is where nobody knows when
each of them was said.

In: log probabilities (T, N, C), labels, lengths. Out: negative log likelihoods (N,), summed over
all ways to say the labels with blanks between. Called by users as `nn.functional.ctc_loss`.

Programs call the array library, sequence by sequence. The gradient is PyTorch's: that of log
probabilities which come from `log_softmax`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.joining import stack
from tracejit.core.ops.losses import reduced
from tracejit.core.ops.pointwise_logic import where
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import equal
from tracejit.core.ops.types import FLOATING, INTEGER, SCALAR_NAMES, TensorType, int64


def _with_blanks(xp: Any, labels: Any, blank: int) -> tuple[Any, Any]:
    """Return labels with blanks around them, and where a blank may be skipped: between different
    labels."""
    states = xp.full(2 * len(labels) + 1, blank)
    states[1::2] = labels
    skips = xp.zeros(len(states), bool)
    skips[3::2] = labels[1:] != labels[:-1]
    return states, skips


def _sums(xp: Any, logs: Any, skips: Any) -> Any:
    """Return the log of the summed probabilities of all ways to each state, step by step; logs (T,
    S)."""
    steps, count = logs.shape
    ways = xp.full((steps, count), -np.inf)
    ways[0, :2] = logs[0, :2]
    for t in range(1, steps):
        before = ways[t - 1]
        found = before.copy()
        found[1:] = xp.logaddexp(found[1:], before[:-1])
        found[2:] = xp.where(skips[2:], xp.logaddexp(found[2:], before[:-2]), found[2:])
        ways[t] = found + logs[t]
    return ways


def _loss_of(xp: Any, logs: Any, labels: Any, blank: int) -> tuple[Any, Any, Any, Any, Any]:
    states, skips = _with_blanks(xp, labels, blank)
    each = logs[:, states]
    if not len(logs):
        return (0.0 if not len(labels) else np.inf), states, skips, each, None
    ways = _sums(xp, each, skips)
    last = ways[-1]
    total = last[0] if len(last) == 1 else xp.logaddexp(last[-2], last[-1])
    return -total, states, skips, each, ways


def _losses(xp: Any, log_probs: Any, targets: Any, steps: Any, counts: Any, blank: int,
            zero_infinity: bool) -> Any:  # fmt: skip
    _check(log_probs, targets, steps, counts)
    found = [
        _loss_of(xp, rows, labels, blank)[0]
        for rows, labels in _sequences(log_probs, targets, steps, counts)
    ]
    return xp.asarray(found, log_probs.dtype).reshape(log_probs.shape[1])


def _check(log_probs: Any, targets: Any, steps: Any, counts: Any) -> None:
    place = "(while checking arguments for ctc_loss_allocate_outputs)"
    for name, lengths in (("input", steps), ("target", counts)):
        if lengths.size and lengths.min() < 0:
            raise RuntimeError(f"Expected {name}_lengths to have value at least 0, but got value "
                               f"{lengths.min()} {place}")
    if steps.size and steps.max() > log_probs.shape[0]:
        raise RuntimeError(f"Expected input_lengths to have value at most {log_probs.shape[0]}, "
                           f"but got value {steps.max()} {place}")
    if targets.ndim == 1 and counts.sum() != targets.shape[0]:
        raise RuntimeError(f"Expected tensor to have size {counts.sum()} at dimension 0, but got "
                           f"size {targets.shape[0]} for argument #2 'targets' {place}")
    if targets.ndim == 2 and counts.size and counts.max() > targets.shape[1]:
        raise RuntimeError(f"Expected tensor to have size at least {counts.max()} at dimension 1, "
                           f"but got size {targets.shape[1]} for argument #2 'targets' {place}")


def _sequences(log_probs: Any, targets: Any, steps: Any, counts: Any) -> Any:
    """Yield log probabilities and labels of each element of the batch."""
    begin = 0
    for n in range(log_probs.shape[1]):
        count = int(counts[n])
        rows = log_probs[: int(steps[n]), n].astype(np.float64)
        yield rows, targets[begin : begin + count] if targets.ndim == 1 else targets[n, :count]
        begin += count


def _gradients(xp: Any, grad: Any, log_probs: Any, targets: Any, steps: Any, counts: Any,
               blank: int, zero_infinity: bool) -> Any:  # fmt: skip
    result = xp.zeros(log_probs.shape, log_probs.dtype)
    pairs = enumerate(_sequences(log_probs, targets, steps, counts))
    for n, (rows, labels) in pairs:
        loss, states, skips, each, ways = _loss_of(xp, rows, labels, blank)
        if not len(rows) or zero_infinity and loss == np.inf:
            continue
        # Ways from each state to the end, its own probability included: the same sums backward.
        back = xp.zeros(len(states), bool)
        back[2:] = skips[2:][::-1]
        onward = _sums(xp, each[::-1, ::-1], back)[::-1, ::-1]
        # Both sums count the state's own probability.
        shares = xp.exp(ways + onward - each + loss)
        said = xp.zeros(rows.shape)
        xp.add.at(said, (slice(None), states), shares)
        result[: len(rows), n] = (xp.exp(rows) - said) * grad[n]
    return result


gradient_record: Op = Op(
    "ctc_loss_grad", "extern", ("grad", "log_probs", "targets", "steps", "counts"),
    infer=lambda grad, log_probs, *others, **options: TensorType(
        log_probs.dtype, tuple(log_probs.shape), log_probs.device),
    eager=_gradients,
)  # fmt: skip


def _rule(grad: Any, log_probs: Any, targets: Any, steps: Any, counts: Any, blank: int,
          zero_infinity: bool) -> Any:  # fmt: skip
    return gradient_record(grad, log_probs, targets, steps, counts, blank=blank,
                           zero_infinity=zero_infinity)  # fmt: skip


loss_record: Op = Op(
    "ctc_loss", "extern", ("log_probs", "targets", "steps", "counts"), may_fail=True,
    infer=lambda log_probs, *others, **options: TensorType(
        log_probs.dtype, (log_probs.shape[1],), log_probs.device),
    eager=_losses, rules={"log_probs": _rule}, node_name="CtcLossBackward0",
)  # fmt: skip


@autocasts(cpu="float32", cuda="float32")
def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any,
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Any:
    """Return minus the log of the probability that the steps say the labels, with blanks between.

    log_probs       (T, N, C) or (T, C), from `log_softmax`
    targets         (N, S), or all labels one after the other; without a batch (S,)
    input_lengths, target_lengths  (N,): tensors, or tuples of numbers
    reduction       "mean": each over its number of labels first
    zero_infinity   labels that are too many for the steps cost nothing, instead of inf

    >>> import tracejit
    >>> even = tracejit.zeros(2, 1, 2).log_softmax(-1)
    >>> F = tracejit.nn.functional
    >>> F.ctc_loss(even, tracejit.tensor([[1]]), (2,), (1,)).exp().item()  # 3 ways of 4
    1.3333333730697632

    RuntimeError for lengths and labels that do not fit; the gradient has none of its own.
    """
    if log_probs.dtype.category != FLOATING:
        raise NotImplementedError(
            f'"ctc_loss_cpu" not implemented for \'{SCALAR_NAMES[log_probs.dtype.name]}\'')
    alone = len(log_probs.shape) == 2
    if alone:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if len(targets.shape) == 1 else targets
    steps = _lengths(log_probs, input_lengths, "input_lengths")
    counts = _lengths(log_probs, target_lengths, "target_lengths")
    if not -1 < blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")
    found = loss_record(log_probs, targets.to(int64), steps, counts, blank=blank,
                        zero_infinity=bool(zero_infinity))
    if zero_infinity:
        found = where(found == float("inf"), 0, found)
    if reduction == "mean":
        found = found / counts.clamp(min=1)
    return reduced(found.squeeze(0) if alone and reduction == "none" else found, reduction)


def _lengths(log_probs: Any, given: Any, name: str) -> Any:
    if isinstance(given, (tuple, list)):
        given = stack([full_of(log_probs, (), n, int64) for n in given])
    if given.dtype.category != INTEGER:
        raise RuntimeError(f"{name} must be integral")
    given = given.reshape(-1)
    if not equal(given.shape[0], log_probs.shape[1]):
        raise RuntimeError(f"{name} must be of size batch_size")
    return given.to(int64)
