"""Eager tensors and autograd with PyTorch's names, and decorators that compile the code that uses
them.

The public names, PyTorch's spelling; nothing else. Names that compile (`script`, `trace`, `compare`
...) are loaded when code first asks for them, so that importing the package stays cheap.
"""

# ruff: noqa: E402, F401, I001
from __future__ import annotations

import sys as _sys
from math import e, inf, nan, pi
from typing import Any

if getattr(_sys, "argv", [])[:1] == ["-m"]:  # `python -m tracejit` says what is missing, and starts
    from tracejit.commands.start import watch as _watch

    _watch()
    del _watch

if "t" in getattr(_sys, "abiflags", "") or not getattr(_sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("tracejit needs CPython with its global interpreter lock; this is a "
                      "free-threaded build, where threads could change tensors while they are read")

__path__.append(f"{__path__[0]}/torch_names")  # modules under PyTorch's private names

try:
    from tracejit import config as _config
except ValueError as _error:  # a variable of the environment: its message says all
    raise _error.with_traceback(None) from None
del _config
from tracejit.version import __version__
from tracejit.core.memory import DeviceUnavailable, device, get_default_device, set_default_device
from tracejit.core.memory.streams import Event, Stream
from tracejit.core.ops.types import (
    bfloat16, bool_, can_cast, complex64, complex128, dtype, float16, float32, float64,
    get_default_dtype, int8, int16, int32, int64, promote_types, result_type, set_default_dtype,
    uint8,
)  # fmt: skip
from tracejit.core.ops.absent_types import (
    chalf, complex32, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu,
    uint16, uint32, uint64,
)  # fmt: skip
from tracejit.core.eager.tensor import Tensor
from tracejit.core.eager import tracebacks as _tracebacks
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.record import Op as _Op
from tracejit.core.eager.assertions import _assert, _assert_async
from tracejit.core.eager.construction import as_tensor, from_dlpack, from_numpy, tensor
from tracejit.core.eager.conditions import (
    _check, _check_index, _check_is_size, _check_not_implemented, _check_tensor_all, _check_type,
    _check_value, _check_with,
)  # fmt: skip
from tracejit.core.eager.existing_memory import asarray, from_file, frombuffer
from tracejit.core.eager.metadata import (
    _mkldnn, channels_last, channels_last_3d, contiguous_format, jagged, layout,
    legacy_contiguous_format, memory_format, preserve_format, sparse_bsc, sparse_bsr, sparse_coo,
    sparse_csc, sparse_csr, strided,
)  # fmt: skip
from tracejit.core.eager.modes import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
    set_grad_enabled,
)  # fmt: skip
from tracejit.core.eager.printing import set_printoptions
from tracejit.core.eager.size import Size, broadcast_shapes
from tracejit.core.eager import set_storage as _set_storage
from tracejit.core.eager.anomaly import (
    is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled,
)  # fmt: skip
from tracejit.core.eager.typed_storage import CLASSES as _STORAGE_TYPES, TypedStorage, is_storage
from tracejit.core.eager.untyped_storage import UntypedStorage
from tracejit import storage  # how pickles hold storages
from tracejit.core.eager.tensor_types import CPU_TYPES as _CPU_TYPES, set_default_tensor_type
from tracejit.core.ops.activations import relu_
from tracejit.core.ops.activations_in_place import celu_, rrelu_, selu_, threshold_
from tracejit.core.ops.autocast import (
    clear_autocast_cache, get_autocast_cpu_dtype, get_autocast_dtype, get_autocast_gpu_dtype,
    is_autocast_cache_enabled, is_autocast_cpu_enabled, is_autocast_enabled,
    set_autocast_cache_enabled, set_autocast_cpu_dtype, set_autocast_cpu_enabled,
    set_autocast_dtype, set_autocast_enabled, set_autocast_gpu_dtype,
)  # fmt: skip
from tracejit.core.ops.contraction import einsum
from tracejit.core.ops.convolution import (
    conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
)  # fmt: skip
from tracejit.core.ops.creation import (
    arange, empty, empty_like, eye, full, full_like, inclusive_range as range, linspace, logspace,
    ones, ones_like, scalar_tensor, zeros, zeros_like,
)  # fmt: skip
from tracejit.core.ops.gather_scatter import (
    gather, index_add, index_copy, index_fill, index_select, scatter, scatter_add, take,
    take_along_dim,
)  # fmt: skip
from tracejit.core.ops.hard_activations import hardshrink, prelu
from tracejit.core.ops.indexing import (
    argwhere, index_put, masked_fill, masked_select, nonzero, repeat_interleave,
)  # fmt: skip
from tracejit.core.ops.joining import (
    cat, chunk, concat, concatenate, meshgrid, split, split_with_sizes, stack,
    tensor_split, unbind, unsafe_chunk, unsafe_split, unsafe_split_with_sizes,
)  # fmt: skip
from tracejit.core.ops.linalg import addmm, baddbmm, bmm, dot, matmul, mm, mv, outer
from tracejit.core.ops.linalg_determinants import det, logdet, slogdet
from tracejit.core.ops.linalg_factors import (
    lu_unpack, old_cholesky as cholesky, old_lu as lu, old_lu_solve as lu_solve, old_qr as qr,
)  # fmt: skip
from tracejit.core.ops.linalg_cholesky_solvers import cholesky_inverse, cholesky_solve
from tracejit.core.ops.linalg_solvers import inverse, triangular_solve
from tracejit.core.ops.linalg_spectra import svd_with_v as svd
from tracejit.core.ops.linalg_least_squares import pinverse
from tracejit.core.ops.linalg_powers import chain_matmul, matrix_exp, matrix_power
from tracejit.core.ops.tensor_products import (
    matrix_trace as _matrix_trace,
    addbmm, addmv, addr, cross, ger, inner, kron, tensordot, vdot,
)  # fmt: skip
from tracejit.core.ops.adaptive_pooling import adaptive_avg_pool1d
from tracejit.core.ops.bessel_functions import i0
from tracejit.core.ops.covariance import corrcoef, cov
from tracejit.core.ops.diagonals import (
    block_diag, diag, diag_embed, diagflat, tril_indices, triu_indices, vander,
)  # fmt: skip
from tracejit.core.ops.differences import cumulative_trapezoid, diff, gradient, trapezoid, trapz
from tracejit.core.ops.distances import cdist, cosine_similarity, dist, pairwise_distance, pdist
from tracejit.core.ops.movement import (
    broadcast_to, flatten, movedim, moveaxis, permute, ravel, reshape, squeeze, swapaxes, swapdims,
    t, transpose, unflatten, unsqueeze,
)  # fmt: skip
from tracejit.core.ops.normalization import layer_norm
from tracejit.core.ops import foreach as _foreach
from tracejit.core.ops import native as _native
from tracejit.core.ops import native_losses as _native_losses
from tracejit.core.ops import native_windows as _native_windows
from tracejit.core.ops import numpy_names as _numpy_names
from tracejit.core.ops import out as _out
from tracejit.core.ops import (
    direct_calls as _direct_calls,
    overriding as _overriding,
    vector_products as _vector_products,
)
from tracejit.core.ops import removed_functions as _removed_functions
from tracejit.core.ops.padding import constant_pad_nd
from tracejit.core.ops.order_statistics import kthvalue, median, mode, nanmedian
from tracejit.core.ops.quantiles import nanquantile, quantile
from tracejit.core.ops.pixel_shuffle import channel_shuffle, pixel_shuffle, pixel_unshuffle
from tracejit.core.ops.pointwise import (
    abs, absolute, acos, acosh, add, addcdiv, addcmul, allclose, asin, asinh, atan, atan2, atanh,
    bitwise_and,
    bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, ceil, clamp,
    clamp_max, clamp_min, clip, clone, cos, cosh, deg2rad, div, divide, eq, equal, erf, erfc, exp,
    exp2, expm1, fill, fix, float_power, floor, floor_divide, fmod, frac, ge, greater,
    greater_equal, gt, hypot, isclose, isfinite, isinf, isnan,
    le, lerp, less, less_equal, log, log1p, log2, log10, logical_and, logical_not,
    logical_or, logical_xor, lt, maximum, minimum, mul, multiply, nan_to_num, ne, neg, negative,
    not_equal, positive, pow, rad2deg, reciprocal, remainder, resolve_conj, resolve_neg, round,
    rsqrt, rsub, sgn, sigmoid, sign, sin, sinh, sqrt,
    square, sub, subtract, tan, tanh, true_divide, trunc, where,
)  # fmt: skip
from tracejit.core.ops.pointwise_complex import (
    adjoint, angle, complex, conj, conj_physical, imag, is_complex, is_conj, isreal, polar, real,
    view_as_complex, view_as_real,
)  # fmt: skip
from tracejit.core.ops.moments import mean, nanmean, norm, renorm, std, std_mean, var, var_mean
from tracejit.core.ops.pooling import avg_pool1d, max_pool1d, max_pool2d, max_pool3d
from tracejit.core.ops.random import (
    Generator, bernoulli, default_generator, get_rng_state, initial_seed, manual_seed,
    normal, rand, rand_like, randint, randint_like, randn, randn_like, randperm, seed,
    set_rng_state,
)  # fmt: skip
from tracejit.core.ops.dropout import feature_dropout
from tracejit.core.ops.error_functions import erfinv
from tracejit.core.ops.floating_parts import (
    copysign, fmax, fmin, frexp, gcd, heaviside, isneginf, isposinf, lcm, ldexp, nextafter, signbit,
)  # fmt: skip
from tracejit.core.ops.histograms import histogram, histogramdd
from tracejit.core.ops.gamma_functions import digamma, igamma, igammac, lgamma, mvlgamma, polygamma
from tracejit.core.ops.logarithms import logaddexp, logaddexp2, logit, sinc, xlogy
from tracejit.core.ops.sampling import binomial, multinomial, poisson
from tracejit.core.ops.rearranging import flip, fliplr, flipud, roll, rot90, tile, tril, triu
from tracejit.core.ops.reduction import (
    all, amax, amin, aminmax, any, argmax, argmin, count_nonzero, max, min, nansum, prod, sum,
)  # fmt: skip
from tracejit.core.ops.scan import cummax, cummin, cumprod, cumsum, logcumsumexp
from tracejit.core.ops.scatter_reduce import index_reduce, masked_scatter, put, scatter_reduce
from tracejit.core.ops.searching import bucketize, isin, nonzero_static, searchsorted, unravel_index
from tracejit.core.ops.segments import segment_reduce
from tracejit.core.ops.signal_windows import (
    bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window,
)  # fmt: skip
from tracejit.core.ops.slicing import (
    as_strided, as_strided_scatter, diagonal, diagonal_scatter, narrow, select, select_scatter,
    slice_scatter,
)  # fmt: skip
from tracejit.core.ops.spectrograms import istft, stft
from tracejit.core.ops.softmax import log_softmax, logsumexp, softmax
from tracejit.core.ops.strided_creation import empty_permuted, empty_strided
from tracejit.core.ops.sorting import argsort, msort, sort, topk
from tracejit.core.ops.stacking import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, cartesian_prod, column_stack,
    combinations, dsplit, dstack, hsplit, hstack, row_stack, vsplit, vstack,
)  # fmt: skip
from tracejit.core.ops.questions import (
    get_device, is_inference, is_neg, is_nonzero, is_same_size, is_signed, typename,
)  # fmt: skip
from tracejit.core.ops.linalg_reflectors import orgqr, ormqr, pca_lowrank, svd_lowrank
from tracejit.core.ops.view_copies import (
    alias_copy, as_strided_copy, detach_copy, diagonal_copy, expand_copy, narrow_copy, permute_copy,
    select_copy, slice_copy, split_copy, split_with_sizes_copy, squeeze_copy, t_copy,
    transpose_copy, unbind_copy, unfold_copy, unsqueeze_copy, view_as_complex_copy,
    view_as_real_copy, view_copy,
)  # fmt: skip
from tracejit.core.ops.type_limits import finfo, iinfo
from tracejit.core.ops import windows as _windows
from tracejit.core.ops.unique import bincount, histc, unique, unique_consecutive
from tracejit import accelerator, autograd, backends, cuda, random
from tracejit.accelerator import get_device_module
from tracejit.backends import (
    are_deterministic_algorithms_enabled, get_deterministic_debug_mode,
    get_float32_matmul_precision, get_num_interop_threads, get_num_threads,
    is_deterministic_algorithms_warn_only_enabled, is_warn_always_enabled,
    set_deterministic_debug_mode, set_float32_matmul_precision, set_num_interop_threads,
    set_num_threads, set_warn_always, use_deterministic_algorithms,
)  # fmt: skip
from tracejit.core.eager import dispatch as _dispatch
from tracejit.core.eager import inplace_views as _inplace_views
from tracejit.core.ops import inplace as _inplace
from tracejit.core.eager.einops_backend import watch_for_einops as _watch_for_einops
from tracejit import return_types, sparse
from tracejit.sparse import mm as dsmm, sparse_coo_tensor, spmm

bool = bool_
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
newaxis = None
_watch_for_einops()
detach = Tensor.detach
globals().update(_CPU_TYPES)
globals().update(_STORAGE_TYPES)
Storage = _STORAGE_TYPES["FloatStorage"]
globals().update(_native.FUNCTIONS | _native_losses.FUNCTIONS | _native_windows.FUNCTIONS)
globals().update({name: getattr(Tensor, name) for name in _inplace.TOP_LEVEL})
globals().update(_foreach.functions())

globals().update(_out.with_out(globals(), _out.TORCH))
globals().update(_numpy_names.functions_taking(globals(), _numpy_names.TORCH))

globals().update(_overriding.answering_all(globals()))
_segment_reduce = segment_reduce

globals().update(_removed_functions.FUNCTIONS | _removed_functions.CASTS)
arccos, arcsin, arctan, arctan2 = acos, asin, atan, atan2
arccosh, arcsinh, arctanh = acosh, asinh, atanh

_COMPILING = {
    **dict.fromkeys(
        ("CompiledFunction", "RecompileError", "no_recompile", "script"), "tracejit.jit"
    ),
    "ScriptModule": "tracejit.nn.script_module",
    "compile": "tracejit.compiler",
    "CaptureError": "tracejit.jit.capture.tracer",
    "compare": "tracejit.debug.compare",
}
_CASTING = dict.fromkeys(("GradScaler", "autocast"), "tracejit.amp")
_SAVING = {"load": "tracejit.serialization", "save": "tracejit.serialization",
           "PyTorchFileReader": "tracejit.saving.file_reader"}
_MAPPING = {"vmap": "tracejit.func"}
_CELLS = dict.fromkeys(
    ("gru_cell", "lstm_cell", "rnn_relu_cell", "rnn_tanh_cell"), "tracejit.nn.cell_functions"
)
_LATER_NUMBERS = dict.fromkeys(("SymBool", "SymFloat", "SymInt"), "tracejit.symbolic_numbers")
_COMPRESSED = dict.fromkeys(
    ("sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_csc_tensor",
     "sparse_csr_tensor"), "tracejit.sparse.compressed")
_WAITING = {"Future": "tracejit.futures"}
_ON_DEVICES = {"OutOfMemoryError": "tracejit.cuda"}
_LATER = {**_MAPPING, **_CASTING, **_COMPILING, **_SAVING, **_CELLS, **_ON_DEVICES,
          **_LATER_NUMBERS, **_WAITING, **_COMPRESSED}
_SUBMODULES = (
    "_C", "__config__", "__future__", "_custom_ops", "_dynamo", "_inductor", "_utils",
    "accelerator", "amp", "autograd", "backends", "compiler", "config", "cpu", "cuda", "datasets",
    "debug", "distributed", "distributions", "fft", "func", "functional", "futures", "fx", "hub",
    "jit", "library", "linalg", "logs", "masked", "multiprocessing", "nn", "onnx", "ops", "optim",
    "overrides", "profiler", "quasirandom", "random", "return_types", "safetensors",
    "serialization", "signal", "sparse", "special", "storage", "testing", "torch_version", "types",
    "utils", "version", "xpu",
)  # fmt: skip
_UNLISTED = {"Any", "annotations", "bool_"}  # names that `dir` leaves out; they work


def _library(op: Any, operands: tuple, attributes: dict) -> Any:
    """Run a library kernel of eager mode; the first one brings in lowering and the runtime."""
    from tracejit.jit.runtime import eager_kernels

    _dispatch.install_library(eager_kernels.run)
    return eager_kernels.run(op, operands, attributes)


_dispatch.install_library(_library)


def _vector_product(a: Any, b: Any, shape: tuple) -> Any:
    """Compute a product with a vector natively; the first one brings in lowering and the
    runtime."""
    from tracejit.jit.runtime import eager_vectors

    _vector_products.install(eager_vectors.product)
    return eager_vectors.product(a, b, shape)


_vector_products.install(_vector_product)


def _direct(op: Any) -> Any:
    """Make the native function of a small eager op; the first one brings in the runtime."""
    if _dispatch.active.tracer is not None:
        return None
    from tracejit.jit.runtime import eager_calls

    return eager_calls.made(op)


_direct_calls.install_maker(_direct)


def _raise_gates() -> None:
    """Make all public functions ask classes and modes: from now on there is one to ask."""
    from tracejit.core.eager.overridable import raise_gates

    raise_gates()


_overriding.install(_raise_gates)


def __getattr__(name: str) -> Any:
    """Return a name on first use; names that compile, map, save or load bring in their rooms."""
    import importlib

    if name == "torch":  # torch.torch is torch, and programs say so
        return _sys.modules[__name__]
    if name in _SUBMODULES:
        return importlib.import_module(f"tracejit.{name}")
    if name in _LATER:
        found = globals()[name] = getattr(importlib.import_module(_LATER[name]), name)
        return found
    raise AttributeError(f"module 'tracejit' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names: PyTorch's, and those of `tracejit.additions`. Other names work
    too."""
    rooms = {name for name, value in globals().items() if isinstance(value, type(_sys))}
    found = {*globals(), *_LATER, *_SUBMODULES} - (rooms - {*_SUBMODULES}) - _UNLISTED
    public = [name for name in found if not name.startswith("_")]
    return sorted([*public, "__doc__", "__file__", "__name__", "__path__", "__version__"])


def is_tensor(obj: Any) -> Any:
    """Return True for a tensor.

    >>> import tracejit
    >>> tracejit.is_tensor(tracejit.ones(1)), tracejit.is_tensor(1.0)
    (True, False)
    """
    return isinstance(obj, Tensor)


def trace(*arguments: Any, **named: Any) -> Any:
    """Return the sum of a matrix's diagonal, as PyTorch's; for a function call
    `tracejit.jit.trace`.

    >>> import tracejit
    >>> tracejit.trace(tracejit.eye(3))
    tensor(3.)

    RuntimeError for a tensor that is no matrix.
    """
    matrix = arguments[0] if arguments else named.get("input")
    if isinstance(matrix, Tensor):
        return _matrix_trace(*arguments, **named)
    from tracejit.jit import trace as compiled

    return compiled(*arguments, **named)


def is_floating_point(input: Tensor) -> Any:
    """Return True if a tensor's dtype, in any shape, is a floating point one.

    >>> import tracejit
    >>> tracejit.is_floating_point(tracejit.ones(1))
    True
    """
    return input.is_floating_point()


def numel(input: Tensor) -> Any:
    """Return the number of elements of a tensor of any shape.

    >>> import tracejit
    >>> tracejit.numel(tracejit.ones(2, 3))
    6
    """
    return input.numel()


# Errors that leave these functions show the user's frames.
_sealing.seal_all({"record": _Op, **vars(autograd), **vars(random), **vars(cuda), **globals()})
