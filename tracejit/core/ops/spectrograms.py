"""Short-time Fourier transforms: the spectrum of a signal around each of many moments, and back.

In: signals (length) or (N, length), a window. Out: (frequencies, moments) for each. Called by users
as `tracejit.stft` and `istft`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from tracejit.core.ops import creation, fourier
from tracejit.core.ops.operators import method
from tracejit.core.ops.padding import pad
from tracejit.core.ops.pointwise_complex import complex, view_as_real
from tracejit.core.ops.random import within_record
from tracejit.core.ops.shapes import hint, shape_text
from tracejit.core.ops.windows import fold

_ONESIDED = "Cannot have onesided output if window or input is complex"
_RECTANGULAR = {
    "stft": ",which is known to cause spectral leakage. Other windows such as tracejit.hann_window "
            "or tracejit.hamming_window are recommended to reduce spectral leakage.",
    "istft": ".Please provide the same window used by stft to make the inversion lossless.",
}  # fmt: skip


def _window(name: str, window: Any, win_length: int, n_fft: int, like: Any) -> Any:
    """Return the window, ones by default, in the middle of `n_fft` places."""
    if window is None:
        if win_length > 1:
            warnings.warn("A window was not provided. A rectangular window will be applied"
                          f"{_RECTANGULAR[name]}To suppress this warning and use a rectangular "
                          "window, explicitly set `window=tracejit.ones(n_fft, device=<device>)`.",
                          UserWarning, stacklevel=4)
        kind = like.dtype if not like.is_complex() else like.dtype.to_real()
        window = creation.full_of(like, (win_length,), 1, kind)
    elif len(window.shape) != 1 or window.shape[0] != win_length:
        raise RuntimeError(f"{name}: expected a 1D window tensor of size equal to win_length="
                           f"{win_length}, but got window with size {shape_text(window.shape)}")
    if win_length == n_fft:
        return window
    before = (n_fft - win_length) // 2
    return pad(window, (before, n_fft - win_length - before))


@method()
def stft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Any = None, center: bool = True, pad_mode: str = "reflect",
         normalized: bool = False, onesided: bool | None = None,
         return_complex: bool | None = None, align_to_window: bool | None = None) -> Any:
    """Transform `n_fft` elements of a signal times a window, every `hop_length` elements.

    hop_length      None: n_fft // 4
    win_length      of the window, which is padded to n_fft with zeros; None: n_fft
    window          None: ones
    center          moments are the middles of windows; the signal is padded as `pad_mode` says
    normalized      divided by sqrt(n_fft)
    onesided        frequencies up to the half, as the others follow; None: for real signals
    return_complex  must be True for real signals, or False for pairs of real numbers

    RuntimeError for arguments that do not fit.

    >>> import tracejit
    >>> tracejit.stft(tracejit.ones(16), 8, window=tracejit.hann_window(8),
    ...               return_complex=True).shape
    tracejit.Size([5, 9])
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    real = not (input.is_complex() or window is not None and window.is_complex())
    if return_complex is None and real:
        raise RuntimeError("stft requires the return_complex parameter be given for real inputs, "
                           "and will further require that return_complex=True in a future release.")
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError("stft: expected a tensor of floating point or complex values")
    if len(input.shape) not in (1, 2):
        raise RuntimeError("stft: expected a 1D or 2D tensor")
    if hop <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft, but got win_length={size}")
    one_side = real if onesided is None else onesided
    if one_side and not real:
        raise RuntimeError(_ONESIDED)
    signal = input.unsqueeze(0) if len(input.shape) == 1 else input
    if center:
        signal = pad(signal.unsqueeze(1), (n_fft // 2, n_fft // 2), pad_mode).squeeze(1)
    if not 0 < n_fft <= signal.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft < {hint(signal.shape[-1])}, but got "
                           f"n_fft={n_fft}")
    parts = signal.unfold(-1, n_fft, hop) * _window("stft", window, size, n_fft, input)
    norm = "ortho" if normalized else None
    found = fourier.rfft(parts, norm=norm) if one_side else fourier.fft(parts, norm=norm)
    found = found.transpose(-2, -1)
    found = found.squeeze(0) if len(input.shape) == 1 else found
    return view_as_real(found) if return_complex is False else found


@method()
def istft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Any = None, center: bool = True, normalized: bool = False,
          onesided: bool | None = None, length: int | None = None,
          return_complex: bool = False) -> Any:
    """Return the signal whose `stft` with the same arguments is nearest to `input`.

    length  of the signal; None: as far as windows reach

    RuntimeError where windows leave parts of the signal out, and for arguments that do not fit.

    >>> import tracejit
    >>> x, window = tracejit.arange(16.0), tracejit.hann_window(8)
    >>> spectrum = tracejit.stft(x, 8, window=window, return_complex=True)
    >>> tracejit.allclose(tracejit.istft(spectrum, 8, window=window), x, atol=1e-5)
    True
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from "
                           "stft with return_complex=True.")
    if len(input.shape) not in (2, 3):
        raise RuntimeError("istft: expected a tensor with 3 or 4 dimensions, but got "
                           f"{len(input.shape) + 1}")
    if any(n == 0 for n in input.shape):
        raise RuntimeError("istft: input tensor cannot be empty.")
    rows = input.shape[-2]
    one_side = bool(rows != n_fft) if onesided is None else onesided
    if one_side and return_complex:
        raise RuntimeError(_ONESIDED)
    expected = n_fft // 2 + 1 if one_side else n_fft
    if rows != expected:
        what = ("n_fft / 2 + 1 when onesided=True" if one_side
                else "n_fft when onesided=False")
        raise RuntimeError("istft: expected the frequency dimension (3rd to the last) of the input "
                           f"tensor to match {what}, but got {hint(rows)}")
    if not 0 < hop <= size:
        raise RuntimeError("istft: expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError("istft: expected 0 < win_length <= n_fft")
    weight = _window("istft", window, size, n_fft, input)
    if weight.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    spectrum = (input.unsqueeze(0) if len(input.shape) == 2 else input).transpose(-2, -1)
    norm = "ortho" if normalized else None
    if return_complex:
        parts = fourier.ifft(spectrum, norm=norm)
    else:
        half = spectrum if one_side else spectrum.narrow(-1, 0, n_fft // 2 + 1)
        parts = fourier.irfft(half, n_fft, norm=norm)
    moments = parts.shape[1]
    total = n_fft + hop * (moments - 1)
    signal = _overlapped(parts * weight, n_fft, hop, total)
    envelope = _overlapped((weight * weight).expand(1, moments, n_fft), n_fft, hop, total)
    start = n_fft // 2 if center else 0
    end = total - n_fft // 2 if center and length is None else total
    if length is not None:
        end = min(start + length, total)
    signal, envelope = (x.narrow(1, start, end - start) for x in (signal, envelope))
    size_of = envelope.abs() if envelope.is_complex() else envelope
    checked = within_record(size_of, low=1e-11, high=math.inf,
                            message="istft: window overlap add min: 1")
    signal = signal / (envelope if envelope.is_complex() else checked)
    if length is not None and end - start < length:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being "
                      "padded with zeros in the tail. Please check your center and hop_length "
                      "settings.", UserWarning, stacklevel=3)
        signal = pad(signal, (0, length - (end - start)))
    return signal.squeeze(0) if len(input.shape) == 2 else signal


def _overlapped(parts: Any, n_fft: int, hop: int, total: Any) -> Any:
    """Add (N, moments, n_fft) up where they overlap: (N, total)."""
    if parts.is_complex():
        return complex(_overlapped(parts.real, n_fft, hop, total),
                       _overlapped(parts.imag, n_fft, hop, total))
    return fold(parts.transpose(1, 2), (1, total), (1, n_fft), stride=(1, hop)).flatten(1)
