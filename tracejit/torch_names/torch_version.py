"""Versions that compare as versions, though they are texts; PyTorch's `torch.torch_version`.

In: a text, a tuple of numbers, or a version of the `packaging` package. Out: their order, by the
rules of PEP 440.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import inf
from typing import Any

_VERSION = (
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?"
    r"(?:-(?P<build>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*")
_STAGES = {"alpha": "a", "beta": "b", "preview": "rc", "pre": "rc", "c": "rc"}


def _order(version: str) -> tuple | None:
    """Return a key that orders versions; None for a text that is no version."""
    found = re.fullmatch(_VERSION, version, re.IGNORECASE)  # compiled when first asked for
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    # 1.0 and 1 are the same version.
    while release and not release[-1]:
        release.pop()
    post = -1 if found["post"] is None else int(found["post_number"] or 0)
    if found["build"]:
        post = int(found["build"])
    dev = inf if found["dev"] is None else int(found["dev_number"] or 0)
    if found["pre"]:
        stage = found["pre"].lower()
        pre: tuple = (_STAGES.get(stage, stage), int(found["pre_number"] or 0))
    else:  # before all stages where it is only in development, else after them
        pre = ("" if post < 0 and dev < inf else "z",)
    # Numbers come after words in the local part: (-1, word) is below (n, "").
    local = tuple((int(part), "") if part.isdecimal() else (-1, part.lower())
                  for part in re.split("[-_.]", found["local"] or "") if part)
    return int(found["epoch"] or 0), release, pre, post, dev, local


class TorchVersion(str):
    """Text that is compared as a version: with texts, tuples, and versions of `packaging`.

    >>> TorchVersion("2.13.0") > "2.2", TorchVersion("2.13.0") >= (2, 13)
    (True, True)

    A text that is no version is compared as a text.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def _compared(self, other: Any, method: str) -> Any:
        if hasattr(other, "release"):  # of `packaging`
            text = str(other)
        elif isinstance(other, Iterable):
            text = other if isinstance(other, str) else ".".join(map(str, other))
        else:
            return NotImplemented
        left, right = _order(self), _order(text)
        if left is None or right is None:
            return getattr(str, method)(self, other)
        return getattr(tuple, method)(left, right)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "__le__")

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, "__eq__")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, "__ge__")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, "__gt__")
