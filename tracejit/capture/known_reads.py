"""What functions of the standard library read of what they are given, where their code says more.

In: code objects. Out: the names of the attributes that a function, and all that it calls, may ask
for. Called by `watch`, which looks no further into these: `inspect.signature` would seem to ask
every object of the process for anything.
"""

from __future__ import annotations

import dataclasses
import inspect
from types import CodeType

_OF_CALLABLES = frozenset(
    "__wrapped__ __signature__ __defaults__ __kwdefaults__ __annotations__ __text_signature__ "
    "__call__ __init__ __new__ __func__ _partialmethod func args keywords".split()
)
_OF_DATACLASSES = frozenset({"__dataclass_fields__", "_field_type"})
READS: dict[CodeType, frozenset[str]] = {
    inspect.signature.__code__: _OF_CALLABLES,
    inspect.getfullargspec.__code__: _OF_CALLABLES,
    dataclasses.fields.__code__: _OF_DATACLASSES,
    dataclasses.is_dataclass.__code__: _OF_DATACLASSES,
}
