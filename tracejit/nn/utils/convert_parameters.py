"""Parameters as one vector, and back.

In: parameters, or a vector as long as all of them. Out: the vector; the parameters, written in
place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tracejit
from tracejit.core.eager.modes import no_grad


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """Return all elements, in order, as one vector. Gradients flow through.

    >>> import tracejit
    >>> tracejit.nn.utils.parameters_to_vector([tracejit.zeros(2, 2), tracejit.ones(1)])
    tensor([0., 0., 0., 0., 1.])
    """
    return tracejit.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Write consecutive parts of a vector (n,) into the parameters.

    >>> import tracejit
    >>> p = tracejit.nn.Parameter(tracejit.zeros(2))
    >>> tracejit.nn.utils.vector_to_parameters(tracejit.tensor([1.0, 2.0]), [p])
    >>> p.tolist()
    [1.0, 2.0]
    """
    begin = 0
    with no_grad():
        for p in parameters:
            p.copy_(vec[begin : begin + p.numel()].reshape(p.shape))
            begin += p.numel()
