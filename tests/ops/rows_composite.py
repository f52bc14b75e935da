"""Rows of the composites: activations, softmax, normalisation, losses, attention."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np

import tracejit
import tracejit.nn.functional
from tests.opinfo import FLOATS, HALVES, OpInfo, Sample, array
from tests.ops.rows_pointwise import unary
from tracejit.core.ops.types import dtype

BOTH = (*FLOATS, *HALVES)


def functional(name: str) -> Callable[..., Any]:
    """`nn.functional.<name>` of whichever library the tensors are from."""
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        ours = isinstance(x, tracejit.Tensor)
        library = tracejit.nn.functional if ours else import_module("torch.nn.functional")
        return getattr(library, name)(x, *args, **kwargs)

    return call


def row(name: str, samples: Callable, **keywords: Any) -> OpInfo:
    return OpInfo(name, samples, **{"function": functional(name.partition(".")[0]),
                                    "dtypes": BOTH, **keywords})


def away(low: float, high: float, *kinks: float) -> Callable:
    """One operand whose elements keep clear of the points where the function has no derivative."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for shape in ((11,), (3, 5), (), (0, 2)):
            x = np.asarray(array(rng, d, *shape, low=low, high=high))
            for kink in kinks:
                x = np.where(np.abs(x - d.numpy.type(kink)) < 0.05, x + d.numpy.type(0.1), x)
            yield Sample((x,))

    return samples


def _weighted(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for shape, count in (((3, 4), 4), ((3, 4, 2), 4), ((5,), 1), ((), 1), ((0, 2), 2)):
        x = np.asarray(array(rng, d, *shape, low=-2, high=2))
        yield Sample((np.where(np.abs(x) < 0.05, d.numpy.type(0.1), x), array(rng, d, count)))


ACTIVATIONS = [
    row("relu", away(-2, 2, 0)),
    row("relu6", away(-2, 8, 0, 6)),
    row("hardtanh", away(-2, 2, -1, 1)),
    row("leaky_relu", away(-2, 2, 0)),
    row("elu", away(-2, 2, 0), ulp=4),
    row("selu", away(-2, 2, 0), ulp=4),
    row("silu", unary(), ulp=4, specials=False),
    row("gelu", unary(), ulp=4, cancel=2, specials=False),
    row("gelu.tanh", lambda rng, d: [Sample((array(rng, d, 3, 5),), {"approximate": "tanh"})],
        ulp=4, cancel=2, specials=False),
    row("softplus", unary(), ulp=4),
    row("logsigmoid", unary(), ulp=4),
    # PyTorch's gradient of it is a sixth in float32, whatever the dtype.
    row("hardsigmoid", away(-5, 5, -3, 3), ulp=4, torch=lambda x: (x + 3).clamp(0, 6) / 6),
    row("hardswish", away(-5, 5, -3, 3), ulp=4),
    row("hardshrink", away(-2, 2, -0.5, 0.5)),
    row("softshrink", away(-2, 2, -0.5, 0.5)),
    row("celu", away(-2, 2, 0), ulp=4),
    row("mish", unary(), ulp=6, specials=False),
    row("softsign", unary()),
    row("tanhshrink", unary(), ulp=4, cancel=16),
    row("threshold", lambda rng, d: [Sample((array(rng, d, 3, 5), 0.1, 20.0))]),
    row("prelu", _weighted),
    row("glu", lambda rng, d: [Sample((array(rng, d, 4, 6), dim)) for dim in (-1, 0)], ulp=4),
    row("rrelu", away(-2, 2, 0)),
]  # fmt: skip


def _along(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for shape, dim in (((3, 5), -1), ((3, 5), 0), ((2, 3, 4), 1), ((4,), 0), ((), 0), ((0, 3), 1)):
        yield Sample((np.asarray(array(rng, d, *shape)), dim))


def _logsumexp(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    x = array(rng, d, 2, 3, 4, low=-6, high=6)
    yield Sample((x, 1))
    yield Sample((x, (0, -1)), {"keepdim": True})
    yield Sample((array(rng, d, 4), 0))




SOFTMAX = [
    OpInfo("softmax", _along, dtypes=BOTH, ulp=4, cancel=2, specials=False),
    OpInfo("log_softmax", _along, dtypes=BOTH, ulp=4, cancel=2, specials=False),
    OpInfo("logsumexp", _logsumexp, dtypes=BOTH, ulp=4, specials=False),
]


def _layer_norm(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    for shape, last in (((3, 8), 1), ((2, 3, 4), 2), ((2, 3, 4), 1), ((5,), 1), ((0, 4), 1)):
        x, wanted = array(rng, d, *shape), shape[len(shape) - last:]
        yield Sample((x, wanted))
        yield Sample((x, wanted, array(rng, d, *wanted), array(rng, d, *wanted)))


NORMALIZATION = [
    row("layer_norm", _layer_norm, ulp=8, cancel=8, specials=False),
    row("normalize", lambda rng, d: [Sample((array(rng, d, 3, 4),)),
                                     Sample((array(rng, d, 3, 4),), {"dim": 0}),
                                     Sample((array(rng, d, 3, 4),), {"p": 1.0})],
        ulp=4, cancel=2, specials=False),
]  # fmt: skip


def _pairs(low: float = -2, high: float = 2, target_low: float = -2, target_high: float = 2,
           **keywords: Any) -> Callable:
    """Input and target of one shape, for every reduction; no element where they nearly agree."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for reduction in ("mean", "sum", "none"):
            for shape in ((4, 3), (7,), ()):
                x = np.asarray(array(rng, d, *shape, low=low, high=high))
                y = np.asarray(array(rng, d, *shape, low=target_low, high=target_high))
                yield Sample((x, y), {"reduction": reduction, **keywords})

    return samples


def _weighted(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    x, y = array(rng, d, 4, 3), array(rng, d, 4, 3, low=0, high=1)
    yield Sample((x, y), {"weight": array(rng, d, 3, low=0.5)})
    yield Sample((x, y), {"pos_weight": array(rng, d, 3, low=0.5)})


LOSSES = [
    row("mse_loss", _pairs(), ulp=8),
    row("l1_loss", _pairs(), ulp=8),
    row("huber_loss", _pairs(delta=0.7), ulp=8),
    row("smooth_l1_loss", _pairs(beta=0.5), ulp=8),
    row("binary_cross_entropy", _pairs(0.1, 0.9, 0, 1), ulp=8, cancel=4, specials=False),
    row("binary_cross_entropy_with_logits", _pairs(-3, 3, 0, 1), ulp=8, cancel=4, specials=False),
    row("binary_cross_entropy_with_logits.weighted", _weighted, ulp=8, cancel=4, specials=False,
        differentiable=False),
    row("kl_div", _pairs(-3, -0.1, 0.1, 1), ulp=8, cancel=8, specials=False),
]  # fmt: skip


def _classes(**keywords: Any) -> Callable:
    """Scores and class numbers, some ignored, for every reduction and layout."""
    def samples(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
        for reduction in ("mean", "sum", "none"):
            for shape in ((4, 5), (2, 5, 3), (5,), (1, 5)):
                spatial = () if len(shape) == 1 else (shape[0], *shape[2:])
                target = np.asarray(rng.integers(0, 5, spatial))
                scores = array(rng, d, *shape, low=-1.5, high=1.5)  # no loss near 0
                yield Sample((scores, target), {"reduction": reduction, **keywords})
                if target.size > 2:
                    ignoring = np.where(rng.random(spatial) < 0.3, -100, target)
                    ignoring.flat[0] = target.flat[0]
                    weight = rng.integers(1, 9, 5)
                    yield Sample((scores, ignoring, weight), {"reduction": reduction, **keywords})

    return samples


def with_class_weights(name: str) -> Callable[..., Any]:
    """The loss, its class weights given in quarters: PyTorch has no gradient for floating ones."""
    def call(x: Any, target: Any, weight: Any = None, **keywords: Any) -> Any:
        quarters = None if weight is None else (weight * 0.25).type_as(x)
        return functional(name)(x, target, quarters, **keywords)

    return call


def _probabilities(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    target = array(rng, d, 4, 5, low=0, high=1)
    for reduction in ("mean", "sum", "none"):
        yield Sample((array(rng, d, 4, 5), target), {"reduction": reduction})
    yield Sample((array(rng, d, 4, 5), target), {"label_smoothing": 0.2})
    yield Sample((array(rng, d, 4, 5), target, rng.integers(1, 9, 5)))


CLASSIFICATION = [
    row("cross_entropy", _classes(), function=with_class_weights("cross_entropy"), ulp=8,
        cancel=4, specials=False, dtypes=FLOATS),
    row("cross_entropy.smoothing", _classes(label_smoothing=0.1),
        function=with_class_weights("cross_entropy"), ulp=8, cancel=8, specials=False),
    row("cross_entropy.probabilities", _probabilities,
        function=with_class_weights("cross_entropy"), ulp=8, cancel=8, specials=False),
    row("nll_loss", _classes(), function=with_class_weights("nll_loss"), ulp=8, cancel=4,
        specials=False),
]


def _attention(rng: np.random.Generator, d: dtype) -> Iterable[Sample]:
    q, k, v = array(rng, d, 2, 3, 4), array(rng, d, 2, 5, 4), array(rng, d, 2, 5, 6)
    yield Sample((q, k, v))
    yield Sample((q, k, v), {"is_causal": True})
    yield Sample((q, k, v), {"attn_mask": array(rng, d, 3, 5), "scale": 0.3})
    yield Sample((q, k, v), {"attn_mask": np.tri(3, 5) > 0})
    blind = np.array([[True] * 5, [False] * 5, [True] * 5])  # the second query sees no key
    yield Sample((q, k, v), {"attn_mask": blind})
    yield Sample((q, k, v), {"attn_mask": np.where(blind, 0.5, -np.inf).astype(d.numpy)})
    heads = [array(rng, d, 1, n, 3, 4) for n in (4, 2, 2)]
    yield Sample(tuple(heads), {"is_causal": True, "enable_gqa": True})


ATTENTION = [row("scaled_dot_product_attention", _attention, dtypes=FLOATS, ulp=8, cancel=8,
                 specials=False)]

ROWS = ACTIVATIONS + SOFTMAX + NORMALIZATION + LOSSES + CLASSIFICATION + ATTENTION
