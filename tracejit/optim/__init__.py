"""Optimizers and learning rate schedules, with PyTorch's names and formulas."""

from tracejit.optim import lr_scheduler
from tracejit.optim.adam import Adam, AdamW
from tracejit.optim.adaptive import Adagrad, RMSprop
from tracejit.optim.optimizer import Optimizer
from tracejit.optim.radam import RAdam
from tracejit.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RAdam", "RMSprop", "lr_scheduler"]
