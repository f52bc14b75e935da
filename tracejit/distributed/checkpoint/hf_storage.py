"""Files of spread tensors in another form; PyTorch's `torch.distributed.checkpoint.hf_storage`.

In: nothing. Out: classes that are refused when they are made.
"""

from tracejit.distributed.unavailable import refused_class

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

HuggingFaceStorageReader = refused_class("HuggingFaceStorageReader", "Reader of spread tensors")
HuggingFaceStorageWriter = refused_class("HuggingFaceStorageWriter", "Writer of spread tensors")
