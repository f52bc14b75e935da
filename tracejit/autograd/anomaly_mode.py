"""Watching a backward for NaN; PyTorch's `torch.autograd.anomaly_mode`, which some import from."""

from tracejit.core.eager.anomaly import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
