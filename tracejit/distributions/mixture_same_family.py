"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.distributions import constraints
from tracejit.distributions.categorical import Categorical
from tracejit.distributions.distribution import Distribution
from tracejit.distributions.instances import expanded


class MixtureSameFamily(Distribution):
    """Mixture of K components, chosen by a `Categorical`. The last batch dimension of
    `component_distribution` is K.

    >>> import tracejit
    >>> from tracejit.distributions import Categorical, Normal
    >>> chosen = Categorical(tracejit.tensor([1.0, 3.0]))
    >>> MixtureSameFamily(chosen, Normal(tracejit.tensor([0.0, 4.0]), 1.0)).mean
    tensor(3.)

    ValueError where both do not fit.
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, mixture_distribution: Any, component_distribution: Any,
                 validate_args: bool | None = None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of "
                             "torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of "
                             "torch.distributions.Distribution")
        mixed = mixture_distribution.batch_shape
        inner = component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(mixed), reversed(inner)):
            if one != 1 and other != 1 and one != other:
                raise ValueError(f"`mixture_distribution.batch_shape` ({mixed}) is not compatible "
                                 f"with `component_distribution.batch_shape`({inner})")
        count, components = (mixture_distribution.param_shape[-1],
                             component_distribution.batch_shape[-1])
        if count != components:
            raise ValueError(f"`mixture_distribution component` ({count}) does not equal "
                             f"`component_distribution.batch_shape[-1]` ({components})"
                             )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(inner, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        component = self._component_distribution.expand((*batch_shape, self._num_component))
        return expanded(self, MixtureSameFamily, _instance, batch_shape,
                        _component_distribution=component, _num_component=self._num_component,
                        _mixture_distribution=self._mixture_distribution.expand(batch_shape),
                        _event_ndims=len(component.event_shape))

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """`Categorical` that chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """Distribution whose last batch dimension holds the components."""
        return self._component_distribution

    def _weights(self) -> Any:
        probs = self._mixture_distribution.probs
        # one more dimension for each of the event, with which the weights broadcast
        return probs.reshape((*probs.shape, *(1,) * self._event_ndims))

    @property
    def mean(self) -> Any:
        mean = self._component_distribution.mean
        return (self._weights() * mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        weights, dim = self._weights(), -1 - self._event_ndims
        # the law of total variance: within the components, and between their means
        within = (weights * self._component_distribution.variance).sum(dim)
        away = self._component_distribution.mean - self.mean.unsqueeze(dim)
        return within + (weights * away.pow(2.0)).sum(dim)

    def cdf(self, x: Any) -> Any:
        below = self._component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Any) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        each = self._component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        weights = tracejit.log_softmax(self._mixture_distribution.logits, dim=-1)
        return tracejit.logsumexp(each + weights, dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Any:
        with no_grad():
            dim = len(tuple(sample_shape)) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            # every component draws, and one is kept: no control flow by values
            drawn = self._component_distribution.sample(sample_shape)
            event = tuple(self._event_shape)
            chosen = chosen.reshape((*chosen.shape, *(1,) * (len(event) + 1)))
            shape = (*tuple(drawn.shape)[:dim], 1, *event)
            return drawn.gather(dim, chosen.expand(shape)).squeeze(dim)

    def __repr__(self) -> str:
        return (f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
                f"{self._component_distribution})")
