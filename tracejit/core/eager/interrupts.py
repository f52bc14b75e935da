"""Signals such as Ctrl-C, held back while several writes must all happen or none.

In: a block of code that must not stop half-way. Out: the same, with the signals' handlers called at
its end. Used where programs of many steps run, and where the tracer ends a segment. Signals reach
the main thread only, so elsewhere this does nothing.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]


class HeldInterrupts:
    """Context manager: signals that arrive inside are handled at its end.

    >>> seen = []
    >>> before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append("handled"))
    >>> with HeldInterrupts():
    ...     signal.raise_signal(signal.SIGUSR1)
    ...     seen.append("whole")
    >>> _ = signal.signal(signal.SIGUSR1, before)
    >>> seen
    ['whole', 'handled']
    """

    __slots__ = ("handlers", "arrived", "error")

    def __enter__(self) -> HeldInterrupts:
        self.handlers: dict[int, Any] = {}
        self.arrived: list[tuple[int, FrameType | None]] = []
        self.error: BaseException | None = None  # raised by a handler before its signal was held
        if threading.current_thread() is threading.main_thread():
            left = list(_SIGNALS)
            while left:  # a handler may raise meanwhile: the others are held all the same
                try:
                    self._hold(left)
                except BaseException as error:
                    self.error = error
        return self

    def _hold(self, left: list[int]) -> None:
        while left:
            number = left[-1]
            handler = self.handlers.setdefault(number, signal.getsignal(number))
            if callable(handler):
                signal.signal(number, self._arrive)
            left.pop()

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        self.arrived.append((number, frame))

    def __exit__(self, *exc: object) -> None:
        self._restore()
        for number, frame in self.arrived:
            self.handlers[number](number, frame)
        if self.error is not None:
            raise self.error

    def _restore(self) -> None:
        """Put every handler back, although those that are back already may raise meanwhile. Then
        raise the last error."""
        left, error = {n: h for n, h in self.handlers.items() if callable(h)}, None
        while left:
            try:
                for number in list(left):
                    signal.signal(number, left[number])
                    del left[number]
            except BaseException as raised:
                error = raised
        if error is not None:
            raise error
