"""Instances of distributions with other batch shapes.

In: a distribution, and its parameters expanded. Out: another one of its class. Called by `expand`.
The watcher passes over this file: it writes new objects only.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.size import Size
from tracejit.distributions.distribution import Distribution


def expanded(distribution: Any, cls: type, _instance: Any, batch_shape: Any, **fields: Any) -> Any:
    """A distribution like another one, with these attributes.

    NotImplementedError where a subclass with another constructor does not say how.
    """
    new = distribution._get_checked_instance(cls, _instance)
    vars(new).update(fields)
    Distribution.__init__(new, Size(batch_shape), distribution.event_shape, validate_args=False)
    new._checks = distribution._checks
    return new
