"""Datasets of local files: images in the IDX format or in folders, tables in CSV, small digits.

Nothing is downloaded. Images are float32 tensors between 0 and 1, channels first.
"""

from tracejit.datasets.digits import Digits
from tracejit.datasets.folder import ImageFolder, load_image
from tracejit.datasets.idx import read_idx
from tracejit.datasets.mnist import KMNIST, MNIST, FashionMNIST
from tracejit.datasets.table import CSVTable

__all__ = [
    "CSVTable", "Digits", "FashionMNIST", "ImageFolder", "KMNIST", "MNIST", "load_image",
    "read_idx",
]  # fmt: skip
