"""Changes of parameters of modules; PyTorch's `nn.utils`."""

import importlib
from typing import Any

from tracejit.core.ops import sealing as _sealing
from tracejit.nn.utils import parametrizations, parametrize, rnn
from tracejit.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from tracejit.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from tracejit.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from tracejit.nn.utils.skip_init import skip_init
from tracejit.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from tracejit.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm",
    "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "vector_to_parameters",
    "weight_norm",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "stateless":  # it brings in derivatives
        return importlib.import_module("tracejit.nn.utils.stateless")
    raise AttributeError(f"module 'tracejit.nn.utils' has no attribute {name!r}")

_sealing.seal_all(globals())
