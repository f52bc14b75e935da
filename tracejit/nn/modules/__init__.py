"""The layers under the places that PyTorch's own files have: `nn.modules.loss` and so on.

In: `from tracejit.nn.modules.loss import _Loss` and its like. Out: this package's files, which are
named by what they hold.
"""

from __future__ import annotations

import sys

from tracejit.nn import (
    activation,
    batch_norm,
    containers,
    convolution,
    distance,
    dropout,
    embedding,
    lazy,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixel_shuffle,
    pooling,
    recurrent,
    transformer,
    upsampling,
    windows,
)
from tracejit.nn.module import Module  # noqa: F401

PLACES = {
    "activation": activation,
    "batchnorm": batch_norm,
    "container": containers,
    "conv": convolution,
    "distance": distance,
    "dropout": dropout,
    "fold": windows,
    "instancenorm": batch_norm,
    "lazy": lazy,
    "linear": linear,
    "loss": loss,
    "module": module,
    "normalization": normalization,
    "padding": padding,
    "pixelshuffle": pixel_shuffle,
    "pooling": pooling,
    "rnn": recurrent,
    "sparse": embedding,
    "transformer": transformer,
    "upsampling": upsampling,
}
for _name, _file in PLACES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _file
