"""Anomaly mode: a backward that gives NaN names the line of the forward computation behind it.

In: `with detect_anomaly():` around forward and backward. Out: a warning with the forward traceback,
and an error. Called by the engine for every node while the mode is on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tracejit.core.eager.recording import active, ever
from tracejit.core.eager.state import TensorState

_PACKAGE = str(Path(__file__).resolve().parents[2])


def _switch(anomaly: bool, check_nan: bool, op_by_op: bool | None = None) -> tuple:
    """Set the mode and return the settings from before. `op_by_op` None: on in anomaly mode, or if
    a packer is set."""
    before = active.anomaly, active.anomaly_check_nan, active.op_by_op
    active.anomaly, active.anomaly_check_nan = anomaly, check_nan
    ever.op_by_op = ever.anomaly = True
    active.op_by_op = anomaly or active.packer is not None if op_by_op is None else op_by_op
    return before


class set_detect_anomaly:
    """Switch anomaly detection: from now on as a call, for a block as a context manager.

    >>> import tracejit
    >>> with tracejit.autograd.set_detect_anomaly(True):
    ...     pass
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        self._before = _switch(bool(mode), check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _switch(*self._before)


class detect_anomaly:
    """Context manager: nodes made inside record their traceback, and a backward that gives NaN
    raises.

    >>> import tracejit
    >>> with tracejit.autograd.detect_anomaly():
    ...     pass
    """

    def __init__(self, check_nan: bool = True):
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self._before = _switch(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        _switch(*self._before)


def is_anomaly_enabled() -> bool:
    """Return True if anomaly detection is on in this thread.

    >>> import tracejit
    >>> tracejit.is_anomaly_enabled()
    False
    """
    return active.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Return True if anomaly mode checks gradients for NaN, in this thread.

    >>> import tracejit
    >>> with tracejit.autograd.detect_anomaly():
    ...     tracejit.is_anomaly_check_nan_enabled()
    True
    """
    return active.anomaly_check_nan


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection of this thread from now on.

    >>> import tracejit
    >>> tracejit.set_anomaly_enabled(False)
    """
    _switch(bool(mode), bool(check_nan))


def apply(node: Any, grads: list) -> Sequence[Any]:
    """Run a node; on an error or a NaN, warn with the forward traceback."""
    return watched(node, functools.partial(node.apply, grads))


def watched(node: Any, run: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Call `run`, which computes what the node gives. On an error or a NaN, warn like `apply`."""
    try:
        results = run()
    except Exception:
        _warn(node)
        raise
    if active.anomaly_check_nan:
        for k, grad in enumerate(results):
            elements = getattr(grad, "elements", grad)  # of a sparse gradient
            if isinstance(elements, TensorState) and bool(elements.isnan().any()):
                _warn(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {k}th "
                                   "output.")
    return results


def _warn(node: Any) -> None:
    if node.extras is None or node.extras.traceback is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable "
            "detect anomaly during "
            "forward pass for more information.", stacklevel=2)
        return
    warnings.warn(f"Error detected in {node.name()}. Traceback of forward call that caused the "
                  "error:\n"
                  + "".join(users_lines(node)), stacklevel=2)


def users_lines(node: Any) -> list[str]:
    """Return the entries of a node's forward traceback that are in the user's code."""
    lines: list[str] = node.extras.traceback
    return [line for line in lines if f'"{_PACKAGE}' not in line] or lines
