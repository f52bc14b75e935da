"""Sigmoid, tanh and their kin as layers.

In: any tensor. Out: a tensor of its shape; `GLU` halves one size. Each calls the function of
`nn.functional` of its name.
"""

from __future__ import annotations

from typing import Any

from tracejit.nn import functional as F
from tracejit.nn.module import Module


class Sigmoid(Module):
    """Logistic function of each element: 1 / (1 + exp(-x)), between 0 and 1.

    Input of any shape. The output has the same shape and dtype; for integers and bools the default
    dtype. The layer has no arguments and no parameters.

    >>> import tracejit
    >>> tracejit.nn.Sigmoid()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([0.2689, 0.5000, 0.7311])
    """

    def forward(self, input: Any) -> Any:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """Logarithm of the logistic function: log(1 / (1 + exp(-x))), computed without overflow.

    Floating input of any shape; the output has the same shape and dtype, and is negative or 0. The
    layer has no arguments and no parameters. Raises NotImplementedError for integers.

    >>> import tracejit
    >>> tracejit.nn.LogSigmoid()(tracejit.tensor([-100.0, 0.0, 100.0]))
    tensor([-1.0000e+02, -6.9315e-01, -3.7835e-44])
    """

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent of each element: (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    Input of any shape. The output has the same shape and dtype; for integers and bools the default
    dtype. The layer has no arguments and no parameters.

    >>> import tracejit
    >>> tracejit.nn.Tanh()(tracejit.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7616,  0.0000,  0.7616])
    """

    def forward(self, input: Any) -> Any:
        return F.tanh(input)


class Softsign(Module):
    """Softsign of each element: x / (1 + |x|), which nears -1 and 1 more slowly than tanh.

    Input of any shape and dtype. The output has the same shape; integers and bools give the default
    dtype. The layer has no arguments and no parameters.

    >>> import tracejit
    >>> tracejit.nn.Softsign()(tracejit.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class Tanhshrink(Module):
    """Rest of x beyond its hyperbolic tangent: x - tanh(x), which is flat at 0.

    Input of any shape and dtype but bool. The output has the same shape; integers give the default
    dtype. The layer has no arguments and no parameters.

    >>> import tracejit
    >>> tracejit.nn.Tanhshrink()(tracejit.tensor([-2.0, 0.0, 2.0]))
    tensor([-1.0360,  0.0000,  1.0360])
    """

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class GLU(Module):
    """Gated linear unit: a * sigmoid(b), a and b being the halves of the input along `dim`.

    dim  dimension that is halved; default -1

    Floating input (*, 2n, *); output (*, n, *) of the same dtype. Raises RuntimeError where the
    size of `dim` is odd, and for inputs of no dimension. The source is Dauphin et al., "Language
    modeling with gated convolutional networks" (2016).

    >>> import tracejit
    >>> tracejit.nn.GLU()(tracejit.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
