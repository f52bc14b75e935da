"""Datasets, and the loader that makes batches of them; PyTorch's `torch.utils.data`."""

from tracejit.core.ops import sealing as _sealing
from tracejit.utils.data.collate import default_collate, default_convert
from tracejit.utils.data.dataloader import DataLoader
from tracejit.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tracejit.utils.data.distributed import DistributedSampler
from tracejit.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from tracejit.utils.data.worker import get_worker_info

from tracejit.utils.data import _utils  # isort: skip  # noqa: F401

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate",
    "default_convert", "get_worker_info", "random_split",
]  # fmt: skip

_sealing.seal_all(globals())
