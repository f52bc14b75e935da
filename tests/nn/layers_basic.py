"""Rows of linear layers, activations and losses: name, arguments of the layer, options, inputs."""

import numpy as np

RNG = np.random.default_rng(1)
X, SQUARE = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4)) * 3
P, CLASSES, BITS = (
    RNG.uniform(0.05, 0.95, (5, 4)),
    np.array([0, 3, 1, -100, 2]),
    (RNG.random((5, 4)) < 0.5) * 1.0,
)
W4 = RNG.uniform(0.5, 2, 4)

LAYERS = [
    ("Linear", (4, 3), {}, (X,)),
    ("Linear", (4, 3), {"bias": False}, (X.reshape(5, 1, 4),)),
    ("Bilinear", (4, 4, 3), {}, (X, SQUARE)),
    ("Bilinear", (4, 4, 3), {"bias": False}, (X.reshape(1, 5, 4), SQUARE.reshape(1, 5, 4))),
    ("LayerNorm", (4,), {}, (X,)),
    ("LayerNorm", ((5, 4),), {"eps": 0.1, "bias": False}, (X,)),
    ("LayerNorm", (4,), {"elementwise_affine": False}, (X,)),
    ("Embedding", (6, 3), {}, (np.array([[0, 5], [5, 2]]),)),
    ("Embedding", (6, 3), {"padding_idx": -1}, (np.array([[0, 5], [5, 2]]),)),
    ("Dropout", (), {"p": 0.0}, (X,)),
    ("Identity", (1, 2), {"a": 3}, (X,)),
    ("Flatten", (), {}, (X.reshape(5, 2, 2),)),
    ("Flatten", (0, 1), {}, (X.reshape(5, 2, 2),)),
    ("Unflatten", (1, (2, 2)), {}, (X,)),
    ("ReLU", (), {}, (SQUARE,)),
    ("ReLU6", (), {}, (SQUARE,)),
    ("GELU", (), {}, (SQUARE,)),
    ("GELU", (), {"approximate": "tanh"}, (SQUARE,)),
    ("SiLU", (), {}, (SQUARE,)),
    ("SELU", (), {}, (SQUARE,)),
    ("ELU", (0.5,), {}, (SQUARE,)),
    ("LeakyReLU", (0.2,), {}, (SQUARE,)),
    ("Softplus", (2.0, 3.0), {}, (SQUARE,)),
    ("Hardtanh", (-0.5, 0.7), {}, (SQUARE,)),
    ("Sigmoid", (), {}, (SQUARE,)),
    ("LogSigmoid", (), {}, (SQUARE,)),
    ("Tanh", (), {}, (SQUARE,)),
    ("Softmax", (-1,), {}, (SQUARE,)),
    ("LogSoftmax", (0,), {}, (SQUARE,)),
    ("CrossEntropyLoss", (), {}, (SQUARE, CLASSES)),
    (
        "CrossEntropyLoss",
        (W4,),
        {"label_smoothing": 0.2, "ignore_index": 3, "reduction": "sum"},
        (SQUARE, np.abs(CLASSES % 4)),
    ),
    ("CrossEntropyLoss", (), {"reduction": "none"}, (SQUARE, P)),
    ("NLLLoss", (W4,), {}, (SQUARE, CLASSES)),
    ("MSELoss", (), {}, (X, SQUARE)),
    ("L1Loss", (False,), {}, (X, SQUARE)),
    ("SmoothL1Loss", (), {"beta": 0.5}, (X, SQUARE)),
    ("HuberLoss", ("none", 0.7), {}, (X, SQUARE)),
    ("BCELoss", (W4,), {}, (P, BITS)),
    ("BCEWithLogitsLoss", (), {"weight": W4, "pos_weight": W4}, (X, BITS)),
]
