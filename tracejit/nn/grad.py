"""Gradients of convolutions by themselves; PyTorch's `torch.nn.grad`.

In: the arguments of a convolution, and the gradient of its result. Out: the gradient of its input
or of its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.core.ops.convolution_record import conv_input_record, conv_weight_record
from tracejit.nn.convolution import per_dimension

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
           "conv3d_weight"]  # fmt: skip


def _input(count: int) -> Callable[..., Any]:
    def gradient(input_size: Sequence[int], weight: Any, grad_output: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        """Return the gradient of a convolution's input, which has `input_size`.

        >>> import tracejit
        >>> weight, grad = tracejit.tensor([[[1.0, 2.0]]]), tracejit.ones(1, 1, 2)
        >>> tracejit.nn.grad.conv1d_input((1, 1, 3), weight, grad)
        tensor([[[1., 3., 2.]]])
        """
        return conv_input_record(grad_output, weight, sizes=tuple(input_size[2:]), groups=groups,
                                 **_numbers(count, stride, padding, dilation))

    gradient.__name__ = f"conv{count}d_input"
    return gradient


def _weight(count: int) -> Callable[..., Any]:
    def gradient(input: Any, weight_size: Sequence[int], grad_output: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        """Return the gradient of a convolution's weight, which has `weight_size`."""
        return conv_weight_record(input, grad_output, kernel=tuple(weight_size[2:]), groups=groups,
                                  **_numbers(count, stride, padding, dilation))

    gradient.__name__ = f"conv{count}d_weight"
    return gradient


def _numbers(count: int, stride: Any, padding: Any, dilation: Any) -> dict[str, tuple]:
    given = {"stride": stride, "padding": padding, "dilation": dilation}
    return {name: per_dimension(value, count) for name, value in given.items()}


conv1d_input, conv2d_input, conv3d_input = map(_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight, (1, 2, 3))
