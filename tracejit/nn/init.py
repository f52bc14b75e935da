"""Initialisation of parameters, in place and off the tape; PyTorch's formulas.

In: a tensor. Out: the same tensor, filled. Random fills draw from the default generator unless
given one. Layers call these in `reset_parameters`, users after that.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit
from tracejit.core.eager.modes import no_grad
from tracejit.core.ops import sealing as _sealing

_GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "conv3d": 1.0,
    "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0,
    "conv_transpose3d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps variances across a nonlinearity. `param` is leaky_relu's slope.

    >>> import tracejit
    >>> tracejit.nn.init.calculate_gain("tanh")
    1.6666666666666667

    Raises ValueError for an unknown name.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def fans(tensor: Any) -> tuple[int, int]:
    """Return (fan in, fan out): the inputs of each output of this weight, and the outputs of each
    input.

    Raises ValueError for fewer than two dimensions.

    >>> import tracejit
    >>> tracejit.nn.init._calculate_fan_in_and_fan_out(tracejit.zeros(4, 3))
    (3, 4)
    """
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


# Under these names programs take them, private as they are.
_calculate_fan_in_and_fan_out, _calculate_correct_fan = fans, _fan


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor of any shape with uniform numbers in [a, b), without history, and return it.

    >>> import tracejit
    >>> x = tracejit.nn.init.uniform_(tracejit.empty(3), 2.0, 3.0)
    >>> bool(((x >= 2) & (x < 3)).all())
    True
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor of any shape with normal numbers of this mean and deviation, and return it.

    >>> import tracejit
    >>> tracejit.nn.init.normal_(tracejit.empty(2, 3)).shape
    tracejit.Size([2, 3])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Any:
    """Fill a tensor of any shape with normal numbers conditioned on lying in [a, b], and return it.

    >>> import tracejit
    >>> x = tracejit.nn.init.trunc_normal_(tracejit.empty(9), a=-1.0, b=1.0)
    >>> bool((x.abs() <= 1).all())
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    # sampled by the inverse distribution function, between its values at a and b
    low, high = (math.erf((bound - mean) / std / math.sqrt(2.0)) for bound in (a, b))
    # scipy.special takes a while to import, and only this function needs it.
    from scipy.special import erfinv

    with no_grad():
        drawn = tracejit.rand(tensor.shape, dtype=tracejit.float64, generator=generator).numpy()
        values = erfinv(drawn * (high - low) + low) * (std * math.sqrt(2.0)) + mean
        return tensor.copy_(tracejit.as_tensor(values.clip(a, b)))


def constant_(tensor: Any, val: float) -> Any:
    """Fill a tensor of any shape with one number, and return it.

    >>> import tracejit
    >>> tracejit.nn.init.constant_(tracejit.empty(2), 3.0)
    tensor([3., 3.])
    """
    with no_grad():
        return tensor.fill_(val)


_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_ = constant_


def ones_(tensor: Any) -> Any:
    """Fill a tensor of any shape with ones, and return it.

    >>> import tracejit
    >>> tracejit.nn.init.ones_(tracejit.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill a tensor of any shape with zeros, and return it.

    >>> import tracejit
    >>> tracejit.nn.init.zeros_(tracejit.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


_no_grad_zero_ = zeros_


def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity, and return it; ValueError for other dimensions.

    >>> import tracejit
    >>> tracejit.nn.init.eye_(tracejit.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(tracejit.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor (out, in, *) uniformly in +-gain * sqrt(6 / (fan in + fan out)), and return it.

    ValueError for fewer than two dimensions. The source is Glorot and Bengio, "Understanding the
    difficulty of training deep feedforward neural networks" (2010).

    >>> import tracejit
    >>> x = tracejit.nn.init.xavier_uniform_(tracejit.empty(3, 3))
    >>> bool((x.abs() <= 1).all())
    True
    """
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill a tensor (out, in, *) with normal numbers of standard deviation gain * sqrt(2 / (fan in
    + fan out)), and return it.

    ValueError for fewer than two dimensions. The source is Glorot and Bengio (2010).

    >>> import tracejit
    >>> tracejit.nn.init.xavier_normal_(tracejit.empty(4, 3)).shape
    tracejit.Size([4, 3])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Fill a tensor (out, in, *) uniformly in +-gain * sqrt(3 / fan), and return it. `a` is
    leaky_relu's slope.

    mode          "fan_in" or "fan_out": which fan divides
    nonlinearity  whose gain `calculate_gain` gives

    ValueError for fewer than two dimensions. The source is He et al., "Delving deep into
    rectifiers" (2015).

    >>> import tracejit
    >>> x = tracejit.nn.init.kaiming_uniform_(tracejit.empty(4, 6))
    >>> bool((x.abs() <= 1).all())
    True
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Any:
    """Fill a tensor (out, in, *) with normal numbers of standard deviation gain / sqrt(fan), and
    return it. `a` is leaky_relu's slope.

    ValueError for fewer than two dimensions. The source is He et al. (2015); see
    `kaiming_uniform_`.

    >>> import tracejit
    >>> tracejit.nn.init.kaiming_normal_(tracejit.empty(4, 3)).shape
    tracejit.Size([4, 3])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    spread = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return normal_(tensor, 0.0, spread, generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with `gain` times a random matrix whose rows or columns (the fewer) are orthonormal. All
    dimensions but the first are columns. The matrix is from the QR decomposition of a normal
    one, its signs made unique (Saxe et al., 2013). ValueError for fewer than two dimensions.

    >>> import tracejit
    >>> x = tracejit.nn.init.orthogonal_(tracejit.empty(2, 3))
    >>> tracejit.allclose(x @ x.T, tracejit.eye(2), atol=1e-5)
    True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with no_grad():
        drawn = normal_(tracejit.empty(rows, columns, dtype=tracejit.float64), generator=generator)
        # QR makes columns orthonormal: a wide matrix is transposed
        matrix = drawn.numpy() if rows >= columns else drawn.numpy().T
        q, r = np.linalg.qr(matrix)
        # QR is unique up to signs: with these the result is uniformly distributed
        q = q * np.sign(np.diag(r))
        made = tracejit.Tensor.of_array(np.ascontiguousarray(q if rows >= columns else q.T))
        return tensor.copy_((made * gain).reshape(tensor.shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill convolution weights (O, I, *kernel) so that channels pass unchanged, as many as each
    group has. ValueError for other than 3 to 5 dimensions.

    >>> import tracejit
    >>> tracejit.nn.init.dirac_(tracejit.empty(2, 2, 1)).squeeze()
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    outputs, centre = tensor.shape[0] // groups, [n // 2 for n in tensor.shape[2:]]
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(outputs, tensor.shape[1])):
                tensor[(group * outputs + channel, channel, *centre)] = 1
    return tensor


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill a matrix with normal numbers of deviation `std`, and set the fraction `sparsity` of each
    column to zero. ValueError for other than two dimensions.

    >>> import tracejit
    >>> int((tracejit.nn.init.sparse_(tracejit.empty(4, 3), 0.5) == 0).sum())
    6
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    absent = math.ceil(sparsity * rows)
    with no_grad():
        normal_(tensor, 0.0, std, generator)
        for column in range(columns):
            order = tracejit.randperm(rows, generator=generator)
            tensor[order[:absent], column] = 0
    return tensor


def _older(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function under the name without the underscore, which warns."""
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    return call


uniform, normal, constant = _older(uniform_), _older(normal_), _older(constant_)
eye, dirac = _older(eye_), _older(dirac_)
xavier_uniform, xavier_normal = _older(xavier_uniform_), _older(xavier_normal_)
kaiming_uniform, kaiming_normal = _older(kaiming_uniform_), _older(kaiming_normal_)
orthogonal, sparse = _older(orthogonal_), _older(sparse_)

_sealing.seal_all(globals())
