"""Starts the processes of a job from Python; PyTorch's `torch.distributed.launcher`."""

from tracejit.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
