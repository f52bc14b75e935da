"""Modules under PyTorch's private names, which programs import; `tracejit.__path__` leads here."""
