"""Layers, containers, parameters, losses and what goes with them, under PyTorch's names."""

from tracejit.nn import functional, init, utils
from tracejit.nn.activation import (
    ELU,
    GELU,
    SELU,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)  # fmt: skip
from tracejit.nn.containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)  # fmt: skip
from tracejit.nn.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from tracejit.nn.embedding import Dropout, Embedding
from tracejit.nn.linear import Bilinear, Flatten, Identity, Linear, Unflatten
from tracejit.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)  # fmt: skip
from tracejit.nn.module import Module
from tracejit.nn.normalization import LayerNorm
from tracejit.nn.parameter import Parameter

__all__ = [
    "ELU", "GELU", "SELU", "BCELoss", "BCEWithLogitsLoss", "Bilinear", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CrossEntropyLoss",
    "Dropout", "Embedding", "Flatten", "Hardtanh", "HuberLoss", "Identity", "L1Loss", "LayerNorm",
    "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss", "Module", "ModuleDict",
    "ModuleList", "NLLLoss", "Parameter", "ParameterDict", "ParameterList", "ReLU", "ReLU6",
    "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softplus", "Tanh", "Unflatten",
    "functional", "init", "utils",
]  # fmt: skip
