"""Formulas of Kullback-Leibler divergences between distributions of different types.

In: two distributions. Out: KL(p || q), infinity where p gives values that q cannot give. Registered
with `kl.register_kl` when this file is imported.
"""

from __future__ import annotations

import math
from typing import Any

import tracejit
from tracejit.distributions.bernoulli import Bernoulli
from tracejit.distributions.beta import Beta
from tracejit.distributions.binomial import Binomial
from tracejit.distributions.continuous_bernoulli import ContinuousBernoulli
from tracejit.distributions.exponential import Exponential
from tracejit.distributions.gamma import Gamma
from tracejit.distributions.gumbel import Gumbel
from tracejit.distributions.kl import infinite_like, register_kl
from tracejit.distributions.laplace import Laplace
from tracejit.distributions.normal import Normal
from tracejit.distributions.pareto import Pareto
from tracejit.distributions.poisson import Poisson
from tracejit.distributions.uniform import Uniform
from tracejit.distributions.utils import EULER

_LOG_2PI = math.log(2 * math.pi)


def _cross_normal(second: Any, mean: Any, q: Any) -> Any:
    """-E log q of a normal q, by the first two moments of p."""
    squares = second - 2 * mean * q.loc + q.loc.pow(2)
    return 0.5 * _LOG_2PI + q.scale.log() + 0.5 * squares / q.scale.pow(2)


def _by_moments(p: Any, q: Any) -> Any:
    mean = p.mean
    return -p.entropy() + _cross_normal(p.variance + mean.pow(2), mean, q)


for _kind in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_kind, Normal)(_by_moments)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    one = p.concentration1
    # E log x of a beta distributed x
    logarithm = tracejit.digamma(one) - tracejit.digamma(one + p.concentration0)
    return (-p.entropy() + tracejit.lgamma(q.concentration) - q.concentration * q.rate.log()
            - (q.concentration - 1) * logarithm + q.rate * p.mean)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    # infinite where p gives values outside of q's interval
    kl = -p.entropy() + (q.high - q.low).log()
    return kl.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return (-q.concentration * ratio.log() + ratio + tracejit.lgamma(q.concentration)
            + q.concentration * EULER - (1 + EULER))


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    rate, loc = p.rate * q.scale, q.loc / q.scale
    return rate.log() - 1 - loc + 1 / rate + loc.exp() * rate / (rate + 1)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    rate, loc, shape = p.rate * q.scale, q.loc / q.scale, p.concentration
    return ((shape - 1) * tracejit.digamma(shape) - tracejit.lgamma(shape) - shape + rate.log()
            + shape / rate - loc + loc.exp() * (1 + 1 / rate).pow(-shape))


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    mean, scale, loc = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    return (mean - loc + (-mean + 0.5 * scale + loc).exp()
            - 0.5 * (1 + _LOG_2PI) - (p.scale / q.scale).log())


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    away = p.loc - q.loc
    far = away / p.scale
    # E |x - loc| of a normal x
    mean = (math.sqrt(2 / math.pi) * p.scale * (-0.5 * far.pow(2)).exp()
            + away * tracejit.erf(math.sqrt(0.5) * far))
    return -p.entropy() + (2 * q.scale).log() + mean / q.scale


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    kl = -p.entropy() - q.rate.log() + q.rate * p.mean
    return kl.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    # E log x of a Pareto distributed x
    shape, logarithm = q.concentration, p.scale.log() + p.alpha.reciprocal()
    kl = (-p.entropy() + tracejit.lgamma(shape) - shape * q.rate.log()
          + (1 - shape) * logarithm + q.rate * p.mean)
    return kl.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    # p has no variance up to there
    return _by_moments(p, q).masked_fill(p.alpha <= 2, math.inf)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    # E log x of a uniform x
    logarithm = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    kl = (logarithm * (q.alpha + 1)
          - (q.alpha * q.scale.pow(q.alpha) * width).log())
    return kl.masked_fill(p.low < q.scale, math.inf)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width, one, zero = p.high - p.low, q.concentration1, q.concentration0
    sizes = tracejit.lgamma(one) + tracejit.lgamma(zero) - tracejit.lgamma(one + zero)
    low = (one - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    high = (zero - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    kl = high + sizes - low - width.log()
    return kl.masked_fill((p.high > 1) | (p.low < 0), math.inf)


def _x_log_x(x: Any) -> Any:
    return tracejit.xlogy(x, x)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return kl.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    width, shape = p.high - p.low, q.concentration
    # E log x of a uniform x
    logarithm = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    kl = (-width.log() + tracejit.lgamma(shape) - shape * q.rate.log()
          + (1 - shape) * logarithm + q.rate * (p.high + p.low) / 2)
    return kl.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    width = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return width.log() + 0.5 * (high + low) - width * ((-high).exp() - (-low).exp())


def _never(p: Any, q: Any) -> Any:
    return infinite_like(p.mean)


for _p in (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto):
    register_kl(_p, ContinuousBernoulli)(_never)
for _p, _others in (
    (ContinuousBernoulli, (Pareto,)),
    (Beta, (Pareto,)), (Exponential, (Beta, Pareto, Uniform)), (Gamma, (Beta, Pareto, Uniform)),
    (Gumbel, (Beta, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, (Beta, Exponential, Gamma, Pareto, Uniform)),
    (Normal, (Beta, Exponential, Gamma, Pareto, Uniform)), (Pareto, (Beta, Uniform)),
    (Poisson, (Bernoulli, Binomial)),
):
    for _q in _others:
        register_kl(_p, _q)(_never)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _by_mean(p: Any, q: Any) -> Any:
    kl = (-p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm())
    if isinstance(p, Uniform):
        kl = kl.masked_fill((p.low < 0) | (p.high > 1), math.inf)
    return kl
