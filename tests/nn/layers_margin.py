"""Rows of the losses with margins and of distributions' parameters."""

import numpy as np

RNG = np.random.default_rng(6)
A, B, C = (RNG.normal(size=(5, 4)) for _ in range(3))
SIGNS, ROWS = np.sign(RNG.normal(size=(5, 4))), np.array([1.0, -1, -1, 1, 1])
LABELS, BITS = np.array([0, 3, 1, 1, 2]), (RNG.random((5, 4)) < 0.5) * 1.0
COUNTS, WEIGHTS = RNG.integers(0, 6, (5, 4)) * 1.0 + 0.01, RNG.uniform(0.5, 2, 4)
MANY = np.array([[0, 3, -1, 1], [2, -1, 0, 0], [-1, 0, 0, 0], [1, 2, 3, 0], [1, 1, -1, 2]])
LOG_P = np.log(RNG.dirichlet(np.ones(4), 5))
STEPS, SAID = np.log(RNG.dirichlet(np.ones(4), (6, 2))), np.array([[1, 2, 2], [3, 1, 2]])

LAYERS = [
    ("KLDivLoss", (), {"reduction": "batchmean"}, (LOG_P, np.exp(LOG_P[::-1].copy()))),
    ("KLDivLoss", (), {"reduction": "sum", "log_target": True}, (LOG_P, LOG_P[::-1].copy())),
    ("MarginRankingLoss", (0.3,), {}, (A, B, SIGNS)),
    ("CosineEmbeddingLoss", (0.1,), {}, (A, B, ROWS)),
    ("CosineEmbeddingLoss", (), {"reduction": "none"}, (A[0], B[0], np.array(-1.0))),
    ("HingeEmbeddingLoss", (0.7,), {"reduction": "sum"}, (A, SIGNS)),
    ("SoftMarginLoss", (), {}, (A, SIGNS)),
    ("MultiLabelSoftMarginLoss", (WEIGHTS,), {}, (A, BITS)),
    ("MultiMarginLoss", (), {}, (A, LABELS)),
    ("MultiMarginLoss", (2, 0.5, WEIGHTS), {"reduction": "none"}, (A, LABELS)),
    ("TripletMarginLoss", (2.0,), {}, (A, B, C)),
    ("TripletMarginLoss", (2.0, 1.0), {"swap": True, "reduction": "none"}, (A, B, C)),
    ("PoissonNLLLoss", (), {"full": True}, (A, COUNTS)),
    ("PoissonNLLLoss", (False,), {"reduction": "sum"}, (np.abs(A), COUNTS)),
    ("GaussianNLLLoss", (), {}, (A, B, np.abs(C))),
    ("GaussianNLLLoss", (), {"full": True, "eps": 0.5}, (A, B, np.abs(C[:, :1]))),
    ("MultiLabelMarginLoss", (), {}, (A, MANY)),
    ("MultiLabelMarginLoss", (), {"reduction": "none"}, (A[0], MANY[0])),
    ("TripletMarginWithDistanceLoss", (), {"swap": True, "margin": 0.5}, (A, B, C)),
    ("CTCLoss", (), {}, (STEPS, SAID, np.array([6, 5]), np.array([2, 3]))),
    ("CTCLoss", (3, "sum"), {}, (STEPS, SAID.reshape(-1) - 1, np.array([6, 4]), np.array([3, 3]))),
    ("CTCLoss", (), {"reduction": "none", "zero_infinity": True},
     (STEPS, SAID, np.array([6, 2]), np.array([3, 3]))),
    ("CTCLoss", (), {"reduction": "none"}, (STEPS[:, 0], SAID[0], np.array(6), np.array(3))),
]
