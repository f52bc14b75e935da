"""Stores: keys and values that all processes of a job see. PyTorch's classes.

In: keys, and str or bytes values. Out: values, once somebody has set them. Called by programs, by
`rendezvous` and by groups for a part of their own.
"""

from __future__ import annotations

from tracejit.distributed.file_store import FileStore
from tracejit.distributed.prefix_store import PrefixStore
from tracejit.distributed.store_base import HashStore, QueueEmptyError, Store
from tracejit.distributed.tcp_store import JobStore, TCPStore

__all__ = [
    "FileStore", "HashStore", "JobStore", "PrefixStore", "QueueEmptyError", "Store", "TCPStore"
]  # fmt: skip
