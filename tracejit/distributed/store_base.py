"""The base of all stores: PyTorch's methods, each of which asks one request of `store_protocol`.

In: keys, and str or bytes values. Out: values, once somebody has set them. Called by `store`, whose
classes say where a request goes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tracejit.core.memory import forks
from tracejit.distributed import store_protocol
from tracejit.distributed.errors import DistStoreError
from tracejit.distributed.store_protocol import Table

default_store_timeout = timedelta(seconds=300)
_KEYED = ("get", "multi_get", "wait", "check")


class QueueEmptyError(DistStoreError):
    """Error: a queue has no value, and the caller does not want to wait for one.

    >>> try:
    ...     HashStore().queue_pop("jobs", block=False)
    ... except QueueEmptyError as error:
    ...     print(error)
    queue is empty
    """


class Store:
    """Keys and values of all processes; a base for stores of your own.

    Keys are str, values str or bytes. `get`, `multi_get` and `wait` wait until the keys are there,
    at most `timeout`, and raise DistStoreError then.

    >>> store = HashStore()
    >>> store.set("lr", "0.1")
    >>> store.get("lr"), store.add("steps", 2), store.check(["lr", "wd"])
    (b'0.1', 2, False)
    """

    _limit = default_store_timeout

    def _ask(self, request: list[bytes], seconds: float) -> list[bytes]:
        """Return the answer to a request (see `store_protocol`); TimeoutError after `seconds`."""
        raise NotImplementedError(f"{type(self).__name__}.{request[0].decode()} is not implemented")

    def _do(self, name: str, *fields: str | bytes, timeout: timedelta | None = None) -> list[bytes]:
        limit = self.timeout if timeout is None else timeout
        request = [name.encode(), *(_bytes(name, one) for one in fields)]
        try:
            return self._ask(request, limit.total_seconds())
        except TimeoutError:
            keys = ", ".join(str(one) for one in fields) if name in _KEYED else str(fields[0])
            milliseconds = round(limit.total_seconds() * 1000)
            raise DistStoreError(f"wait timeout after {milliseconds}ms, keys: {keys}") from None

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key, in place of any it has."""
        self._do("set", key, value)

    def get(self, key: str) -> bytes:
        """Return the value of a key; wait for it."""
        return self._do("get", key)[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys have values."""
        self._do("wait", *keys, timeout=timeout)

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which starts with 0; return its new value."""
        return int(self._do("add", key, str(int(amount)))[0])

    def check(self, keys: Sequence[str]) -> bool:
        """Return True if all keys have values now."""
        return self._do("check", *keys)[0] == b"1"

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Set a key if it has the expected value, or has none and "" is expected.

        Returns the key's value, or the expected one if it has none.
        """
        return self._do("compare_set", key, expected_value, desired_value)[0]

    def delete_key(self, key: str) -> bool:
        """Forget a key; return False if there was none."""
        return self._do("delete", key)[0] == b"1"

    def num_keys(self) -> int:
        """Return the number of keys, some of which the store itself may have made."""
        return int(self._do("count")[0])

    def list_keys(self) -> list[str]:
        """Return all keys."""
        return [key.decode() for key in self._do("keys")]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys; wait for them."""
        return self._do("multi_get", *keys)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys at once; DistStoreError if there is not one value a key."""
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        self._do("multi_set", *(one for pair in zip(keys, values, strict=True) for one in pair))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key."""
        self._do("append", key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to a queue."""
        self._do("queue_push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value off a queue; wait for one if `block`, else QueueEmptyError."""
        if block:
            return self._do("queue_pop", key)[0]
        try:
            return self._ask([b"queue_pop", _bytes("queue_pop", key)], 0)[0]
        except TimeoutError:
            raise QueueEmptyError("queue is empty") from None

    def queue_len(self, key: str) -> int:
        """Return the number of values in a queue."""
        return int(self._do("queue_len", key)[0])

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` processes have called this with the key."""
        if self.add(f"{key}/count", 1) >= world_size:
            self.set(f"{key}/all", "")
        self.wait([f"{key}/all"], self.timeout if timeout is None else timeout)

    @property
    def timeout(self) -> timedelta:
        """Time that `get` and `wait` wait."""
        return self._limit

    def set_timeout(self, timeout: timedelta) -> None:
        """Change how long `get` and `wait` wait."""
        if not isinstance(timeout, timedelta):
            raise TypeError("set_timeout(): incompatible function arguments: expected a "
                            f"datetime.timedelta, got {type(timeout).__name__}")
        self._limit = timeout

    def has_extended_api(self) -> bool:
        """Return True: `append`, `multi_get` and `multi_set` are there."""
        return True

    def clone(self) -> Store:
        """Return a store over the same keys that another thread may use meanwhile."""
        return self

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


def _bytes(name: str, value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"{name}(): incompatible function arguments: expected str or bytes, got "
                    f"{type(value).__name__}")


class HashStore(Store):
    """Store of the threads of one process, in its memory. It also serves a group of one process.

    >>> store = HashStore()
    >>> store.set("seed", "7")
    >>> store.get("seed"), store.num_keys()
    (b'7', 1)
    """

    def __init__(self) -> None:
        self._table, self._changed = Table(), threading.Condition(forks.rlock())

    def _ask(self, request: list[bytes], seconds: float) -> list[bytes]:
        deadline = time.monotonic() + seconds
        with self._changed:
            while (answer := store_protocol.operate(self._table, request)) is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                self._changed.wait(left)
            if request[0] in store_protocol.CHANGING:
                self._changed.notify_all()
        return answer
