"""Docstrings of what users call: length, an example, shapes.

Classes of `nn`, `optim` and the schedules say as much as PyTorch's; every public function and class
has an example, and functions of tensors speak of shapes. What lacks either is in
`public_docstrings.txt`, a list that only gets shorter.
`python -m tests.test_public_docstrings` prints what is missing.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tracejit
from tracejit.core.ops.record import Op

LIST = Path(__file__).with_name("public_docstrings.txt")
# Functions of these modules take tensors; those of others may.
OF_TENSORS = ("tracejit.nn.functional", "tracejit.linalg", "tracejit.fft", "tracejit.special")
MODULES = (*OF_TENSORS, "tracejit", "tracejit.nn", "tracejit.optim", "tracejit.optim.lr_scheduler",
           "tracejit.optim.swa_utils", "tracejit.autograd", "tracejit.func", "tracejit.utils.data",
           "tracejit.distributions", "tracejit.nn.utils", "tracejit.nn.init",
           "tracejit.nn.parallel", "tracejit.distributed", "tracejit.distributed.algorithms",
           "tracejit.distributed.algorithms.ddp_comm_hooks", "tracejit.distributed.checkpoint",
           "tracejit.distributed.fsdp", "tracejit.distributed.fsdp.api",
           "tracejit.distributed.launcher", "tracejit.distributed.nn",
           "tracejit.distributed.optim")
FULL = {"tracejit.nn": 300, "tracejit.optim": 300, "tracejit.optim.lr_scheduler": 300}
LEAST = 120
SHAPES = re.compile(r"[Ss]hape|dimension|broadcast|vector|matri(x|ces)|0-dim|\bsizes?\b|"
                    r"\((\*|\.\.\.|[A-Z]'?|[a-z_]+)(, [^)]*)?,?\)|\(\)")  # fmt: skip
TENSORS = ("input", "tensor", "tensors", "self", "x", "A", "x1", "input1", "elements", "y")
# `Arguments are those of `sin`.`: a generated docstring, as good as that one.
TWIN = re.compile(r"Arguments.* are\s+those of `(\w+)`")


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of the callables that a module offers as its own or its package's."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in names:
        found = getattr(module, name)
        place = getattr(found, "__module__", None) or ""
        if callable(found) and not inspect.ismodule(found) and place.startswith("tracejit"):
            yield name, found


def everything() -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, object) of all modules, and of the methods of tensors."""
    for place in MODULES:
        for name, found in public(importlib.import_module(place)):
            yield f"{place}.{name}", found
    for name in dir(tracejit.Tensor):
        if not name.startswith("_"):
            yield f"tracejit.Tensor.{name}", inspect.getattr_static(tracejit.Tensor, name)


def text_of(found: Any) -> str:
    """Return an object's own docstring: not a base's, nor that of the class of all records."""
    if isinstance(found, type):
        return inspect.cleandoc(found.__dict__.get("__doc__") or "")
    own = getattr(found, "__doc__", None)
    return "" if own is Op.__doc__ else inspect.cleandoc(own or "")


def takes_tensors(name: str, found: Any) -> bool:
    if name.startswith((*(f"{place}." for place in OF_TENSORS), "tracejit.Tensor.")):
        return True
    try:
        names = list(inspect.signature(found).parameters)
    except (TypeError, ValueError):
        return False
    return bool(names) and names[0] in TENSORS


def missing(name: str, found: Any, texts: dict[str, str]) -> set[str]:
    """Return what a docstring lacks: "example", "shape"."""
    text, lacks = texts[name], set()
    twin = TWIN.search(text)
    stem = twin and twin.group(1)
    of = [texts.get(f"{place}.{stem}", "") for place in ("tracejit.Tensor", *MODULES)]
    if ">>>" not in text and not any(">>>" in base for base in of):
        lacks.add("example")
    if not isinstance(found, type) and takes_tensors(name, found) and not SHAPES.search(text):
        lacks.add("shape")
    return lacks


@functools.cache
def lacking() -> set[str]:
    """Return lines `name: what it lacks` for all that is public."""
    every = dict(everything())
    texts = {name: text_of(found) for name, found in every.items()}
    return {f"{name}: {what}" for name, found in every.items()
            for what in missing(name, found, texts)}


def lengths(place: str) -> dict[str, int]:
    return {name: len(text_of(found)) for name, found in public(importlib.import_module(place))
            if isinstance(found, type)}


@pytest.mark.parametrize("place", FULL)
def test_classes_are_told_in_full(place):
    found = lengths(place)
    assert statistics.median(found.values()) >= FULL[place]
    assert {name: length for name, length in found.items() if length < LEAST} == {}


def test_public_names_have_an_example_and_shapes():
    known = {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}
    assert sorted(lacking() - known) == [], "write what is missing"
    assert sorted(known - lacking()) == [], "no longer missing: drop these lines from the list"


def test_examples_of_generated_docstrings_run():
    """Run the examples that no `def` holds: those of methods made in a loop."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    made: list[Callable[..., Any]] = [getattr(tracejit, f"atleast_{n}d") for n in (1, 2, 3)]
    made += [getattr(tracejit.Tensor, name) for name in ("float", "long", "bool", "cfloat")]
    for function in made:
        parsed = doctest.DocTestParser().get_doctest(
            inspect.cleandoc(function.__doc__ or ""), {}, function.__name__, None, None)
        assert parsed.examples
        assert runner.run(parsed).failed == 0


def test_what_is_missing_is_seen():
    def bare(input):
        """Add one."""

    def full(input):
        """Add one, in the same shape.

        >>> 1 + 1
        2
        """

    def sin_(self):
        """Write `sin` of `self` into `self`. Arguments are those of `sin`. The shape stays."""

    texts = {"tracejit.a": text_of(bare), "tracejit.b": text_of(full), "tracejit.sin_":
             text_of(sin_), "tracejit.sin": ">>> 1"}
    assert missing("tracejit.a", bare, texts) == {"example", "shape"}
    assert missing("tracejit.b", full, texts) == set()
    assert missing("tracejit.sin_", sin_, texts) == set()
    assert text_of(tracejit.sin).startswith("Return the sine")


if __name__ == "__main__":
    for place in FULL:
        found = sorted(lengths(place).values())
        print(f"{place}: {len(found)} classes, median {statistics.median(found)}, least {found[0]}")
    print("\n".join(sorted(lacking())))
