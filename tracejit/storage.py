"""Memory behind tensors; PyTorch's `torch.storage`."""

from tracejit.core.eager.typed_storage import TypedStorage
from tracejit.core.eager.untyped_storage import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
