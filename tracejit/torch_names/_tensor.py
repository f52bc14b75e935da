"""The class of tensors, and what pickles make those of classes by; PyTorch's `torch._tensor`.

In: parts of a tensor out of a pickle. Out: the tensor.
"""

from tracejit.core.eager.tensor import Tensor
from tracejit.saving.rebuilding import rebuild_from_type as _rebuild_from_type_v2

__all__ = ["Tensor", "_rebuild_from_type_v2"]
