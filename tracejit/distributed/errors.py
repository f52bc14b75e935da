"""Errors of processes that work together, under PyTorch's names.

Called by every file of this folder that raises one.
"""

from __future__ import annotations

from typing import NoReturn


class DistError(RuntimeError):
    """Error: something between processes failed.

    >>> issubclass(DistError, RuntimeError)
    True
    """


class DistBackendError(DistError):
    """Error: the library by which processes talk failed.

    >>> issubclass(DistBackendError, DistError)
    True
    """


class DistNetworkError(DistError):
    """Error: a connection could not be made, or broke.

    >>> issubclass(DistNetworkError, DistError)
    True
    """


class DistStoreError(DistError):
    """Error: a store did not do what it was asked, for instance in time.

    >>> import tracejit.distributed as dist
    >>> from datetime import timedelta
    >>> try:
    ...     dist.HashStore().wait(["ready"], timedelta(milliseconds=10))
    ... except DistStoreError as error:
    ...     print(error)
    wait timeout after 10ms, keys: ready
    """


def refuse(name: str) -> NoReturn:
    """Raise NotImplementedError for what no process group here can do."""
    raise NotImplementedError(f"{name} is not available in tracejit")
