"""PyTorch's `torch.autograd.profiler`, the older place of `torch.profiler`."""

from typing import NoReturn

from tracejit.profiler import profile, record_function

__all__ = ["EventList", "emit_nvtx", "profile", "record_function"]


class emit_nvtx(profile):
    """Raise NotImplementedError: no ranges are marked for NVIDIA's tools. If disabled, a context
    that does nothing."""


class EventList(list):
    """List of measured events, which no profile here makes; it has no table."""

    def table(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise NotImplementedError: profiles measure no single ops."""
        raise NotImplementedError("EventList.table: profiles here hold no events; "
                                  "fn.report() says what a captured function's kernels are")
