"""Rows of the discrete Fourier transforms."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import tracejit
from tests.opinfo import COMPLEX, FLOATS, OpInfo
from tests.ops.rows_linalg import shaped


def fourier(name: str) -> Callable[..., Any]:
    """`fft.<name>` of whichever library the tensors are from."""
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        ours = isinstance(x, tracejit.Tensor)
        library = tracejit.fft if ours else import_module("torch.fft")
        return getattr(library, name)(x, *args, **kwargs)

    return call


def row(name: str, *shapes: tuple, **keywords: Any) -> OpInfo:
    kinds = FLOATS if "ihf" in name or "rfft" in name and "irfft" not in name else COMPLEX
    return OpInfo(f"fft.{name}", shaped(*((s,) for s in shapes), **keywords), cancel=16,
                  dtypes=kinds, specials=False, function=fourier(name.partition(".")[0]))


ROWS = [
    row("fft", (4,), (2, 5)), row("fft.cut", (2, 5), n=3, norm="ortho"),
    row("ifft", (2, 4)), row("ifft.padded", (3, 2), n=5, dim=0, norm="forward"),
    row("rfft", (4,), (2, 5), norm="forward"), row("rfft.padded", (2, 3), n=6),
    row("irfft", (4,), (2, 3)), row("irfft.odd", (3, 2), n=5, dim=0, norm="ortho"),
    row("hfft", (2, 3), n=5), row("ihfft", (2, 4), norm="ortho"),
    row("fftn", (2, 3, 2)), row("ifftn.some", (3, 2, 4), s=(4, 3), dim=(0, 2)),
    row("rfftn", (2, 3, 4)), row("irfftn", (3, 2, 3), s=(3, 4), dim=(2, 0), norm="forward"),
    row("hfftn", (3, 3)), row("ihfftn", (3, 4), norm="forward"),
    row("fft2", (2, 3, 4)), row("irfft2", (2, 3, 3)),
    row("fftshift", (2, 5)), row("ifftshift", (2, 5), dim=1),
]  # fmt: skip
