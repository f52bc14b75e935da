"""Memory behind tensors; PyTorch's `torch.storage`."""

from tracejit.eager.typed_storage import TypedStorage
from tracejit.eager.untyped_storage import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
