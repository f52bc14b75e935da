"""Types under PyTorch's `torch.jit.annotations`, from where programs import them."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035


class _BroadcastingList:
    """Annotation that says nothing: a number, or as many numbers as there are dimensions."""

    def __getitem__(self, types: Any) -> None:
        return None

    def __call__(self, *args: Any) -> None:
        raise TypeError("a broadcasting list is an annotation; it cannot be called")


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()
