"""Handles of hooks; PyTorch's `torch.utils.hooks`.

In: `from tracejit.utils.hooks import RemovableHandle`. Out: the class of what registering a hook
gives.
"""

from tracejit.core.eager.tape import RemovableHandle

__all__ = ["RemovableHandle"]
