"""Samples of a distribution over classes that have a gradient: gumbel_softmax.

In: unnormalised log probabilities. Out: rows that are nearly, or exactly, 1 at the class drawn.
Called by users as `nn.functional.gumbel_softmax`.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.core.ops.creation import full_of
from tracejit.core.ops.gather_scatter import scatter
from tracejit.core.ops.sampling import exponential_of
from tracejit.core.ops.shapes import normalize_dim
from tracejit.core.ops.softmax import softmax


def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Any:  # fmt: skip
    """Return softmax of (logits + Gumbel noise) / tau along `dim`.

    hard  exactly 1 at the largest and 0 elsewhere; the gradient is that of the soft rows

    >>> import tracejit
    >>> drawn = tracejit.nn.functional.gumbel_softmax(tracejit.zeros(2, 3), hard=True)
    >>> drawn.sum(-1).tolist()
    [1.0, 1.0]

    RuntimeError for a dtype that is not floating.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=2)
    noise = -exponential_of(logits.detach()).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    k = normalize_dim(dim, len(soft.shape))
    first = soft.detach().argmax(k, True)
    zeros = full_of(soft, tuple(soft.shape), 0, soft.dtype)
    return scatter(zeros, k, first, 1.0) - soft.detach() + soft
