"""Discrete Fourier transforms; PyTorch's `torch.fft`.

>>> import tracejit
>>> tracejit.fft.ifft(tracejit.fft.fft(tracejit.tensor([1., 2., 3.]))).real
tensor([1., 2., 3.])
"""

from __future__ import annotations

from tracejit.core.ops import numpy_names as _numpy_names
from tracejit.core.ops import out as _out
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.fourier import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

globals().update(_out.with_out(globals(), _out.FFT))
globals().update(_numpy_names.functions_taking(globals(), _numpy_names.FFT))

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_sealing.seal_all(globals())
