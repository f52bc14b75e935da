"""Activation functions as layers.

In: any tensor. Out: a tensor of its shape. Each calls the function of `nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

import tracejit
from tracejit.nn import functional as F
from tracejit.nn.init import constant_
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter
from tracejit.nn.sigmoid import (  # noqa: F401 (saved modules name them here)
    GLU,
    LogSigmoid,
    Sigmoid,
    Softsign,
    Tanh,
    Tanhshrink,
)
from tracejit.nn.softmax import (  # noqa: F401
    LogSoftmax,
    Softmax,
    Softmax2d,
    Softmin,
)


class _Inplace(Module):
    """Base class of activations without options but `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """Rectified linear unit of each element: max(x, 0). Its gradient at 0 is 0.

    inplace  True: write the result into the input; default False

    Input of any shape, floating or integer; the output has the same shape and dtype. Raises
    RuntimeError for bools. The source is Nair and Hinton, "Rectified linear units improve
    restricted Boltzmann machines" (2010).

    >>> import tracejit
    >>> tracejit.nn.ReLU()(tracejit.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Any) -> Any:
        return F.relu(input, self.inplace)


class SiLU(_Inplace):
    """Sigmoid linear unit of each element, or swish: x * sigmoid(x) = x / (1 + exp(-x)).

    inplace  True: write the result into the input; default False

    Input of any shape, floating or complex; the output has the same shape and dtype. Raises
    NotImplementedError for integers. The source is Elfwing, Uchibe and Doya, "Sigmoid-weighted
    linear units" (2018).

    >>> import tracejit
    >>> tracejit.nn.SiLU()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """

    def forward(self, input: Any) -> Any:
        return F.silu(input, self.inplace)


class SELU(_Inplace):
    """Scaled exponential linear unit: scale * (x if x > 0 else alpha * (exp(x) - 1)), with alpha =
    1.6733 and scale = 1.0507. These constants keep mean 0 and variance 1 from layer to layer.

    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The source is Klambauer et al., "Self-normalizing neural networks" (2017).

    >>> import tracejit
    >>> tracejit.nn.SELU()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.1113,  0.0000,  1.0507])
    """

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class ELU(Module):
    """Exponential linear unit: x where x > 0, else alpha * (exp(x) - 1).

    alpha    minus the limit for large negative x; a number, default 1
    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The source is Clevert, Unterthiner and Hochreiter, "Fast and accurate deep
    network learning by exponential linear units" (2015).

    >>> import tracejit
    >>> tracejit.nn.ELU()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.6321,  0.0000,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(Module):
    """Leaky rectified linear unit: x where x > 0, else negative_slope * x.

    negative_slope  slope left of 0; a number, default 0.01
    inplace         True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The source is Maas, Hannun and Ng, "Rectifier nonlinearities improve neural
    network acoustic models" (2013).

    >>> import tracejit
    >>> tracejit.nn.LeakyReLU(0.1)(tracejit.tensor([-2.0, 3.0]))
    tensor([-0.2000,  3.0000])
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """Gaussian error linear unit: x * Phi(x), Phi being the distribution function of N(0, 1).

    approximate  "none" (default) for erf; "tanh" for x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 *
                 x^3))) / 2

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes, RuntimeError for another text. The source is Hendrycks and Gimpel, "Gaussian
    error linear units" (2016).

    >>> import tracejit
    >>> tracejit.nn.GELU()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])
    >>> tracejit.nn.GELU("tanh")(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1588,  0.0000,  0.8412])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """Smooth form of ReLU: log(1 + exp(beta * x)) / beta, and x itself where beta * x > threshold.

    beta       sharpness of the bend at 0; a number, default 1
    threshold  bound of beta * x above which the function is linear; default 20

    Floating input of any shape; the output has the same shape and dtype, and is never negative.
    Raises NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.Softplus()(tracejit.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardtanh(Module):
    """Piecewise linear form of tanh: x limited to [min_val, max_val]. Its gradient outside is 0.

    min_val, max_val  bounds, in the units of x; defaults -1 and 1
    inplace           True: write the result into the input; default False

    Input of any shape, floating or integer; the output has the same shape and dtype. The call
    raises ValueError where min_val is larger than max_val.

    >>> import tracejit
    >>> tracejit.nn.Hardtanh(-1.0, 2.0)(tracejit.tensor([-3.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  2.0000])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (
            ", inplace=True" if self.inplace else ""
        )


class ReLU6(Hardtanh):
    """ReLU with an upper bound: min(max(x, 0), 6), which low-precision arithmetic holds well.

    inplace  True: write the result into the input; default False

    Input of any shape, floating or integer; the output has the same shape and dtype. The source is
    Howard et al., "MobileNets" (2017).

    >>> import tracejit
    >>> tracejit.nn.ReLU6()(tracejit.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def forward(self, input: Any) -> Any:
        return F.relu6(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Hardswish(_Inplace):
    """Piecewise form of `SiLU`: x * min(max(x + 3, 0), 6) / 6.

    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The source is Howard et al., "Searching for MobileNetV3" (2019).

    >>> import tracejit
    >>> tracejit.nn.Hardswish()(tracejit.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # in PyTorch neither


class Hardsigmoid(_Inplace):
    """Piecewise linear form of `Sigmoid`: min(max(x + 3, 0), 6) / 6.

    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype, with elements in [0, 1].
    Raises NotImplementedError for other dtypes.

    >>> import tracejit
    >>> tracejit.nn.Hardsigmoid()(tracejit.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""  # in PyTorch neither


class Mish(_Inplace):
    """Smooth activation without an upper bound: x * tanh(log(1 + exp(x))).

    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The source is Misra, "Mish: a self regularized non-monotonic activation
    function" (2019).

    >>> import tracejit
    >>> tracejit.nn.Mish()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.3034,  0.0000,  0.8651])
    """

    def forward(self, input: Any) -> Any:
        return F.mish(input, self.inplace)


class CELU(Module):
    """Continuously differentiable ELU: x where x > 0, else alpha * (exp(x / alpha) - 1).

    alpha    minus the limit for large negative x; a number other than 0, default 1
    inplace  True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The source is Barron, "Continuously differentiable exponential linear units"
    (2017).

    >>> import tracejit
    >>> tracejit.nn.CELU(2.0)(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7869,  0.0000,  1.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Hardshrink(Module):
    """Threshold around 0: x where |x| > lambd, else 0.

    lambd  half the width of the interval that becomes 0; a number, default 0.5

    Floating input of any shape; the output has the same shape and dtype. Raises NotImplementedError
    for other dtypes. The layer holds no parameters.

    >>> import tracejit
    >>> tracejit.nn.Hardshrink(0.5)(tracejit.tensor([-1.0, 0.3, 1.0]))
    tensor([-1.,  0.,  1.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """Soft threshold: x moved by lambd towards 0, and 0 in [-lambd, lambd].

    lambd  distance by which elements move; a number from 0 on, default 0.5

    Floating input of any shape; the output has the same shape and dtype. Raises RuntimeError for a
    negative lambd, NotImplementedError for other dtypes. It is the proximal operator of lambd *
    |x|.

    >>> import tracejit
    >>> tracejit.nn.Softshrink(0.5)(tracejit.tensor([-1.0, 0.3, 1.0]))
    tensor([-0.5000,  0.0000,  0.5000])
    """

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)


class Threshold(Module):
    """Threshold with a fill: x where x > threshold, else value.

    threshold  bound that x has to exceed; a number
    value      number that takes the place of smaller elements
    inplace    True: write the result into the input; default False

    Input of any shape, floating or integer; the output has the same shape and dtype.

    >>> import tracejit
    >>> tracejit.nn.Threshold(0.5, -1.0)(tracejit.tensor([0.2, 0.7]))
    tensor([-1.0000,  0.7000])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        text = f"threshold={self.threshold}, value={self.value}"
        return text + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """Randomized leaky ReLU: x where x >= 0, else a * x. In training each element draws its slope a
    from [lower, upper); in evaluation all have the mean of the two.

    lower, upper  bounds of the slope; numbers, defaults 1/8 and 1/3
    inplace       True: write the result into the input; default False

    Floating input of any shape; the output has the same shape and dtype. Raises RuntimeError where
    lower exceeds upper. The source is Xu et al., "Empirical evaluation of rectified activations in
    convolutional network" (2015).

    >>> import tracejit
    >>> tracejit.nn.RReLU(0.1, 0.3).eval()(tracejit.tensor([-1.0, 2.0]))
    tensor([-0.2000,  2.0000])
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        text = f"lower={self.lower}, upper={self.upper}"
        return text + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """Leaky ReLU whose slope is learnt: x where x > 0, else weight * x.

    num_parameters  1 for one slope (default), or the number of channels
    init            slope at the start; a number, default 0.25
    device, dtype   of the parameter

    `weight` is a parameter (num_parameters,). Floating input of any shape, whose dimension 1 holds
    the channels; the output has the same shape. Raises RuntimeError where num_parameters is neither
    1 nor the number of channels. The source is He et al., "Delving deep into rectifiers" (2015).

    >>> import tracejit
    >>> tracejit.nn.PReLU()(tracejit.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(tracejit.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all weights to `init`."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
