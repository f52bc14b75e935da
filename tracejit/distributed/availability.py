"""Backends that this machine has, and launchers that started this process.

In: nothing. Out: True or False. Called by programs.
"""

from __future__ import annotations

import os

from tracejit.distributed import mpi, nccl_library


def is_available() -> bool:
    """Return True if processes can talk: mpi4py is installed.

    >>> is_available() in (True, False)
    True
    """
    return mpi.is_installed()


def is_mpi_available() -> bool:
    """Return True if mpi4py is installed.

    >>> is_mpi_available() == is_available()
    True
    """
    return mpi.is_installed()


def is_gloo_available() -> bool:
    """Return True if mpi4py is installed: "gloo" means MPI here.

    >>> is_gloo_available() == is_mpi_available()
    True
    """
    return mpi.is_installed()


def is_nccl_available() -> bool:
    """Return True if NCCL can be loaded, by nccl4py or CuPy.

    >>> is_nccl_available() in (True, False)
    True
    """
    return nccl_library.is_installed()


def is_torchelastic_launched() -> bool:
    """Return True if `tracejit.distributed.run` started this process.

    >>> is_torchelastic_launched() == ("TORCHELASTIC_RUN_ID" in os.environ)
    True
    """
    return "TORCHELASTIC_RUN_ID" in os.environ
