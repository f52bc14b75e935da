"""Handles of hooks; PyTorch's `torch.utils.hooks`.

In: `from tracejit.utils.hooks import RemovableHandle`. Out: the class of handles that registering a
hook returns.
"""

from tracejit.core.eager.tape import RemovableHandle

__all__ = ["RemovableHandle"]
