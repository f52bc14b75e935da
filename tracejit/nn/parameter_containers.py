"""Parameters, and other values beside them, in a list or a dict: modules that hold them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tracejit.core.eager.tensor import Tensor
from tracejit.jit.capture.plain_arguments import plain_text
from tracejit.nn.module import Module
from tracejit.nn.parameter import Parameter


def _kept(value: Any) -> Any:
    """Return a tensor as a parameter, and other values as they are."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(
        value, Parameter) else value


class _Values(Module):
    """Values that are attributes, by the text of their place or name."""

    def _listed(self) -> Iterator[tuple[str, Any]]:
        raise NotImplementedError

    @staticmethod
    def _kind(value: Any) -> str:
        """Return the text for a tensor's kind."""
        return str(value.dtype)

    def extra_repr(self) -> str:
        lines = []
        for name, value in self._listed():
            text = f"Object of type: {type(value).__name__}"
            if isinstance(value, Tensor):
                size = "x".join(map(str, value.shape))
                text = f"Parameter containing: [{self._kind(value)} of size {size}]"
            lines.append(f"  ({name}): {text}")
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} should not be called.")


class ParameterList(_Values):
    """List of parameters, which belong to the module that holds the list. Other tensors become
    parameters, other values are kept as they are.

    values  iterable of tensors of any shape, to begin with; default None

    Indices give parameters, slices give a `ParameterList`; `append` and `extend` change it. Raises
    TypeError for values that come in no list, IndexError for a position outside.

    >>> import tracejit
    >>> len(tracejit.nn.ParameterList([tracejit.zeros(1), tracejit.ones(2)])[1:])
    1
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _listed(self) -> Iterator[tuple[str, Any]]:
        return ((str(place), value) for place, value in enumerate(self))

    def _name(self, index: Any) -> str:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range")
        return str(place % len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _kept(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(place)) for place in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end. Return the list."""
        setattr(self, str(self._size), _kept(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end. Return the list."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError("ParameterList.extend should be called with an iterable, but got "
                            f"{type(values).__name__}")
        for value in values:
            self.append(value)
        return self


class ParameterDict(_Values):
    """Parameters by name, which belong to the module that holds the dict. Other tensors become
    parameters, other values are kept as they are.

    parameters  mapping of names to tensors of any shape, or pairs of both; default None

    Names of a plain dict are taken in sorted order, those of other mappings, and of pairs, as they
    come. Raises TypeError for names that are no texts, and for arguments that are neither. Raises
    KeyError for names that a module may not have, and as `del` and `pop` of a dict.

    >>> import tracejit
    >>> list(tracejit.nn.ParameterDict({"b": tracejit.zeros(1), "a": tracejit.ones(2)}))
    ['a', 'b']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _kind(value: Any) -> str:
        return value.type()

    def _listed(self) -> Iterator[tuple[str, Any]]:
        return iter(self.items())

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._text(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._text(key)
        setattr(self, name, _kept(value))
        self._names[name] = None

    def __delitem__(self, key: str) -> None:
        del self._names[key]
        delattr(self, key)

    def _text(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError("Index given to ParameterDict cannot be used as a key as it is not a "
                            f"string (type is '{type(key).__name__}'). Open an issue on github if "
                            "you need non-string keys.")
        key = plain_text(key)  # of a text that a recorded call makes
        if key not in self._names and hasattr(self, key):
            raise KeyError(f"attribute '{key}' already exists")
        return key

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._names)

    def __contains__(self, key: Any) -> bool:
        return key in self._names

    def __or__(self, other: Any) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def keys(self) -> Any:
        """Return the names."""
        return self._names.keys()

    def values(self) -> Any:
        """Return the values."""
        return [self[name] for name in self._names]

    def items(self) -> Any:
        """Return (name, value) pairs."""
        return [(name, self[name]) for name in self._names]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a name, or a default."""
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a name. Where there is none, set the default first."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove and return a value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last pair."""
        key = next(reversed(self._names))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all."""
        for name in list(self._names):
            del self[name]

    def copy(self) -> ParameterDict:
        """Return another dict with the same values."""
        made = ParameterDict()
        for name, value in self.items():
            made[name] = value
        return made

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dict with these names and one value."""
        return ParameterDict([(key, default) for key in keys])

    def update(self, parameters: Any) -> None:
        """Take over the values of a mapping, or of pairs."""
        if isinstance(parameters, ParameterDict) or (
                isinstance(parameters, Mapping) and type(parameters) is not dict):
            pairs = list(parameters.items())
        elif isinstance(parameters, Mapping):
            # PyTorch's order for plain dicts
            pairs = sorted(parameters.items())
        elif isinstance(parameters, Iterable):
            pairs = list(parameters)
        else:
            raise TypeError("ParametersDict.update should be called with an iterable of key/value "
                            f"pairs, but got {type(parameters).__name__}")
        for place, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(f"ParameterDict update sequence element #{place} should be "
                                f"Iterable; is{type(pair).__name__}")
            if len(pair) != 2:  # type: ignore[arg-type]
                raise ValueError(f"ParameterDict update sequence element #{place} has length "
                                 f"{len(pair)}; 2 is required")  # type: ignore[arg-type]
            self[pair[0]] = pair[1]  # type: ignore[index]
