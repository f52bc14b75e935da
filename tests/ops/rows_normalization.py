"""Rows of the normalisations over batches, instances, groups and neighbouring channels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.opinfo import FLOATS, HALVES, OpInfo, Sample, array
from tests.ops.rows_composite import functional
from tracejit.core.ops.types import dtype

IMAGES = (2, 4, 3, 2)


def row(name: str, samples: Callable, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples, **{
        "function": functional(name.partition(".")[0]), "dtypes": (*FLOATS, *HALVES), "ulp": 8,
        "cancel": 16, "specials": False, **keywords})  # fmt: skip


def spread(rng: np.random.Generator, d: dtype, *shape: int) -> np.ndarray:
    """Elements apart from one another: variances near 0 magnify rounding."""
    return array(rng, d, *shape, low=-3, high=3, distinct=True)


def with_statistics(name: str, **keywords: Any) -> Callable[..., Any]:
    """The norm and what becomes of the running statistics given to it."""
    def call(x: Any, mean: Any, variance: Any, *vectors: Any) -> Any:
        running = mean.detach().clone(), variance.detach().clone()
        return functional(name)(x, *running, *vectors, **keywords), *running

    return call


def _with_vectors(*sizes: tuple[int, ...]) -> Callable:
    def samples(rng: np.random.Generator, d: dtype) -> Any:
        for shape in sizes:
            channels = shape[1]
            mean, weight, bias = (array(rng, d, channels) for _ in range(3))
            variance = array(rng, d, channels, low=0.5)
            yield Sample((spread(rng, d, *shape), mean, variance))
            yield Sample((spread(rng, d, *shape), mean, variance, weight, bias))

    return samples


def _alone(*calls: tuple, **keywords: Any) -> Callable:
    """Calls (shape, other arguments, channels of weight and bias or None)."""
    def samples(rng: np.random.Generator, d: dtype) -> Any:
        for shape, others, *vectors in calls:
            given = [array(rng, d, *size) for size in vectors]
            yield Sample((spread(rng, d, *shape), *others, *given), keywords)

    return samples


BATCHES = ((5, 3), IMAGES, (3, 2, 4), (2, 2, 2, 1, 3))
ROWS = [
    row("batch_norm.training", _with_vectors(*BATCHES), constant=(1, 2),
        function=with_statistics("batch_norm", training=True)),
    row("batch_norm.running", _with_vectors(*BATCHES, (0, 3), (1, 2)), constant=(1, 2)),
    row("batch_norm.alone", _alone((IMAGES, (None, None), (4,)), (IMAGES, (None, None)),
                                   training=True)),
    row("instance_norm", _alone((IMAGES, (None, None), (4,), (4,)), ((3, 2, 5), ()))),
    row("instance_norm.statistics", _with_vectors(IMAGES, (1, 3, 4)), constant=(1, 2),
        function=with_statistics("instance_norm")),
    row("instance_norm.running", _with_vectors(IMAGES, (1, 3, 4)), constant=(1, 2),
        function=with_statistics("instance_norm", use_input_stats=False)),
    row("group_norm", _alone((IMAGES, (2,), (4,), (4,)), (IMAGES, (1,)), ((3, 6), (2,), (6,)),
                             ((0, 4, 2), (2,), (4,)))),
    row("rms_norm", _alone((IMAGES, ((3, 2),), (3, 2)), ((3, 5), ((5,),)), ((0, 4), ((4,),)))),
    row("rms_norm.eps", _alone((IMAGES, ((2,),), (2,)), eps=0.1)),
    row("local_response_norm", _alone((IMAGES, (3,)), ((2, 5, 3), (2,)), alpha=0.5), dtypes=FLOATS),
    row("local_response_norm.long", _alone(((2, 5, 3), (7,)), alpha=0.5, beta=1.0, k=2.0),
        dtypes=FLOATS),
]  # fmt: skip
