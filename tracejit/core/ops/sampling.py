"""Random numbers of a distribution: functions that overwrite a tensor, and that sample by weights.

In: a tensor, parameters of the distribution, a `Generator`. Out: the tensor with other elements
(names that end in `_`), or new samples. Called by users and by initialisation. Exponentials and
normals come bit for bit from one recipe; the rest is arithmetic on them. `multinomial`, `poisson`
and `binomial` run on the host and are functions of (seed, offset) and their operands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.core.ops import philox, shapes
from tracejit.core.ops.creation import zeros_of
from tracejit.core.ops.generators import Generator, state_of
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise import where
from tracejit.core.ops.pointwise_record import convert, is_tensor
from tracejit.core.ops.random import (
    chances,
    checked_chances,
    checked_std,
    coin,
    delivered,
    integers,
)
from tracejit.core.ops.random_record import (
    draw,
    exponential_record,
    floating,
    key_of,
    normal_record,
    scaled,
    uniform_record,
)
from tracejit.core.ops.record import Op
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.type_limits import finfo
from tracejit.core.ops.types import (
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGER,
    SCALAR_NAMES,
    TensorType,
    bool_,
    dtype,
    float64,
    int64,
)


# -- in place --------------------------------------------------------------------------------------
def _of(self: Any, record: Op, generator: Generator | None, d: dtype | None = None) -> Any:
    """Draw in the shape and on the device of a tensor."""
    return draw(record, generator, tuple(self.shape), d or self.dtype, self.device)


@method()
def uniform_(self: Any, *bounds: float, generator: Generator | None = None, **named: float) -> Any:
    """Overwrite a tensor of any shape with uniform numbers in [from, to), by default [0, 1).

    RuntimeError for bounds in the wrong order.

    >>> import tracejit
    >>> x = tracejit.zeros(9).uniform_(2, 3)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    low, high = (*bounds, *(0.0, 1.0)[len(bounds):])
    low, high = named.get("from", low), named.get("to", high)
    if self.dtype.category == COMPLEX:
        self.real.uniform_(low, high, generator=generator)
        self.imag.uniform_(low, high, generator=generator)
        return self
    floating(self.dtype, "check_uniform_bounds")
    if low > high:
        raise RuntimeError("uniform_ expects to return a [from, to) range, but found "
                           f"from={float(low):g} > to={float(high):g}")
    if high - low > finfo(self.dtype).max:
        raise RuntimeError("uniform_ expects to-from <= std::numeric_limits<"
                           f"{SCALAR_NAMES[self.dtype.name]}>::max(), but found to={high:g} and "
                           f"from={low:g} which result in to-from to exceed the limit")
    drawn = _of(self, uniform_record, generator)
    return self._assign(scaled(drawn, high - low, low))


@method()
def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *,
            generator: Generator | None = None) -> Any:
    """Overwrite a tensor of any shape with normal numbers of mean `mean` and deviation `std`.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).normal_(1.0, 0.0)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    checked_std(std)
    if self.dtype.category == COMPLEX:  # std is that of the whole number
        self.real.normal_(mean, std * math.sqrt(0.5), generator=generator)
        self.imag.normal_(0.0, std * math.sqrt(0.5), generator=generator)
        return self
    floating(self.dtype, "normal_kernel_cpu")
    drawn = _of(self, normal_record, generator)
    return self._assign(scaled(drawn, std, mean))


@method()
def bernoulli_(self: Any, p: Any = 0.5, *, generator: Generator | None = None) -> Any:
    """Overwrite a tensor of any shape with ones with probability `p` (a number or a tensor), else
    zeros.

    >>> import tracejit
    >>> tracejit.zeros(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    shape = tuple(self.shape)
    if is_tensor(p):
        drawn = chances(shape, checked_chances(p), self.device, generator)
    else:
        drawn = coin(shape, p, self.device, generator)
    return self._assign(convert(drawn, self.dtype))


def _beyond(d: dtype) -> int:
    if d is bool_:
        return 2
    if d.category == FLOATING:
        return {"float64": 2**53, "float32": 2**24, "float16": 2**11, "bfloat16": 2**8}[d.name] + 1
    return min(int(np.iinfo(d.numpy).max) + 1, 2**63 - 1)


@method()
def random_(self: Any, *bounds: Any, generator: Generator | None = None, **named: Any) -> Any:
    """Overwrite a tensor of any shape with integers in from .. to - 1; without bounds, all the
    dtype holds exactly.

    >>> import tracejit
    >>> tracejit.zeros(3).random_(1, 2)
    tensor([1., 1., 1.])
    """
    low, high = {0: (0, None), 1: (0, *bounds)}.get(len(bounds), bounds)
    low, high = named.get("from", low), named.get("to", high)
    high = _beyond(self.dtype) if high is None else high

    def drawn(low: Any, high: Any) -> Any:
        return integers(as_size(low), as_size(high), tuple(self.shape), self.dtype, self.device,
                        generator)

    widest = low + 2**63  # a wider range takes two draws
    if not (type(low) is int and low < 0 and high > widest):
        return self._assign(drawn(low, high))
    above = _of(self, uniform_record, generator, float64) >= 2**63 / (high - low)
    return self._assign(where(above, drawn(widest, high), drawn(low, widest)))


def exponential_of(like: Any, generator: Generator | None = None) -> Any:
    """Draw positive numbers of density exp(-x), as many as `like` has elements."""
    if like.dtype.category != FLOATING:
        raise RuntimeError("Exponential distribution is a continuous probability distribution. "
                           "dtype must be a floating point but you specified "
                           f"{SCALAR_NAMES[like.dtype.name]}")
    return _of(like, exponential_record, generator)


@method()
def exponential_(self: Any, lambd: float = 1.0, *, generator: Generator | None = None) -> Any:
    """Overwrite with positive numbers of density lambd exp(-lambd x).

    >>> import tracejit
    >>> bool((tracejit.zeros(9).exponential_() > 0).all())
    True
    """
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={float(lambd):g}")
    drawn = exponential_of(self, generator)
    return self._assign(drawn if lambd == 1 else drawn / lambd)


@method()
def geometric_(self: Any, p: float, *, generator: Generator | None = None) -> Any:
    """Overwrite a tensor of any shape with the number of trials up to the first success, 1, 2 ...

    Each trial succeeds with probability `p`. RuntimeError for a `p` outside of (0, 1).

    >>> import tracejit
    >>> bool((tracejit.zeros(9).geometric_(0.5) >= 1).all())
    True
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={float(p):g}")
    drawn = _of(self, exponential_record, generator, float64)
    return self._assign(convert((drawn / -math.log1p(-p)).ceil(), self.dtype))


@method()
def cauchy_(self: Any, median: float = 0.0, sigma: float = 1.0, *,
            generator: Generator | None = None) -> Any:
    """Overwrite a tensor of any shape with numbers of the Cauchy distribution, made as ratios of
    two normals.

    RuntimeError for integers and a `sigma` that is not positive.

    >>> import tracejit
    >>> tracejit.zeros(2, 3).cauchy_().shape
    tracejit.Size([2, 3])
    """
    if self.dtype.category != FLOATING:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype "
                           f"must be a floating point but you specified {self.dtype.name}")
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={float(sigma):g}")
    ratio = _of(self, normal_record, generator) / _of(self, normal_record, generator)
    return self._assign(scaled(ratio, sigma, median))


def _exp(xp: Any, input: Any) -> Any:
    half = input.dtype.itemsize == 2
    return xp.exp(input.astype(xp.float32)).astype(input.dtype) if half else xp.exp(input)


host_exp = Op(  # the array library's in every mode, so that draws are the same in all
    "host_exp", "extern", ("input",), eager=_exp,
    infer=lambda input: TensorType(input.dtype, tuple(input.shape), input.device))


@method()
def log_normal_(self: Any, mean: float = 1.0, std: float = 2.0, *,
                generator: Generator | None = None) -> Any:
    """Overwrite a tensor of any shape with exponentials of normal numbers of this mean and
    deviation.

    RuntimeError for a `std` that is not positive.

    >>> import tracejit
    >>> bool((tracejit.zeros(9).log_normal_() > 0).all())
    True
    """
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={float(std):g}")
    floating(self.dtype, "log_normal_cpu")
    return self._assign(host_exp(scaled(_of(self, normal_record, generator), std, mean)))


# -- by weights ------------------------------------------------------------------------------------
def _on_host(array: Any) -> np.ndarray:
    return np.asarray(array.get() if hasattr(array, "get") else array, np.float64)


def _multinomial_array(xp: Any, state: Any, input: Any, offset: int, samples: int,
                       replacement: bool) -> Any:
    weights = _on_host(input)
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (weights.sum(-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    rows = weights.reshape(math.prod(weights.shape[:-1]), weights.shape[-1])
    choose = _with_replacement if replacement else _without_replacement
    chosen = choose(key_of(state, offset), rows, samples)
    return xp.asarray(chosen.reshape(*weights.shape[:-1], samples))


def _with_replacement(key: tuple[int, int], rows: np.ndarray, samples: int) -> np.ndarray:
    """Choose the category whose share of the running sum a uniform number falls in."""
    sums = rows.cumsum(1)
    uniform = philox.philox_uniform_numpy(*key, len(rows) * samples, np.float64)
    chosen = np.empty((len(rows), samples), np.int64)
    for k, marks in enumerate(uniform.reshape(len(rows), samples)):
        last = np.flatnonzero(rows[k])[-1]
        chosen[k] = np.minimum(np.searchsorted(sums[k], marks * sums[k, -1], "right"), last)
    return chosen


def _without_replacement(key: tuple[int, int], rows: np.ndarray, samples: int) -> np.ndarray:
    """Choose the first to arrive: waiting times are exponential, with the weights as rates."""
    waits = philox.philox_exponential_numpy(*key, rows.size, np.float64).reshape(rows.shape)
    with np.errstate(divide="ignore"):
        return np.argsort(waits / rows, axis=1, kind="stable")[:, :samples].astype(np.int64)


multinomial_record = Op(
    "multinomial", "extern", ("state", "input"), eager=_multinomial_array, may_fail=True,
    infer=lambda state, input, offset, samples, replacement: TensorType(
        int64, (*tuple(input.shape)[:-1], samples), input.device))


@method()
def multinomial(input: Any, num_samples: Any, replacement: bool = False, *,
                generator: Generator | None = None, out: Any = None) -> Any:
    """Draw positions by weights: each row of `input` gives `num_samples` of its positions.

    >>> import tracejit
    >>> tracejit.multinomial(tracejit.tensor([0.0, 3.0, 0.0]), 2, replacement=True).tolist()
    [1, 1]

    RuntimeError for weights that are no distribution, for more samples than categories, for more
    than 2**24 categories, and for an `out` of another dtype than int64.
    """
    if len(input.shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if input.dtype.category != FLOATING:
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{SCALAR_NAMES[input.dtype.name]}")
    if out is not None and out.dtype is not int64:
        raise RuntimeError("multinomial expects Long tensor out, got: "
                           f"{SCALAR_NAMES[out.dtype.name]}")
    samples = as_size(num_samples)
    if samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without "
                           "replacement")
    if input.shape[-1] > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    state, offset = state_of(generator)
    return delivered(multinomial_record(state, input, offset=offset, samples=samples,
                                        replacement=bool(replacement)), out)


# -- counts ----------------------------------------------------------------------------------------
def _stream(state: Any, offset: int) -> np.random.Generator:
    """Return NumPy's generator at a place of its own for each (seed, offset)."""
    key, drawn = key_of(state, offset)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, drawn, 0, 0]))


def _poisson_array(xp: Any, state: Any, input: Any, offset: int) -> Any:
    rates = _on_host(input)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return xp.asarray(np.asarray(_stream(state, offset).poisson(rates)).astype(input.dtype))


def _binomial_array(xp: Any, state: Any, count: Any, prob: Any, offset: int) -> Any:
    trials, chance = np.broadcast_arrays(_on_host(count), _on_host(prob))
    known = np.isfinite(trials) & np.isfinite(chance)
    counts = np.where(known, np.maximum(trials, 0), 0).astype(np.int64)
    drawn = _stream(state, offset).binomial(counts, np.where(known, chance, 0).clip(0, 1))
    return xp.asarray(np.where(known, drawn, np.nan).astype(count.dtype))


poisson_record = Op(
    "poisson", "extern", ("state", "input"), eager=_poisson_array, may_fail=True,
    infer=lambda state, input, offset: TensorType(input.dtype, tuple(input.shape), input.device),
    rules={"input": lambda grad, input_type: zeros_of(grad, input_type)})
binomial_record = Op(
    "binomial", "extern", ("state", "count", "prob"), eager=_binomial_array,
    infer=lambda state, count, prob, offset: TensorType(
        count.dtype, shapes.broadcast(tuple(count.shape), tuple(prob.shape)), count.device))


def poisson(input: Any, generator: Generator | None = None) -> Any:
    """Draw counts of a Poisson distribution with the rates of `input`, in its dtype.

    >>> import tracejit
    >>> tracejit.poisson(tracejit.zeros(2)).tolist()
    [0.0, 0.0]

    RuntimeError for a negative rate.
    """
    floating(input.dtype, "poisson_cpu")
    state, offset = state_of(generator)
    return poisson_record(state, input, offset=offset)


def binomial(count: Any, prob: Any, generator: Generator | None = None) -> Any:
    """Draw the number of successes among `count` trials of probability `prob`; the two broadcast.

    >>> import tracejit
    >>> tracejit.binomial(tracejit.tensor([4.0]), tracejit.tensor([1.0])).tolist()
    [4.0]

    ValueError if one is not floating point.
    """
    for name, x in (("count", count), ("prob", prob)):
        if x.dtype.category in (BOOL, INTEGER):
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: "
                             f"{SCALAR_NAMES[x.dtype.name]}")
    state, offset = state_of(generator)
    return binomial_record(state, count, prob, offset=offset)
