"""Tensors: their memory, the ops on them, and eager mode."""
