"""PyTorch's own samples of its operators, run through tracejit: eager, graph and compiled.

In: `op_db`, the calls PyTorch tests its operators with (empty tensors, 0-dim ones, odd strides,
every keyword), for each operator that tracejit has under the same name. Every sample must agree in
structure, dtype, shape, requires_grad, values and gradients. What differs by design is in one
table, `BY_DESIGN`; an entry that no longer differs fails too.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracejit
from tests.shares import share

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.filterwarnings("error::DeprecationWarning:tracejit"),
]

F = tracejit.nn.functional
ROOMS = {
    "": tracejit, "fft": tracejit.fft, "linalg": tracejit.linalg, "nn.functional": F,
    "signal.windows": tracejit.signal.windows, "special": tracejit.special,
}  # fmt: skip
DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64)
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 1e-5, torch.float64: 1e-8,
             torch.complex64: 1e-5, torch.complex128: 1e-8}  # fmt: skip
# Large scores make exponentials sensitive; PyTorch's own kernels of it differ as much.
ATTENTION = "nn.functional.scaled_dot_product_attention"
CONVOLUTIONS = [f"nn.functional.conv{n}d" for n in (1, 2, 3)]
# Its float32 trigamma cancels next to the poles.
POLYGAMMA = ["polygamma", "special.polygamma"]
LOOSER = {ATTENTION: 30, **dict.fromkeys([*CONVOLUTIONS, *POLYGAMMA], 4)}
# Of these, with hundreds of samples, every n-th in all modes; primes leave no argument out.
THINNED = {"cov": 7, "ormqr": 7, "diff": 5, "logspace": 19, "logspace.tensor_overload": 61,
           "nanquantile": 7, "quantile": 5, "searchsorted": 5, "nn.functional.max_pool2d": 11,
           "nn.functional.max_pool3d": 7, "nn.functional.grid_sample": 5,
           "nn.functional.max_unpool2d": 5}  # fmt: skip
COMPILED_SAMPLES = 2  # of each operator; what compiles is in tests/ops, sample by sample
FEW_SAMPLES = 6

# What op_db calls under these names, where that is not the function of the name.
CALLS: dict[str, Callable[..., Any] | None] = {
    "einsum": lambda operands, equation: tracejit.einsum(equation, *operands),
    "normal.in_place": lambda input, mean, std: input.clone().normal_(mean, std),
    "where": lambda input, condition, other: tracejit.where(condition, input, other),
    "nn.functional.embedding": lambda weight, index, **kw: F.embedding(index, weight, **kw),
    "nn.functional.embedding_bag": lambda weight, index, **kw: F.embedding_bag(index, weight, **kw),
    "polygamma": lambda input, n: tracejit.polygamma(n, input),
    "special.polygamma": lambda input, n: tracejit.special.polygamma(n, input),
    **{name: lambda input, *a, _name=f"{name}_", **k: getattr(input.clone(), _name)(*a, **k)
       for name in ("cauchy", "exponential", "geometric", "log_normal", "uniform")},
    "zero_": lambda input: input.clone().zero_(),
    "linalg.lstsq.grad_oriented": lambda a, b, driver: tracejit.linalg.lstsq(
        a, b, driver=driver)[:2],
    "to_sparse": None,  # a SparseTensor is no Tensor: tests/eager/test_sparse.py
    "linalg.pinv.singular": None,  # slow in PyTorch: a row of tests/ops is such a sample
    "T": lambda input: input.T,
    "mT": lambda input: input.mT,
    "svd_lowrank": lambda a, b, **how: tracejit.svd_lowrank(a @ b.mT, **how),
    "pca_lowrank": lambda a, b, **how: tracejit.pca_lowrank(a @ b.mT, **how),
    "H": lambda input: input.H,
    "mH": lambda input: input.mH,
}



def _svd_without_signs(found: Any) -> tuple:
    """(U, S, V) or (U, S, Vh): singular vectors but for their signs, none beyond the values."""
    left, values, right = found
    k = values.shape[-1]
    right = right.conj() if type(found).__name__ == "svd" else right.mT
    left, right = left[..., :k], right[..., :k]
    return abs(left), values, abs(right), left @ right.mT


# What is compared of results of which LAPACK libraries choose a part.
DETERMINED: dict[str, Callable[..., Any]] = {
    "svd": _svd_without_signs,
    "linalg.svd": _svd_without_signs,
    **dict.fromkeys(("svd_lowrank", "pca_lowrank"), lambda found: (
        found[1], (found[0] * found[1].unsqueeze(-2)) @ found[2].mH)),
    "linalg.eig": lambda found: (found[1] * found[0].unsqueeze(-2)) @ found[1].inverse(),
    "linalg.eigvals": lambda found: (found.sum(-1), found.square().sum(-1), found.prod(-1)),
    "linalg.eigh": lambda found: (found[0], abs(found[1])),
}

# Random or undefined: all but the values must agree.
WITHOUT_VALUES = {
    "bernoulli", "cauchy", "empty", "empty_like", "exponential", "geometric", "log_normal",
    "empty_permuted", "empty_strided", "multinomial", "uniform", "new_empty", "new_empty_strided",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "nn.functional.rrelu", "normal", "rand_like",
    "randint", "randint_like", "randn", "randn_like",
}  # fmt: skip


class Difference(NamedTuple):
    """Samples of an operator that differ by design: those for which `which` holds.

    everywhere  else PyTorch computes otherwise only on some processors
    """

    which: Callable[[Any], bool]
    reason: str
    everywhere: bool = True


def _of_half(sample: Any) -> bool:
    return any(getattr(x, "dtype", x) is torch.float16
               for x in (sample.input, *sample.kwargs.values()))


def _of_few_values(sample: Any) -> bool:
    x = sample.input
    return not x.dtype.is_floating_point or x.unique().numel() < x.numel()


_TIES = Difference(_of_few_values, "equal elements keep their order here, stable=True or not")
_HALF_SUMS = Difference(_of_half, "PyTorch adds half precision products in half precision here")
_HALF_SUMS_OF_SOME = _HALF_SUMS._replace(everywhere=False)
BY_DESIGN: dict[str, Difference] = {
    "nn.functional.triplet_margin_with_distance_loss": Difference(
        lambda sample: True, "its samples bring PyTorch's own distance along"),
    **{f"nn.functional.conv_transpose{n}d": _HALF_SUMS_OF_SOME for n in (1, 2, 3)},
    "linalg.householder_product": Difference(
        lambda sample: sample.input.dtype is torch.complex64,
        "PyTorch's gradient has lost four digits in complex64; here it loses none", False),
    **{f"_segment_reduce.{bounds}": Difference(_of_half, "sums of float16 are rounded once")
       for bounds in ("lengths", "offsets")},
    "argsort": _TIES,
    **dict.fromkeys(("complex", "view_as_complex"), Difference(
        _of_half, "there are no complex numbers of two float16")),
    "kthvalue": _TIES,
    "as_strided.partial_views": Difference(
        lambda sample: True, "as_strided sees a tensor's own elements, not all of its storage"),
    "as_strided_scatter": Difference(
        lambda sample: True, "an element that is written over has no gradient; PyTorch's has one"),
    "istft": Difference(
        lambda sample: sample.kwargs.get("window", sample.input)._is_view(),
        "PyTorch finds no gradient of these samples' windows, leaves that are views"),
    "matrix_exp": Difference(
        lambda sample: _of_half(sample) or sample.input.ndim == 3,
        "computed in float64 and rounded once, not in the tensor's own dtype"),
    "gradient": Difference(_of_half, "slopes of float16 are rounded in another order"),
    "renorm": Difference(
        lambda sample: sample.input.dtype.is_complex and sample.args[0] == float("inf"),
        "the largest magnitude of complex numbers has a gradient; PyTorch's is nan"),
    "histc": Difference(_of_half, "the bins of float16 are not themselves rounded to float16"),
    "linspace": Difference(_of_half, "computed in float64 and rounded once, not in float16"),
    "linspace.tensor_overload": Difference(
        _of_half, "computed in float64 and rounded once, not in float16"),
    "nn.functional.binary_cross_entropy_with_logits": Difference(
        _of_half, "computed in float32 and rounded once, not in float16"),
    "nn.functional.interpolate.trilinear": Difference(
        _of_half, "computed in float32 and rounded once, not in float16"),
    "histogramdd": Difference(
        lambda sample: any(x.diff().min() < 0 for x in sample.args[0] if hasattr(x, "diff"))
        if isinstance(sample.args[0], list) else False,
        "edges that are not in order are refused"),
    "mode": Difference(lambda sample: sample.input.numel() > 1000,
                       "the last of equal elements, also where there are many"),
    "pca_lowrank": Difference(
        lambda sample: sample.input.dtype.is_complex,
        "gradients go through the random start, whose rounding is larger than the tolerance"),
    "sort": _TIES,
    "svd_lowrank": Difference(
        lambda sample: sample.kwargs["M"] is not None or sample.input.dtype.is_complex,
        "an approximation that starts from other random numbers"),
    "topk": _TIES,
}


def identity(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def ours(op: Any) -> Callable[..., Any] | None:
    """What tracejit has under op_db's name: a function, else a method."""
    for name in (identity(op), op.name):
        if name in CALLS:
            return CALLS[name]
    *room, last = name.split(".")
    where = ROOMS.get(".".join(room))
    if where is None:
        return None
    found = getattr(where, last, None)
    if not room and (found is None or isinstance(found, tracejit.dtype)):
        found = getattr(tracejit.Tensor, last, None)
    return found if callable(found) else None


OPERATORS = [op for op in op_db if ours(op) is not None]


@functools.lru_cache(maxsize=1)
def samples(number: int) -> list[Any]:
    """(dtype, sample) of all dtypes; the three modes of operator `number` share them."""
    op, found = OPERATORS[number], []
    for dtype in DTYPES:
        if dtype in op.dtypes:
            torch.manual_seed(0)
            has_grad = dtype.is_floating_point or (
                dtype.is_complex and dtype in op.supported_backward_dtypes("cpu"))
            grad = has_grad and op.supports_autograd
            every = list(op.sample_inputs("cpu", dtype, requires_grad=grad))
            found += [(dtype, s) for s in every[::THINNED.get(identity(op), 1)]]
    return found


# -- from PyTorch's tensors to ours ----------------------------------------------------------------


def converted(x: Any, leaves: list) -> Any:
    """`x` with tracejit's tensors, dtypes and devices; (theirs, ours) that require grad."""
    if isinstance(x, torch.Tensor):
        made = tracejit.from_numpy(array(x).copy())
        if x.requires_grad:
            leaves.append((x, made.requires_grad_()))
        return made
    if isinstance(x, (torch.dtype, torch.layout, torch.memory_format)):
        return getattr(tracejit, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return str(x)
    if isinstance(x, (list, tuple)):
        return (tuple if isinstance(x, torch.Size) else type(x))(converted(v, leaves) for v in x)
    return x


def array(x: Any) -> np.ndarray:
    x = x.detach()
    if isinstance(x, torch.Tensor):
        x = x.resolve_conj().resolve_neg()
    wide = str(x.dtype).endswith("bfloat16")
    if isinstance(x, torch.Tensor):
        return (x.float() if wide else x).numpy(force=True)
    return np.asarray((x.float() if wide else x).numpy())


def flat(results: Any) -> Iterator[Any]:
    if isinstance(results, (list, tuple)):
        for x in results:
            yield from flat(x)
    else:
        yield results


# -- one sample ------------------------------------------------------------------------------------


def difference(op: Any, function: Callable[..., Any], sample: Any) -> str | None:
    """How tracejit's answer to a sample differs from PyTorch's; None where it does not."""
    seen = DETERMINED.get(op.name, lambda found: found)
    torch.manual_seed(0)
    tracejit.manual_seed(0)  # what is approximated from a random start is so from the same one
    expected = list(flat(seen(op(sample.input, *sample.args, **sample.kwargs))))
    leaves: list = []
    try:
        args = [converted(x, leaves) for x in (sample.input, *sample.args)]
        kwargs = {k: converted(v, leaves) for k, v in sample.kwargs.items()}
        found = list(flat(seen(function(*args, **kwargs))))
    except NotImplementedError as error:  # complex numbers are refused by name
        return None if "complex tensors are not supported" in str(error) else f"{error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    with_values = defined(op, sample)
    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for got, want in zip(found, expected):
        wrong = mismatch(got, want, with_values, LOOSER.get(op.name, 1))
        if wrong:
            return wrong
    return gradient_mismatch(found, expected, leaves) if with_values else None


def defined(op: Any, sample: Any) -> bool:
    """Whether the values of the result are determined."""
    chance = sample.kwargs.get("dropout_p", 0)
    if "dropout" in op.name:
        chance = sample.kwargs.get("p", 0.5)
    return op.name not in WITHOUT_VALUES and not 0 < chance < 1


def mismatch(got: Any, want: Any, with_values: bool, looser: float) -> str | None:
    """How a result differs in kind, dtype, shape, requires_grad or values."""
    if not isinstance(want, torch.Tensor):
        close = got == want or not with_values or np.allclose(got, want, equal_nan=True)
        return None if close else f"{got!r}, expected {want!r}"
    if not isinstance(got, tracejit.Tensor):
        return f"{type(got).__name__}, expected a tensor"
    for name, mine, other in (
            ("dtype", str(got.dtype).partition(".")[2], str(want.dtype).partition(".")[2]),
            ("shape", tuple(got.shape), tuple(want.shape)),
            ("requires_grad", got.requires_grad, want.requires_grad)):
        if mine != other:
            return f"{name} {mine}, expected {other}"
    tolerance = TOLERANCE.get(want.dtype, 0) * looser
    return unequal(array(got), array(want), tolerance) if with_values else None


def unequal(got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    close = np.isclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    if close.all():
        return None
    where = tuple(np.argwhere(~close)[0])
    return f"at {where}: {got[where]}, expected {want[where]}"


def gradient_mismatch(found: list, expected: list, leaves: list) -> str | None:
    """How the gradients of a weighted sum of all results differ."""
    pairs = [(got, want) for got, want in zip(found, expected)
             if isinstance(want, torch.Tensor) and want.requires_grad]
    exact = (torch.float32, torch.complex64)
    if not pairs or any(x.dtype not in exact for x, _ in leaves):
        return None
    weights = [weight(want) for _, want in pairs]
    wanted = torch.autograd.grad([want for _, want in pairs], [x for x, _ in leaves],
                                 [torch.from_numpy(w).to(want.dtype)
                                  for w, (_, want) in zip(weights, pairs)], allow_unused=True)
    try:
        grads = tracejit.autograd.grad([got for got, _ in pairs], [x for _, x in leaves],
                                       [tracejit.from_numpy(w).to(got.dtype)
                                        for w, (got, _) in zip(weights, pairs)], allow_unused=True)
    except Exception as error:
        return f"backward: {type(error).__name__}: {error}"
    for k, (got, want) in enumerate(zip(grads, wanted)):
        if got is None and want is None:
            continue
        shape = tuple(leaves[k][0].shape)
        values = [np.zeros(shape) if g is None else array(g) for g in (got, want)]
        wrong = unequal(*values, tolerance=1e-4)
        if wrong:
            return f"gradient of tensor {k} {wrong}"
    return None


def weight(of: Any) -> np.ndarray:
    """The gradient to start from, in float32 or complex64."""
    places = np.arange(of.numel()).reshape(of.shape)
    values = np.cos(places)
    if of.dtype.is_complex:
        return np.asarray(values + 1j * np.sin(2 * places + 1)).astype(np.complex64)
    return np.asarray(values).astype(np.float32)


# -- the tests -------------------------------------------------------------------------------------


def brief(sample: Any) -> str:
    given = inspect.cleandoc(str(sample.summary()))
    return given if len(given) < 200 else given[:200] + "..."


def wrong_samples(number: int, mode: str) -> list[str]:
    """A line for each sample that differs and should not."""
    op = OPERATORS[number]
    function = ours(op)
    assert function is not None
    known = BY_DESIGN.get(identity(op))
    wrong, as_designed = [], 0
    for dtype, sample in chosen(number, mode):
        different = difference(op, in_mode(function, mode), sample)
        if known is not None and known.which(sample):
            as_designed += different is not None
        elif different is not None:
            wrong.append(f"{dtype} {brief(sample)}: {different}")
    if known is not None and known.everywhere and mode == "eager" and not as_designed:
        wrong.append(f"agrees: take it from BY_DESIGN ({known.reason})")
    return wrong


def chosen(number: int, mode: str) -> list[Any]:
    """The samples for a mode. Of complex numbers one is enough where programs are made, and none
    where they are compiled: they are the same calls."""
    everything = samples(number)
    if mode == "eager":
        return everything
    if mode == "few":
        return everything[::max(1, len(everything) // FEW_SAMPLES)]
    of_complex = [pair for pair in everything if pair[0].is_complex]
    rest = [pair for pair in everything if not pair[0].is_complex]
    return rest[:COMPILED_SAMPLES] if mode == "compiled" else [*rest, *of_complex[:1]]


def in_mode(function: Callable[..., Any], mode: str) -> Callable[..., Any]:
    if mode in ("eager", "few"):
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return tracejit.script(call, mode=mode)


# Quick runs take a few samples of each operator, and of the operators one in so many.
SHARES = {"few": 2, "graph": 20, "compiled": 20}
CASES = [
    pytest.param(number, mode, id=f"{name}-{mode}", marks=share(f"{name}-{mode}", SHARES[mode])
                 if mode in SHARES else pytest.mark.full)
    for number, name in enumerate(map(identity, OPERATORS)) for mode in ("eager", *SHARES)
]  # fmt: skip


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_samples_agree_with_pytorch(number: int, mode: str) -> None:
    wrong = wrong_samples(number, mode)
    assert not wrong, f"{len(wrong)} of {len(samples(number))} differ:\n" + "\n".join(wrong[:5])


def test_there_are_samples() -> None:
    assert len(OPERATORS) > 250
    assert set(BY_DESIGN) <= {identity(op) for op in OPERATORS}
