"""Layers under the places that PyTorch's own files have: `nn.modules.loss` and so on.

In: `from tracejit.nn.modules.loss import _Loss` and its like. Out: this package's files, or the
contents of several of them. They are named by what they hold.
"""

from __future__ import annotations

import sys
from types import ModuleType

from tracejit import nn
from tracejit.nn import (
    activation,
    adaptive_softmax,
    attention,
    batch_norm,
    containers,
    convolution,
    distance,
    dropout,
    embedding,
    lazy,
    lazy_batch_norm,
    linear,
    loss,
    margin_loss,
    module,
    normalization,
    padding,
    parameter_containers,
    pixel_shuffle,
    pooling,
    recurrent,
    recurrent_cells,
    transformer,
    upsampling,
    windows,
)
from tracejit.nn.module import Module
from tracejit.nn.modules import utils

PLACES: dict[str, tuple[ModuleType, ...]] = {
    "activation": (activation, attention),
    "adaptive": (adaptive_softmax,),
    "batchnorm": (batch_norm, lazy_batch_norm),
    "channelshuffle": (pixel_shuffle,),
    "container": (containers, parameter_containers),
    "conv": (convolution, lazy, utils),
    "distance": (distance,),
    "dropout": (dropout,),
    "flatten": (linear,),
    "fold": (windows,),
    "instancenorm": (batch_norm, lazy_batch_norm),
    "lazy": (lazy,),
    "linear": (linear, attention, lazy),
    "loss": (loss, margin_loss, distance),
    "module": (module,),
    "normalization": (normalization,),
    "padding": (padding, utils),
    "pixelshuffle": (pixel_shuffle,),
    "pooling": (pooling, utils),
    "rnn": (recurrent, recurrent_cells),
    "sparse": (embedding,),
    "transformer": (transformer,),
    "upsampling": (upsampling,),
}


def _at(place: str, *files: ModuleType) -> ModuleType:
    """Return a file under another name, or a module with the names of several. The first file
    wins."""
    if len(files) == 1:
        return files[0]
    made = ModuleType(f"{__name__}.{place}", files[0].__doc__)
    # the first file comes last, and wins
    for file in reversed(files):
        vars(made).update({k: v for k, v in vars(file).items() if not k.startswith("__")})
    return made


_layers = {
    name: found for name, found in vars(nn).items()
    if isinstance(found, type) and issubclass(found, Module) and found is not nn.DataParallel
}  # fmt: skip
globals().update(_layers)
__all__ = sorted(_layers)  # noqa: PLE0605
for _name, _files in PLACES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _at(_name, *_files)
