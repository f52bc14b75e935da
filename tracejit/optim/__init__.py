"""Optimizers and learning rate schedules, with PyTorch's names and formulas."""

from tracejit.core.ops import sealing as _sealing
from tracejit.optim import lr_scheduler, swa_utils
from tracejit.optim.adadelta import Adadelta, Rprop
from tracejit.optim.adafactor import Adafactor
from tracejit.optim.adam import Adam, AdamW
from tracejit.optim.adamax import Adamax, NAdam
from tracejit.optim.adaptive import Adagrad, RMSprop
from tracejit.optim.asgd import ASGD
from tracejit.optim.lbfgs import LBFGS
from tracejit.optim.muon import Muon
from tracejit.optim.optimizer import Optimizer
from tracejit.optim.radam import RAdam
from tracejit.optim.sgd import SGD
from tracejit.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon",
    "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler",
    "swa_utils",
]  # fmt: skip

_sealing.seal_all(globals())
