"""Optimizers and learning rate schedules, with PyTorch's names and formulas."""

from tracejit.optim import lr_scheduler
from tracejit.optim.adadelta import Adadelta, Rprop
from tracejit.optim.adam import Adam, AdamW
from tracejit.optim.adamax import Adamax, NAdam
from tracejit.optim.adaptive import Adagrad, RMSprop
from tracejit.optim.lbfgs import LBFGS
from tracejit.optim.optimizer import Optimizer
from tracejit.optim.radam import RAdam
from tracejit.optim.sgd import SGD

__all__ = [
    "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam",
    "RMSprop", "Rprop", "lr_scheduler",
]  # fmt: skip
