"""Ops on whole tensors: run an op on all samples at once.

In: an op, its attributes, and its operands, with the wholes for samples; their first dimension
counts the samples. Out: the whole of its result. An op has a rule by its name or kind. Any other
runs sample by sample and its results are stacked, which is right for every op that makes new
tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tracejit.core.eager.state import TensorState
from tracejit.core.ops.creation import iota, zeros
from tracejit.core.ops.joining import stack
from tracejit.core.ops.movement import expand, movedim, reshape, unsqueeze
from tracejit.core.ops.pointwise_record import convert
from tracejit.core.ops.random_record import randint_record
from tracejit.core.ops.record import REGISTRY, Op, apply
from tracejit.core.ops.shapes import broadcast
from tracejit.core.ops.types import TensorType, int64

CLONE = REGISTRY["clone"]
Rule = Callable[["Application"], Any]


class Application:
    """Op to be run on `count` samples; `mapped` is True for operands that are wholes."""

    def __init__(self, op: Op, operands: Sequence[Any], mapped: Sequence[bool], attributes: dict,
                 count: Any):
        self.op, self.operands, self.mapped = op, operands, mapped
        self.attributes, self.count = attributes, count

    def rank(self, k: int) -> int:
        """Return the number of dimensions of a sample of operand `k`."""
        x = self.operands[k]
        return len(x.shape) - self.mapped[k] if isinstance(x, TensorState) else 0

    def ranks(self) -> int:
        """Return the largest number of dimensions among all operands."""
        return max(self.rank(k) for k in range(len(self.operands)))

    def full(self, k: int) -> Any:
        """Return operand `k` once for each sample."""
        x = self.operands[k]
        if self.mapped[k] or not isinstance(x, TensorState):
            return x
        return expand(unsqueeze(x, 0), self.count, *x.shape)

    def all_full(self) -> list[Any]:
        return [self.full(k) for k in range(len(self.operands))]

    def aligned(self, k: int, rank: int) -> Any:
        """Return operand `k` so that it broadcasts with others of at most `rank` dimensions."""
        x = self.operands[k]
        for _ in range(rank - self.rank(k) if self.mapped[k] else 0):
            x = unsqueeze(x, 1)
        return x

    def run(self, operands: Sequence[Any], **changed: Any) -> Any:
        """Run the op with other operands and some other attributes."""
        return apply(self.op, tuple(operands), {**self.attributes, **changed})

    def has_rule(self) -> bool:
        """Return True if the op runs on wholes. A composite without a rule runs as its body."""
        return rule_of(self.op) is not None or self.op.body is None

    def one_by_one(self) -> Any:
        """Return the results for all samples, computed one after the other."""
        if self.op.views:
            raise NotImplementedError(f"vmap: {self.op.name} is not supported, as its result "
                                      "shares memory with its operand")
        if self.count == 0:
            return self._empty()
        found = [self.run([x.select(0, k) if mapped else x
                           for x, mapped in zip(self.operands, self.mapped)])
                 for k in range(self.count)]
        if type(found[0]) is tuple:
            return tuple([stack(each) for each in zip(*found)])
        return stack(found)

    def _empty(self) -> Any:
        samples = [TensorType(x.dtype, tuple(x.shape)[1:], x.device) if mapped else x
                   for x, mapped in zip(self.operands, self.mapped)]
        types = self.op.infer(*samples, **self.attributes)
        many = types if type(types) is tuple else (types,)
        made = tuple([zeros(0, *t.shape, dtype=t.dtype, device=t.device) for t in many])
        return made if type(types) is tuple else made[0]

    def drawn(self) -> Any:
        """Draw random numbers, others for each sample."""
        if self.op.name == "randperm":
            size, kind = self.attributes["shape"][0], self.attributes["dtype"]
            keys = apply(randint_record, tuple(self.operands), {
                **self.attributes, "shape": (self.count, size), "dtype": int64,
                "low": 0, "high": 2**63 - 1})
            return convert(keys.argsort(1), kind)
        if self.op.name == "multinomial":
            chances = self.full(1)
            if len(chances.shape) < 3:
                return self.run([self.operands[0], chances])
            found = self.run([self.operands[0], _flat(chances)])
            return _apart(found, chances.shape[0], chances.shape[1], 0)
        if self.op.kind == "random":
            return self.run(self.operands, shape=(self.count, *self.attributes["shape"]))
        rank = self.ranks()
        wide = [expand(self.aligned(k, rank), self.count, *self.aligned(k, rank).shape[1:])
                if self.mapped[k] else self.full(k) for k in range(1, len(self.operands))]
        return self.run([self.operands[0], *wide])


def result_of(application: Application) -> Any:
    """Return the whole of an op's result."""
    rule = rule_of(application.op)
    return application.one_by_one() if rule is None else rule(application)


@cache
def rule_of(op: Op) -> Rule | None:
    """Return the function that runs an op on wholes, or None."""
    found = _BY_NAME.get(op.name)
    if found is None and op.kind == "reduction":
        return _along_dims
    if found is None and op.body is None and (op.kind == "pointwise" or _is_elementwise(op)):
        return _broadcast
    return found


def _is_elementwise(op: Op) -> bool:
    """Return True if the op has no attributes, and its result the shape to which its operands
    broadcast."""
    return tuple(inspect.signature(op.infer).parameters) == ("operands",)


# -- rules -----------------------------------------------------------------------------------------
def _broadcast(application: Application) -> Any:
    rank = application.ranks()
    return application.run([application.aligned(k, rank)
                            for k in range(len(application.operands))])


def _as_it_is(application: Application) -> Any:
    """Run an op on the last dimensions, or on each element: no attribute changes."""
    return application.run(application.all_full())


_DIMS = ("dim", "dims", "dim1", "dim2")


def _behind(dim: int) -> int:
    """Return the dimension in the whole for one of a sample; negative ones count from the end."""
    return dim + 1 if dim >= 0 else dim


def _along_dims(application: Application) -> Any:
    """Run an op along given dimensions, one further behind in the wholes."""
    given = {name: application.attributes[name] for name in _DIMS
             if name in application.attributes}
    if any(dims != () for dims in given.values()) and not application.rank(0):
        return application.one_by_one()  # numbers count as having one dimension
    moved = {name: tuple(map(_behind, dims)) if isinstance(dims, (tuple, list)) else _behind(dims)
             for name, dims in given.items()}
    return application.run(application.all_full(), **moved)


def _matrices(application: Application) -> Any:
    """Run an op on stacks of matrices that broadcast."""
    matrices, others = application.all_full()
    wide = [matrices, others]
    for k in (0, 1):
        for _ in range(application.ranks() - application.rank(k)):
            wide[k] = unsqueeze(wide[k], 1)
    found = application.run(wide)
    if type(found) is tuple:  # (solution, info)
        return found[0], reshape(found[1], *matrices.shape[:-2])
    return found


def _qr(application: Application) -> Any:
    if application.attributes["mode"] == "r":  # what stands for Q has one shape for all
        return application.one_by_one()
    return application.run(application.operands)


def _reshape(application: Application) -> Any:
    shape = application.attributes["shape"]
    return application.run(application.operands, shape=(application.count, *shape))


def _permute(application: Application) -> Any:
    dims = application.attributes["dims"]
    return application.run(application.operands, dims=(0, *map(_behind, dims)))


def _expand(application: Application) -> Any:
    shape = application.attributes["shape"]
    return application.run([application.aligned(0, len(shape))],
                           shape=(application.count, *shape))


def _unsqueeze(application: Application) -> Any:
    return application.run(application.operands, dim=application.attributes["dim"] + 1)


def _together(application: Application) -> Any:
    """Run a composite of operands that broadcast, expanded to one shape."""
    rank = application.ranks()
    wide = [application.aligned(k, rank) for k in range(len(application.operands))]
    sizes = broadcast(*[tuple(x.shape) for x in wide if isinstance(x, TensorState)])
    return application.run([expand(x, *sizes) if isinstance(x, TensorState) else x for x in wide])


def _constant_pad(application: Application) -> Any:
    return application.run(application.operands, pads=((0, 0), *application.attributes["pads"]))


def _matmul(application: Application) -> Any:
    x, y = application.operands
    if application.mapped[1] or application.ranks() > 2:
        return application.run(application.all_full())
    return _apart(application.run([_flat(x), y]), x.shape[0], x.shape[1], 0)




def _merged(application: Application) -> Any:
    """Run an op that treats the elements of the first dimension apart: samples are more of them."""
    operands = application.all_full()
    many = operands[0].shape[1]
    found = application.run([_flat(x) for x in operands])
    if type(found) is tuple:
        return tuple([_apart(x, application.count, many, 0) for x in found])
    return _apart(found, application.count, many, 0)


def _flat(x: Any, dim: int = 0) -> Any:
    """Make one dimension of `dim` and the next."""
    return reshape(x, *x.shape[:dim], x.shape[dim] * x.shape[dim + 1], *x.shape[dim + 2:])


def _apart(x: Any, first: Any, second: Any, dim: int) -> Any:
    """Make two dimensions of `dim`."""
    return reshape(x, *x.shape[:dim], first, second, *x.shape[dim + 1:])


def _channels(x: Any) -> Any:
    """Move samples into the channels: (samples, N, C, ...) becomes (N, samples * C, ...)."""
    return _flat(movedim(x, 0, 1), 1)


def _convolution(application: Application) -> Any:
    """Run `conv` and `conv_input`: the samples are groups of channels where weights differ."""
    input, weight = application.all_full()
    if not application.mapped[1]:
        found = application.run([_flat(input), application.operands[1]])
        return _apart(found, input.shape[0], input.shape[1], 0)
    count, groups = application.count, application.attributes["groups"]
    found = application.run([_channels(input), _flat(weight)], groups=count * groups)
    return movedim(_apart(found, count, found.shape[1] // count, 1), 1, 0)


def _convolution_weight(application: Application) -> Any:
    input, other = application.all_full()
    count, groups = application.count, application.attributes["groups"]
    found = application.run([_channels(input), _channels(other)], groups=count * groups)
    return _apart(found, count, found.shape[0] // count, 0)


def _in_place(dims: Sequence[int]) -> bool:
    """Return True if the dimensions of index tensors stand where the indexed ones did, else
    first."""
    return dims[-1] - dims[0] + 1 == len(dims)


def _index(application: Application) -> Any:
    input, dims = application.operands[0], application.attributes["dims"]
    common = application.rank(1)
    place = dims[0] if _in_place(dims) else 0
    if not any(application.mapped[1:]):
        found = application.run(application.operands, dims=tuple(map(_behind, dims)))
        return found if _in_place(dims) else movedim(found, common, 0)
    if not application.mapped[0]:
        indices = [application.full(k) for k in range(1, len(application.operands))]
        return movedim(application.run([input, *indices]), place, 0)
    found = application.run([input, *_with_samples(application, 1)],
                            dims=(0, *map(_behind, dims)))
    return movedim(found, tuple(range(1, common + 1)),
                   tuple(range(place + 1, place + common + 1)))


def _with_samples(application: Application, first: int) -> list[Any]:
    """Return index tensors from operand `first` on, led by the number of the sample."""
    indices = [application.full(k) for k in range(first, len(application.operands))]
    number = iota(application.count, device=indices[0].device)
    for _ in indices[0].shape[1:]:
        number = unsqueeze(number, len(number.shape))
    return [expand(number, *indices[0].shape), *indices]


def _index_put(application: Application) -> Any:
    dims, common = application.attributes["dims"], application.rank(2)
    place = dims[0] if _in_place(dims) else 0
    src = movedim(application.full(1), tuple(range(place + 1, place + common + 1)),
                  tuple(range(1, common + 1)))
    return application.run([application.full(0), src, *_with_samples(application, 2)],
                           dims=(0, *map(_behind, dims)))


_BY_NAME: dict[str, Rule] = {
    "reshape": _reshape, "permute": _permute, "expand": _expand, "constant_pad": _constant_pad,
    "matmul": _matmul, "conv": _convolution, "conv_input": _convolution,
    "conv_weight": _convolution_weight, "index": _index, "index_put": _index_put,
    "index_put_add": _index_put, "linalg_qr": _qr, "linalg_solve_ex": _matrices,
    "linalg_solve_triangular": _matrices, "cholesky_solve": _matrices, "unsqueeze": _unsqueeze,
    "median": Application.one_by_one, "nanmedian": Application.one_by_one,
}  # fmt: skip
_BY_NAME |= dict.fromkeys("nan_to_num polar div_trunc bernoulli_outcome".split(), _together)
_BY_NAME |= dict.fromkeys(
    "squeeze slice slice_backward slice_scatter select diagonal diagonal_scatter cat "
    "flip roll unfold gather scatter scatter_add scatter_reduce cumsum cumprod cummax cummin "
    "logcumsumexp logcumsumexp_backward sort mode fft_c2c fft_r2c fft_c2r mean var std var_mean "
    "std_mean norm topk glu softmax log_softmax logsumexp prod_others max_along min_along "
    "median_along nanmedian_along kthvalue_along".split(), _along_dims)
_BY_NAME |= dict.fromkeys(
    "real imag reinterpret view_as_real view_as_complex tril triu to_device within polygamma "
    "host_exp frexp "
    "linalg_inv_ex cholesky_inverse regular_inverse cofactors linalg_det "
    "linalg_slogdet linalg_svd linalg_svdvals linalg_eigh linalg_eigvalsh linalg_cholesky_ex "
    "linalg_lu_factor_ex lu_permutation lu_regular linalg_matrix_exp linalg_eig "
    "linalg_eigvals".split(), _as_it_is)
_BY_NAME |= dict.fromkeys(
    [f"{name}{d}d{after}" for d in (1, 2, 3) for after in ("", "_backward")
     for name in ("max_pool", "adaptive_max_pool", "avg_pool", "adaptive_avg_pool", "interpolate")]
    + ["max_pool_backward", "im2col", "col2im"], _merged)
