"""State of a job in files, one for each process; PyTorch's `torch.distributed.checkpoint`."""

from tracejit.distributed.checkpoint.files import FileSystemReader, FileSystemWriter
from tracejit.distributed.checkpoint.saving import CheckpointException, load, save

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "load", "save"]
