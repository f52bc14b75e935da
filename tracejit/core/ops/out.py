"""`out=`: results written to the caller's tensors.

In: the public functions of a module, by name. Out: the same functions, which also take `out=` and
NumPy's names of arguments. Records take both when they are called. The function computes its result
as without `out`, then stores it. So memory that `out` shares with the arguments does no harm.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from tracejit.core.ops import autocast, overriding, shapes
from tracejit.core.ops.numpy_names import PYTHON_FUNCTIONS, names_of, renamed
from tracejit.core.ops.types import CPP_NAMES, SCALAR_NAMES, asked_dtype, bool_, must_cast, uint8

# PyTorch's functions with `out=` that are no records here; records take it anyway.
TORCH = """abs absolute add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle
any arange argmax argmin argsort baddbmm bitwise_left_shift bitwise_not bitwise_right_shift bmm
bucketize cat ceil cholesky cholesky_inverse cholesky_solve clamp clip column_stack complex concat
concatenate conj_physical cross cummax cummin cumprod cumsum deg2rad diag diff div divide dot
dstack empty eye fix float_power floor floor_divide fmod frac frexp full gather ger hardshrink
histc histogram hstack index_add index_copy index_reduce index_select inner inverse isin isneginf
isposinf kron kthvalue ldexp linspace log_softmax logcumsumexp logit logspace logsumexp lu_solve
lu_unpack masked_select matmul matrix_power max mean median min mm mode msort multiply mv mvlgamma
nan_to_num nanmean nanmedian nanquantile nansum nonzero nonzero_static norm ones outer polar
polygamma pow prod qr quantile rad2deg range remainder renorm round row_stack scatter scatter_add
scatter_reduce searchsorted sgn sign signbit slice_scatter softmax sort square stack std sub
subtract sum svd take take_along_dim tensordot topk triangular_solve tril triu true_divide trunc
var vdot vstack where zeros alias_copy as_strided_copy detach_copy diagonal_copy expand_copy
narrow_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy
transpose_copy unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy view_as_real_copy
view_copy ormqr orgqr""".split()
LINALG = """cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh inv inv_ex lstsq lu
householder_product lu_factor lu_factor_ex lu_solve matmul matrix_exp matrix_norm matrix_power
matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv
tensorsolve vecdot vector_norm""".split()
SPECIAL = "log_softmax logit logsumexp multigammaln polygamma round softmax".split()
FUNCTIONAL = "avg_pool2d avg_pool3d gelu hardshrink linear normalize softplus softshrink".split()
FFT = """fft fft2 fftfreq fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2
irfftn rfft rfft2 rfftfreq rfftn""".split()
# Functions that compute in the dtype of `out` where the caller asks for no other.
_OF_ITS_DTYPE = set("""arange cumprod cumsum empty eye fftfreq full linspace logspace mean nanmean
nansum ones prod range rfftfreq sum zeros""".split())
_MAKERS = set("arange empty eye fftfreq full linspace logspace ones range rfftfreq zeros".split())
_FILLERS = set("arange linspace logspace range".split())  # any shape of as many elements will do
# Functions that cast nothing.
_EXACT = set("""addbmm addmm addmv amax amin aminmax argmax argmin avg_pool2d baddbmm bmm
bucketize cholesky cholesky_ex complex cross cummax cummin det diag diagonal_copy dot eigh
eigvalsh float_power frexp gather heaviside histc histogram index_add index_reduce index_select
inner inv inv_ex inverse isin isneginf isposinf kthvalue linear log_softmax logcumsumexp lu
lu_factor lu_factor_ex lu_solve lu_unpack masked_select matmul matrix_norm median mm mode msort
multi_dot mv nan_to_num nanquantile nonzero norm ormqr polar qr quantile renorm scatter
scatter_add scatter_reduce searchsorted signbit slice_scatter slogdet softmax solve solve_ex
solve_triangular sort svd svdvals take take_along_dim tensordot topk triangular_solve tril triu
vdot vecdot vector_norm where""".split())
_EXACT_ELEMENTWISE = set("""abs absolute bitwise_not ceil clamp clamp_max clamp_min clip
conj_physical fix floor frac gelu hardshrink lerp neg negative round sgn sign softplus softshrink
trunc""".split())


def with_out(room: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the functions of a module that take `out=`, by their names there."""
    functions = {name: room[name] for name in names}
    return {name: _taking_out(f, name, room["__name__"]) for name, f in functions.items()
            if not hasattr(f, "front")}


def _taking_out(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    names = {} if f"{module}.{name}" in PYTHON_FUNCTIONS else names_of(function)

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            if named:
                named = renamed(named, names)
                if "out" in named:
                    return written(function, name, arguments, named)
            return function(*arguments, **named)
        except Exception:
            return overriding.instead(call, arguments, named)

    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = module, function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def written(function: Callable[..., Any], name: str, arguments: tuple, named: dict) -> Any:
    """Call a function that knows no `out` and store its result there.

    RuntimeError where gradients would be recorded.
    """
    named = dict(named)
    out = named.pop("out")
    if out is None:
        return function(*arguments, **named)
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    requires_grad = False
    if name in ("all", "any") and outs[0].dtype not in (bool_, uint8):
        raise RuntimeError(f"{name} only supports bool tensor for result, got: "
                           f"{SCALAR_NAMES[outs[0].dtype.name]}")
    if name in _OF_ITS_DTYPE:
        requires_grad = named.pop("requires_grad", False)
        kind = outs[0].dtype
        asked = asked_dtype(named.get("dtype")) or kind
        if asked is not kind and name in _MAKERS:
            raise RuntimeError(f"dtype {SCALAR_NAMES[asked.name]} does not match "
                               f"dtype of out parameter ({SCALAR_NAMES[kind.name]})")
        if asked is not kind:
            raise RuntimeError(f"Expected out tensor to have dtype {CPP_NAMES[asked.name]}, but "
                               f"got {CPP_NAMES[kind.name]} instead")
        named["dtype"] = kind
    if name == "nonzero" and named.get("as_tuple"):
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    with autocast.switched_off():
        result = function(*arguments, **named)
    if name in ("all", "any"):
        result = result.to(outs[0].dtype)
    if any(result is x for x in arguments):
        # Unlike the argument, its clone requires grad only where gradients are recorded.
        result = result.clone()
    if name in _FILLERS and shapes.equal(outs[0].numel(), result.numel()):
        result = result.reshape(outs[0].shape)
    results = result if isinstance(result, tuple) else (result,)
    if len(outs) != len(results):
        raise TypeError(f"{name}(): expected {len(results)} tensors for out, got {len(outs)}")
    if any(x.requires_grad for x in results):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic "
                           "differentiation, but one of the arguments requires grad.")
    for x, to in zip(results, outs, strict=True):
        _must_be_of_its_dtype(name, arguments, x, to, len(outs))
    stored = [written_to(to, x) for x, to in zip(results, outs, strict=True)]
    if requires_grad:
        stored[0].requires_grad_()
    if not isinstance(result, tuple):
        return stored[0]
    return type(result)(*stored) if hasattr(result, "_fields") else tuple(stored)


def _must_be_of_its_dtype(name: str, arguments: tuple, result: Any, out: Any, count: int) -> None:
    """Raise RuntimeError if the function casts nothing, and would have to."""
    if result.dtype is out.dtype:
        return
    if name in _EXACT or name in ("max", "min") and count > 1 or name.endswith("_copy"):
        if name == "nonzero":
            raise RuntimeError("nonzero: Expected out tensor to have scalar type Long but got "
                               f"scalar type{SCALAR_NAMES[out.dtype.name]}")
        if name == "index_select":
            raise RuntimeError("index_select(): self and result must have the same scalar type")
        raise RuntimeError(f"{name}(): Expected out tensor to have dtype {result.dtype}, but got "
                           f"{out.dtype} instead")
    by_numbers = name == "lerp" or not any(hasattr(x, "shape") for x in arguments[1:])
    to_real = name in ("abs", "absolute") and arguments and arguments[0].dtype.is_complex
    if name in _EXACT_ELEMENTWISE and by_numbers and not to_real:
        raise RuntimeError(f"Found dtype {SCALAR_NAMES[out.dtype.name]} but expected "
                           f"{SCALAR_NAMES[result.dtype.name]}")


def written_to(out: Any, result: Any) -> Any:
    """Store the result in `out`, in the result's shape; return `out`.

    RuntimeError where the result's dtype is of a higher kind.
    """
    must_cast(result.dtype, out.dtype)
    wanted, given = tuple(result.shape), tuple(out.shape)
    if not shapes.same_shape(given, wanted):
        if out.numel():
            warnings.warn(f"An output of shape {shapes.shape_text(given)} is resized to the "
                          f"{shapes.shape_text(wanted)} of the result; `out.resize_(0)` says that "
                          "this is meant.", UserWarning, stacklevel=5)
        out.resize_(wanted)
    return out._assign(result)
