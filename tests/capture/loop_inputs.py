"""Inputs of programs that loop: sequences of several lengths, weights, and the round over them."""

from __future__ import annotations

import tracejit as tj

LENGTHS = (8, 3, 1, 20)


def data(length, width=3, seed=0):
    """A sequence; the same in every library."""
    whole = tj.arange(float(length * width)) * 12.9898 + (seed + length) * 0.7
    return whole.sin().view(length, width) * 1.3


def weights(width=3):
    """A leaf."""
    values = (tj.arange(float(width * width)) * 7.3 + 2).cos() * 0.5
    return values.view(width, width).requires_grad_()


def over_lengths(f, lengths=LENGTHS, *more):
    """Results and gradients for sequences of several lengths."""
    out = []
    for length in lengths:
        x = data(length).requires_grad_()
        y = f(x, *more)
        if y.requires_grad:
            y.sum().backward()
        out += [y, x.grad]
    return out
