"""Distributions to compare with PyTorch: constructors' arguments, and values of their support."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Case:
    """A distribution: its name, parameters (arrays and numbers), and values to look at."""

    name: str
    arguments: dict[str, Any]
    values: Any
    given: str = ""
    methods: tuple[str, ...] = field(default=())  # beside log_prob

    @property
    def id(self) -> str:
        return f"{self.name}-{'-'.join(self.arguments)}"


def some(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def above(*shape: int) -> np.ndarray:
    return RNG.uniform(0.3, 3, size=shape)


def chances(*shape: int) -> np.ndarray:
    return RNG.uniform(0.1, 0.9, size=shape)


def counts(*shape: int) -> np.ndarray:
    return RNG.integers(0, 4, size=shape).astype(float)


_simplex = chances(2, 3)
SIMPLEX = _simplex / _simplex.sum(-1, keepdims=True)
_ALL = ("mean", "mode", "variance", "stddev", "entropy")
_CDF = (*_ALL, "cdf", "icdf")
_HOT = np.eye(3)[[0, 2]]

_FACTOR = np.tril(above(2, 3, 3))
_COVARIANCE = _FACTOR @ _FACTOR.swapaxes(-1, -2)

_CORRELATION = _FACTOR / np.sqrt((_FACTOR**2).sum(-1, keepdims=True))

# PyTorch's compares this one's parameters with a number of the default dtype.
OF_DEFAULT_DTYPE = Case(
    "GeneralizedPareto", {"loc": some(3), "scale": above(3),
                          "concentration": np.array([0.3, 0.0, -0.2])}, above(2, 3) + 2,
    methods=_CDF)
CASES = [
    Case("MultivariateNormal", {"loc": some(2, 3), "covariance_matrix": _COVARIANCE}, some(4, 2, 3),
         methods=_ALL),
    Case("MultivariateNormal", {"loc": some(3), "precision_matrix": _COVARIANCE}, some(2, 3),
         methods=_ALL),
    Case("MultivariateNormal", {"loc": some(2, 3), "scale_tril": _FACTOR[0]}, some(3),
         methods=_ALL),
    Case("Normal", {"loc": some(3), "scale": above(3)}, some(2, 3), methods=_CDF),
    Case("Normal", {"loc": some(3), "scale": 2.0}, some(3), methods=_CDF),
    Case("LogNormal", {"loc": some(3), "scale": above(3)}, above(2, 3), methods=_CDF),
    Case("HalfNormal", {"scale": above(3)}, above(2, 3), methods=_CDF),
    Case("HalfCauchy", {"scale": above(3)}, above(2, 3), methods=_CDF),
    Case("Cauchy", {"loc": some(3), "scale": above(3)}, some(2, 3), methods=_CDF),
    Case("Laplace", {"loc": some(3), "scale": above(3)}, some(2, 3), methods=_CDF),
    Case("Gumbel", {"loc": some(3), "scale": above(3)}, some(2, 3), methods=_CDF),
    Case("Uniform", {"low": -above(3), "high": above(3)}, some(2, 3) * 0.1, methods=_CDF),
    Case("Exponential", {"rate": above(3)}, above(2, 3), methods=_CDF),
    Case("Gamma", {"concentration": above(3), "rate": above(3)}, above(2, 3), methods=_ALL),
    Case("Chi2", {"df": above(3)}, above(2, 3), methods=_ALL),
    Case("Beta", {"concentration1": above(3), "concentration0": above(3)}, chances(2, 3),
         methods=_ALL),
    Case("Dirichlet", {"concentration": above(2, 3)}, SIMPLEX, methods=_ALL),
    Case("Dirichlet", {"concentration": above(3) / 4}, SIMPLEX, methods=_ALL),
    Case("StudentT", {"df": above(3) * 2, "loc": some(3), "scale": above(3)}, some(2, 3),
         methods=_ALL),
    Case("Bernoulli", {"probs": chances(3)}, np.eye(3), methods=_ALL),
    Case("Bernoulli", {"logits": some(3)}, np.eye(3), methods=_ALL),
    Case("Geometric", {"probs": chances(3)}, counts(2, 3), methods=_ALL),
    Case("Geometric", {"logits": some(3)}, counts(2, 3), methods=_ALL),
    Case("Poisson", {"rate": above(3)}, counts(2, 3), methods=_ALL[:-1]),
    Case("Binomial", {"total_count": 4, "probs": chances(3)}, counts(2, 3), methods=_ALL),
    Case("Binomial", {"total_count": 4, "logits": some(3)}, counts(2, 3), methods=_ALL),
    Case("Categorical", {"probs": chances(2, 3)}, np.array([0.0, 2.0]), methods=_ALL),
    Case("Categorical", {"logits": some(2, 3)}, counts(4, 2) % 3, methods=_ALL),
    Case("OneHotCategorical", {"logits": some(2, 3)}, _HOT, methods=_ALL),
    Case("OneHotCategoricalStraightThrough", {"probs": chances(2, 3)}, _HOT, methods=_ALL),
    Case("NegativeBinomial", {"total_count": 3.0, "probs": chances(3)}, counts(2, 3),
         methods=_ALL[:-1]),
    Case("NegativeBinomial", {"total_count": above(3), "logits": some(3)}, counts(2, 3),
         methods=_ALL[:-1]),
    Case("Weibull", {"scale": above(3), "concentration": above(3) + 1}, above(2, 3), methods=_CDF),
    Case("Pareto", {"scale": chances(3), "alpha": above(3) + 2}, above(2, 3) + 1, methods=_CDF),
    Case("InverseGamma", {"concentration": above(3) + 2, "rate": above(3)}, above(2, 3),
         methods=_ALL),
    Case("RelaxedOneHotCategorical", {"temperature": np.array(0.5), "logits": some(2, 3)}, SIMPLEX),
    Case("RelaxedOneHotCategorical", {"temperature": np.array(2.0), "probs": chances(3)}, SIMPLEX),
    Case("Kumaraswamy", {"concentration1": above(3) + 1, "concentration0": above(3) + 1},
         chances(2, 3), methods=_ALL),
    Case("FisherSnedecor", {"df1": above(3) + 2, "df2": above(3) + 4}, above(2, 3),
         methods=_ALL[:-1]),
    Case("LogisticNormal", {"loc": some(2), "scale": above(2)}, SIMPLEX),
    Case("RelaxedBernoulli", {"temperature": np.array(0.5), "probs": chances(3)}, chances(2, 3)),
    Case("RelaxedBernoulli", {"temperature": np.array(2.0), "logits": some(3)}, chances(2, 3)),
    Case("ContinuousBernoulli", {"probs": np.array([0.2, 0.5, 0.9])}, chances(2, 3),
         methods=("mean", "variance", "stddev", "entropy", "cdf", "icdf")),
    Case("ContinuousBernoulli", {"logits": some(3)}, chances(2, 3), methods=("mean", "entropy")),
    Case("LowRankMultivariateNormal",
         {"loc": some(2, 3), "cov_factor": some(2, 3, 2), "cov_diag": above(2, 3)}, some(4, 2, 3),
         methods=(*_ALL, "scale_tril", "covariance_matrix", "precision_matrix")),
    Case("VonMises", {"loc": some(3), "concentration": above(3)}, some(2, 3), methods=_ALL[:3]),
    Case("LKJCholesky", {"dim": 3, "concentration": above(2)}, _CORRELATION),
    Case("Wishart", {"df": above(2) + 4, "covariance_matrix": _COVARIANCE}, _COVARIANCE,
         methods=_ALL),
    Case("Wishart", {"df": 5.0, "precision_matrix": _COVARIANCE[0]}, _COVARIANCE, methods=_ALL),
    Case("Multinomial", {"total_count": 3, "probs": chances(2, 3)},
         np.array([[0.0, 1, 2], [3, 0, 0]]), methods=("mean", "variance", "entropy")),
    Case("Multinomial", {"total_count": 2, "logits": some(2, 3)},
         np.array([[0.0, 1, 1], [2, 0, 0]]), methods=("mean", "variance", "entropy")),
]  # fmt: skip
