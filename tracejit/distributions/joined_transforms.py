"""Transformations of the parts of a tensor, each by its own: CatTransform and StackTransform.

In: a tensor. Out: its parts along a dimension, transformed and joined again. See `transforms.py`,
which has their names too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tracejit
from tracejit.distributions import constraints
from tracejit.distributions.transform import Transform
from tracejit.distributions.utils import sum_rightmost


class _Joined(Transform):
    """Several transformations, each of one part."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    def _parts(self, x: Any) -> list[Any]:
        raise NotImplementedError

    def _join(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _checked(self, x: Any, expected: int) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} "
                                 "dimensions")
        if x.shape[self.dim] != expected:
            raise AssertionError(f"x.size({self.dim}) = {x.shape[self.dim]} must equal "
                                 f"{expected}")

    def _call(self, x: Any) -> Any:
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x))])

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y))])

    def _log_dets(self, x: Any, y: Any) -> list[Any]:
        return [t.log_abs_det_jacobian(a, b)
                for t, a, b in zip(self.transforms, self._parts(x), self._parts(y))]


class CatTransform(_Joined):
    """Parts of `lengths` along `dim`, one after the other, each with its transformation.

    >>> import tracejit
    >>> from tracejit.distributions import ExpTransform, identity_transform
    >>> t = CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])
    >>> t(tracejit.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0,
                 lengths: Sequence[int] | None = None, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms "
                                 f"({len(self.transforms)})")

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """Size of the dimension."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Any) -> list[Any]:
        self._checked(x, self.length)
        return list(x.split(self.lengths, self.dim))

    def _join(self, parts: list[Any]) -> Any:
        return tracejit.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        found = [sum_rightmost(each, self.event_dim - t.event_dim)
                 for t, each in zip(self.transforms, self._log_dets(x, y))]
        # counted from the end, without the dimensions of events, which are summed
        dim = (self.dim if self.dim < 0 else self.dim - x.dim()) + self.event_dim
        # parts that lie within an event add up
        return tracejit.cat(found, dim=dim) if dim < 0 else sum(found[1:], found[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Joined):
    """Slices along `dim`, each with its transformation.

    >>> import tracejit
    >>> from tracejit.distributions import ExpTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform])(tracejit.zeros(2, 1)).tolist()
    [[1.0], [0.0]]
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x: Any) -> list[Any]:
        self._checked(x, len(self.transforms))
        return list(x.unbind(self.dim))

    def _join(self, parts: list[Any]) -> Any:
        return tracejit.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._join(self._log_dets(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
