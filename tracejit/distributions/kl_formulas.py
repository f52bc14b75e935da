"""Formulas of Kullback-Leibler divergences between distributions of one type.

In: two distributions. Out: KL(p || q). Registered with `kl.register_kl` when this file is imported.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.core.eager.modes import enable_grad
from tracejit.core.ops import shapes
from tracejit.distributions.bernoulli import Bernoulli
from tracejit.distributions.beta import Beta
from tracejit.distributions.binomial import Binomial
from tracejit.distributions.categorical import Categorical
from tracejit.distributions.cauchy import Cauchy
from tracejit.distributions.continuous_bernoulli import ContinuousBernoulli
from tracejit.distributions.dirichlet import Dirichlet
from tracejit.distributions.exponential import Exponential
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.gamma import Gamma
from tracejit.distributions.geometric import Geometric
from tracejit.distributions.gumbel import Gumbel
from tracejit.distributions.half_normal import HalfNormal
from tracejit.distributions.independent import Independent
from tracejit.distributions.kl import kl_divergence, register_kl
from tracejit.distributions.laplace import Laplace
from tracejit.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from tracejit.distributions.multivariate_normal import (
    MultivariateNormal,
    half_log_det,
    squared_distance,
)
from tracejit.distributions.normal import Normal
from tracejit.distributions.one_hot_categorical import OneHotCategorical
from tracejit.distributions.pareto import Pareto
from tracejit.distributions.poisson import Poisson
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.uniform import Uniform
from tracejit.distributions.utils import EULER, sum_rightmost
from tracejit.distributions.wishart import Wishart
from tracejit.nn.functional import softplus


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    chance, other = p.probs, q.probs
    yes = chance * (softplus(-q.logits) - softplus(-p.logits))
    # p's zeros last: what p never gives costs nothing, also where q never gives it
    yes = yes.masked_fill(other == 0, math.inf).masked_fill(chance == 0, 0)
    no = (1 - chance) * (softplus(q.logits) - softplus(p.logits))
    return yes + no.masked_fill(other == 1, math.inf).masked_fill(chance == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    one, zero = p.concentration1, p.concentration0
    total, others = one + zero, q.concentration1 + q.concentration0
    sizes = (tracejit.lgamma(q.concentration1) + tracejit.lgamma(q.concentration0)
             + tracejit.lgamma(total))
    sizes = sizes - (tracejit.lgamma(one) + tracejit.lgamma(zero) + tracejit.lgamma(others))
    return (sizes + (one - q.concentration1) * tracejit.digamma(one)
            + (zero - q.concentration0) * tracejit.digamma(zero)
            + (others - total) * tracejit.digamma(total))


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    # the sum over q's further values has no closed form
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is "
                                  "not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p()
                          - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    each = p.probs * (p.logits - q.logits)
    # p's zeros last: what p never gives costs nothing, also where q never gives it
    each = each.masked_fill((q.probs == 0).expand(each.shape), math.inf)
    return each.masked_fill((p.probs == 0).expand(each.shape), 0).sum(-1)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    one, other = p.concentration, q.concentration
    total = one.sum(-1)
    sizes = tracejit.lgamma(total) - tracejit.lgamma(other.sum(-1))
    sizes = sizes - (tracejit.lgamma(one) - tracejit.lgamma(other)).sum(-1)
    rest = tracejit.digamma(one) - tracejit.digamma(total).unsqueeze(-1)
    return sizes + ((one - other) * rest).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    one, other = p.concentration, q.concentration
    sizes = other * (p.rate / q.rate).log() + tracejit.lgamma(other) - tracejit.lgamma(one)
    return sizes + (one - other) * tracejit.digamma(one) + (q.rate - p.rate) * (one / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, loc, other = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    rest = (loc + tracejit.lgamma(1 + ratio) - other).exp()
    return -ratio.log() - loc + other + ratio * EULER + rest - (1 + EULER)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return kl.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return kl.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    sizes = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return sizes - (4 * p.scale * q.scale).log()


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with"
                         # PyTorch's message has these spaces
                         f"{' ' * 26}different event shapes cannot be computed")
    n = p.event_shape[0]
    batch = shapes.broadcast(tuple(p.batch_shape), tuple(q.batch_shape))
    mine, theirs = (d.scale_tril.expand((*batch, n, n)) for d in (p, q))
    spread = tracejit.linalg.solve_triangular(theirs, mine, upper=False).pow(2).sum((-2, -1))
    away = squared_distance(theirs, q.loc - p.loc)
    sizes = half_log_det(theirs) - half_log_det(mine)
    return sizes + 0.5 * (spread + away - n)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    mine, theirs = (d._cont_bern_log_norm() + (-d.probs).log1p() for d in (p, q))
    return p.mean * (p.logits - q.logits) + mine - theirs


@register_kl(Wishart, Wishart)
def _wishart(p: Any, q: Any) -> Any:
    n = p.event_shape[-1]
    half, other = p.df / 2, q.df / 2
    parts = half.unsqueeze(-1) - tracejit.arange(n, dtype=half.dtype, device=half.device) / 2
    batch = shapes.broadcast(tuple(p.batch_shape), tuple(q.batch_shape))
    mine, theirs = (d.scale_tril.expand((*batch, n, n)) for d in (p, q))
    ratio = tracejit.linalg.solve_triangular(theirs, mine, upper=False).pow(2).sum((-2, -1))
    sizes = 2 * other * (half_log_det(theirs) - half_log_det(mine))
    return (sizes + half * (ratio - n) + tracejit.mvlgamma(other, n) - tracejit.mvlgamma(half, n)
            + (half - other) * tracejit.digamma(parts).sum(-1))


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Any:
    """Return the Bregman divergence of the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families "
                                  "cannot be computed using Bregman divergences")
    with enable_grad():
        mine = [x.detach().requires_grad_() for x in p._natural_params]
        normalizer = p._log_normalizer(*mine)
        # the gradient of F is the mean of the sufficient statistics
        means = tracejit.autograd.grad(normalizer.sum(), mine, create_graph=True)
    found = q._log_normalizer(*q._natural_params) - normalizer
    for one, other, mean in zip(mine, q._natural_params, means):
        found = found - sum_rightmost((other - one) * mean, len(q.event_shape))
    return found
