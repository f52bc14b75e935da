"""Instances of distributions with other batch shapes.

In: a distribution, and its parameters expanded. Out: another one of its class. Called by `expand`.
The watcher passes over this file: it writes new objects only.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.size import Size
from tracejit.distributions.distribution import Distribution


def expanded(distribution: Any, cls: type, _instance: Any, batch_shape: Any, **fields: Any) -> Any:
    """Return a distribution like another one, with these attributes.

    Raise NotImplementedError for a subclass with a constructor but no `expand` of its own.
    """
    new = distribution._get_checked_instance(cls, _instance)
    vars(new).update(fields)
    # no check: the parameters were checked when the first instance was made
    Distribution.__init__(new, Size(batch_shape), distribution.event_shape, validate_args=False)
    # samples are checked as those of the first instance
    new._checks = distribution._checks
    return new
