"""Kullback-Leibler divergences, by the types of both distributions.

In: two distributions. Out: KL(p || q), one for each element of the batch. Called by users;
`register_kl` adds formulas. The most special of the formulas that fit both types is taken.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import tracejit
from tracejit.distributions.distribution import Distribution

_registered: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorate a function that computes KL(p || q) of these types and their subclasses.

    TypeError for what is no class; PyTorch takes every class, and others' bases of distributions.

    >>> import tracejit
    >>> from tracejit.distributions import Normal, kl_divergence, register_kl
    >>> class Mine(Normal):
    ...     pass
    >>> @register_kl(Mine, Mine)
    ... def _(p, q):
    ...     return tracejit.zeros(())
    >>> kl_divergence(Mine(0.0, 1.0), Mine(0.0, 2.0))
    tensor(0.)
    """
    for name, kind in (("p", type_p), ("q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected type_{name} to be a Distribution subclass but got {kind}")

    def decorator(fun: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _registered[type_p, type_q] = fun
        return fun

    return decorator


def _distance(kind: type, of: type) -> int:
    mro = of.__mro__
    return mro.index(kind) if kind in mro else len(mro)  # a subclass by what its metaclass says


def _formula(type_p: type, type_q: type) -> Callable[[Any, Any], Any] | None:
    fitting = [pair for pair in _registered
               if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not fitting:
        return None
    # p's type decides first, then q's; PyTorch warns where the other order finds another
    left = min(fitting, key=lambda pair: (_distance(pair[0], type_p), _distance(pair[1], type_q)))
    right = min(fitting, key=lambda pair: (_distance(pair[1], type_q), _distance(pair[0], type_p)))
    if _registered[left] is not _registered[right]:
        names = (type_p.__name__, type_q.__name__, left[0].__name__, right[1].__name__)
        warnings.warn("Ambiguous kl_divergence({}, {}). Please register_kl({}, {})".format(*names),
                      RuntimeWarning, stacklevel=3)
    return _registered[left]


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """KL(p || q), of p's batch shape.

    >>> import tracejit
    >>> from tracejit.distributions import Normal
    >>> one = tracejit.tensor(1.0)
    >>> kl_divergence(Normal(one, one), Normal(0 * one, one))
    tensor(0.5000)

    NotImplementedError for types without a formula.
    """
    formula = _formula(type(p), type(q))
    if formula is None:
        raise NotImplementedError("No KL(p || q) is implemented for p type "
                                  f"{p.__class__.__name__} and q type {q.__class__.__name__}")
    return formula(p, q)


def infinite_like(x: Any) -> Any:
    """Infinity in the shape of a tensor."""
    return tracejit.full_like(x, math.inf)
