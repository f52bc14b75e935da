"""A part of another store, whose keys get a prefix.

In: a prefix and a store. Out: a `PrefixStore`. Called by programs, and by every group.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tracejit.distributed.store_base import Store


class PrefixStore(Store):
    """A part of another store: its keys get a prefix.

    prefix  str, before a slash and the key
    store   any `Store`

    >>> import tracejit.distributed as dist
    >>> whole = dist.HashStore()
    >>> part = PrefixStore("run1", whole)
    >>> part.set("seed", "7")
    >>> part.get("seed"), whole.get("run1/seed"), part.list_keys()
    (b'7', b'7', ['seed'])
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The store that holds the keys."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        inner = self._store
        return inner._underlying_non_prefix_store if isinstance(inner, PrefixStore) else inner

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    # Each method asks the inner store's method of the same name, which a program may have written.

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._key(key))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._store.wait([self._key(key) for key in keys], *([timeout] if timeout else []))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._key(key), amount)

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check([self._key(key) for key in keys])

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        return self._store.compare_set(self._key(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = self._key("")
        return [k.removeprefix(start) for k in self._store.list_keys() if k.startswith(start)]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get([self._key(key) for key in keys])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._store.multi_set([self._key(key) for key in keys], values)

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._key(key), value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._key(key))

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())
