"""Reliances of the package on CPython's inside, each with a canary and a plain fallback.

In: a name and a question that tries the inside out. Out: `holds(name)`, asked once in a process.
Where it is False the caller takes its plain way. Called by every room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Reliance(NamedTuple):
    """Inside of another library: the reliance, its canary, and the fallback where it does not
    hold."""

    text: str
    canary: Callable[[], bool]
    fallback: str


known: dict[str, Reliance] = {}
answers: dict[str, bool] = {}  # tests put False here to take the plain way


def relies(name: str, text: str, fallback: str) -> Callable[[Callable[[], bool]], Callable]:
    """Make a function the canary of an inside.

    >>> @relies("texts", "texts have a length", "counts characters")
    ... def _texts(): return len("ab") == 2
    >>> holds("texts"), known.pop("texts").fallback, answers.pop("texts")
    (True, 'counts characters', True)
    """
    def add(canary: Callable[[], bool]) -> Callable[[], bool]:
        known[name] = Reliance(text, canary, fallback)
        return canary

    return add


def holds(name: str) -> bool:
    """Return True if the inside is as it is relied on. A canary that raises says no."""
    found = answers.get(name)
    if found is None:
        try:
            found = bool(known[name].canary())
        except Exception:
            found = False
        answers[name] = found
    return found
