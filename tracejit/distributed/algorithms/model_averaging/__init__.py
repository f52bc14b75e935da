"""Means of parameters over processes; PyTorch's `model_averaging`."""
