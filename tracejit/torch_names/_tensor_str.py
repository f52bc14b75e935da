"""Printing of tensors, under the names of PyTorch's `torch._tensor_str`.

In: tensors. Out: text.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.eager.interchange import wide
from tracejit.core.eager.printing import elements, text
from tracejit.core.eager.printing import options as PRINT_OPTS

__all__ = ["PRINT_OPTS"]


def _tensor_str(self: Any, indent: int) -> str:
    """Return the elements, as `print` shows them between the brackets.

    >>> import tracejit
    >>> _tensor_str(tracejit.tensor([1.0, 2.0]), 0)
    '[1., 2.]'
    """
    return elements(wide(self.detach().cpu().resolve_conj().resolve_neg().numpy()), indent)


def _str(self: Any, *, tensor_contents: Any = None) -> str:
    """Return the text of the whole tensor."""
    return text(self)
