"""Blocks of `warnings.catch_warnings` in captured functions: replayed where none warns in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tracejit as tj


def quiet(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="a.*", category=UserWarning)
        return x * 2


def nested(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y = x + 1
    return y * 2


def at_once(x: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return x - 1


def warns(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("unseen", stacklevel=1)
    warnings.warn("seen", stacklevel=1)
    return x * 2


def keeps(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        warnings.warn("kept", stacklevel=1)
    return x * len(shown)


def changes(x: Any) -> Any:
    warnings.simplefilter("ignore", FutureWarning)
    return x * 3


def leaves_open(x: Any) -> Any:
    warnings.catch_warnings().__enter__()
    warnings.simplefilter("ignore", ImportWarning)
    return x * 3


def seen(function: Callable[[Any], Any]) -> list[Any]:
    """Call a function four times; return what it gave, showed, and left of the filters."""
    found = []
    for k in range(4):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            result = function(tj.ones(2) * k).tolist()
            filters = list(warnings.filters)
        found.append((result, [str(w.message) for w in shown], filters))
    return found


@pytest.mark.parametrize("function", [quiet, nested, at_once])
def test_blocks_in_which_nothing_warns_replay(function: Callable[[Any], Any]) -> None:
    captured = tj.script(function)
    assert seen(captured) == seen(function)
    assert captured.report().cache_hits == 3 and not captured.report().breaks


@pytest.mark.parametrize("function", [warns, keeps, changes, leaves_open])
def test_others_are_as_plain_code_is(function: Callable[[Any], Any]) -> None:
    captured = tj.script(function)
    assert seen(captured) == seen(function)
    assert captured.report().cache_hits == 0 and captured.report().breaks


@pytest.mark.filterwarnings("default:again")
def test_what_was_shown_once_is_shown_again_after_a_block() -> None:
    """The block tells Python that filters differ: a line that has warned warns once more."""
    captured, counts = tj.script(quiet), []
    for function in (quiet, captured):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("default")
            for _ in range(4):
                warnings.warn("again", stacklevel=1)
                function(tj.ones(2))
        counts.append(len(shown))
    assert counts == [4, 4] and captured.report().cache_hits == 3
