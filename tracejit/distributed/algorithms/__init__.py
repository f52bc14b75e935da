"""Ways to combine processes; PyTorch's `torch.distributed.algorithms`."""

from tracejit.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
