"""`Distribution`: the common part of all distributions, and the check of their arguments.

In: batch and event shapes from a subclass. Out: samples of shape
`sample_shape + batch_shape + event_shape`, and the errors of methods that a subclass lacks. Called
by users.
"""

from __future__ import annotations

import warnings
from typing import Any

from tracejit.core.eager.modes import no_grad
from tracejit.core.eager.size import Size
from tracejit.core.eager.tensor import Tensor
from tracejit.core.ops import shapes
from tracejit.distributions.validation import check_parameters, require

_checked_by_default = __debug__  # a global and no class attribute: captured calls guard those


class Distribution:
    """Base class of distributions.

    >>> import tracejit
    >>> from tracejit.distributions import Normal
    >>> d = Normal(tracejit.zeros(3), 1.0)
    >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
    (tracejit.Size([3]), tracejit.Size([]), tracejit.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _checks: bool | None = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of `validate_args`. True checks parameters and samples."""
        global _checked_by_default
        if value not in (True, False):
            raise ValueError
        _checked_by_default = value

    @property
    def _validate_args(self) -> bool:
        return _checked_by_default if self._checks is None else self._checks

    @_validate_args.setter
    def _validate_args(self, value: bool) -> None:
        self._checks = value

    def __init__(self, batch_shape: Any = Size(), event_shape: Any = Size(),
                 validate_args: bool | None = None):
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._checks = validate_args
        if self._validate_args:
            check_parameters(self)

    # -- shapes -----------------------------------------------------------------------------------
    @property
    def batch_shape(self) -> Size:
        """Shape of the batch. Each element has a distribution of its own."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one sample of one distribution."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the same distribution with its parameters expanded to `batch_shape`."""
        raise NotImplementedError

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return an instance of this class without attributes, which `expand` of `cls` fills.

        Raise NotImplementedError for a subclass with a constructor but no `expand` of its own.
        """
        kind = type(self)
        if _instance is None and kind.__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(f"Subclass {kind.__name__} of {cls.__name__} that defines a "
                                      "custom __init__ method must also define a custom .expand() "
                                      "method.")
        return kind.__new__(kind) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    # -- what subclasses say ----------------------------------------------------------------------
    @property
    def arg_constraints(self) -> dict[str, Any]:
        """Name of a parameter -> the constraint it satisfies."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """Constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """Mean of the distribution."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """Most likely value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """Variance of the distribution."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """Square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Any:
        """Draw samples without history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Any:
        """Draw samples through which gradients reach the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Draw `n` samples."""
        warnings.warn("sample_n(n) will be deprecated. Use .sample((n,)) instead", UserWarning,
                      stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Return the probability of a sample at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Return the inverse of `cdf` at `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values that a sample can take, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """Return the entropy in nats, one for each distribution of the batch."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Return exp(entropy)."""
        return self.entropy().exp()

    # -- checks -----------------------------------------------------------------------------------
    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        self._check_event(value)
        self._check_batch(value)
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample "
                          "validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=3)
            return
        # the message is a function: it reads values, which only a failed check may do
        require(support.check(value), lambda: (
            f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
            f"within the support ({support!r}) of the distribution {self!r}, but found invalid "
            f"values:\n{value}"))

    def _check_event(self, value: Any) -> None:
        first = value.dim() - len(self._event_shape)
        inner = Size(tuple(value.shape)[max(first, 0):])
        if not shapes.same_shape(inner, self._event_shape):
            raise ValueError("The right-most size of value must match event_shape: "
                             f"{value.shape} vs {self._event_shape}.")

    def _check_batch(self, value: Any) -> None:
        expected = Size(tuple(self._batch_shape) + tuple(self._event_shape))
        try:
            shapes.broadcast(tuple(value.shape), expected)
        except RuntimeError:
            raise ValueError("Value is not broadcastable with batch_shape+event_shape: "
                             f"{value.shape} vs {expected}.") from None

    def __repr__(self) -> str:
        kept = vars(self)  # the parameters that were given, and those computed since
        shown = [f"{name}: {_shown(kept[name])}" for name in self.arg_constraints if name in kept]
        return f"{self.__class__.__name__}({', '.join(shown)})"


def _shown(value: Any) -> Any:
    return value if value.numel() == 1 else value.size()
