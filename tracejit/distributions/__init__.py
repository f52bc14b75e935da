"""Probability distributions: samples, densities, moments; PyTorch's `torch.distributions`.

Random numbers are those of tracejit's generators, the same eagerly and captured.
"""

from tracejit.core.ops import sealing as _sealing
from tracejit.distributions import constraints, kl_cross_formulas, kl_formulas, transforms
from tracejit.distributions.bernoulli import Bernoulli
from tracejit.distributions.beta import Beta
from tracejit.distributions.binomial import Binomial
from tracejit.distributions.categorical import Categorical
from tracejit.distributions.cauchy import Cauchy
from tracejit.distributions.constraint_registry import biject_to, transform_to
from tracejit.distributions.continuous_bernoulli import ContinuousBernoulli
from tracejit.distributions.dirichlet import Dirichlet
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.exponential import Exponential
from tracejit.distributions.exponential_family import ExponentialFamily
from tracejit.distributions.fisher_snedecor import FisherSnedecor
from tracejit.distributions.gamma import Chi2, Gamma
from tracejit.distributions.generalized_pareto import GeneralizedPareto
from tracejit.distributions.geometric import Geometric
from tracejit.distributions.gumbel import Gumbel
from tracejit.distributions.half_cauchy import HalfCauchy
from tracejit.distributions.half_normal import HalfNormal
from tracejit.distributions.independent import Independent
from tracejit.distributions.inverse_gamma import InverseGamma
from tracejit.distributions.kl import kl_divergence, register_kl
from tracejit.distributions.kumaraswamy import Kumaraswamy
from tracejit.distributions.laplace import Laplace
from tracejit.distributions.lkj_cholesky import LKJCholesky
from tracejit.distributions.log_normal import LogNormal
from tracejit.distributions.logistic_normal import LogisticNormal
from tracejit.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from tracejit.distributions.mixture_same_family import MixtureSameFamily
from tracejit.distributions.multinomial import Multinomial
from tracejit.distributions.multivariate_normal import MultivariateNormal
from tracejit.distributions.negative_binomial import NegativeBinomial
from tracejit.distributions.normal import Normal
from tracejit.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from tracejit.distributions.pareto import Pareto
from tracejit.distributions.poisson import Poisson
from tracejit.distributions.relaxed_bernoulli import RelaxedBernoulli
from tracejit.distributions.relaxed_categorical import RelaxedOneHotCategorical
from tracejit.distributions.student_t import StudentT
from tracejit.distributions.transformed_distribution import TransformedDistribution
from tracejit.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from tracejit.distributions.uniform import Uniform
from tracejit.distributions.von_mises import VonMises
from tracejit.distributions.weibull import Weibull
from tracejit.distributions.wishart import Wishart

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform",
    "Categorical", "Cauchy", "Chi2", "ComposeTransform", "ContinuousBernoulli",
    "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution",
    "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace",
    "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "LowerCholeskyTransform",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT",
    "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart", "biject_to", "constraints", "identity_transform", "kl_cross_formulas",
    "kl_divergence", "kl_formulas", "register_kl", "transform_to", "transforms",
]  # fmt: skip

_sealing.seal_all(globals())
