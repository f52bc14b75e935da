"""Entries of the tables in this folder: a small program, and the messages it must give.

In: functions with one of the decorators below; a program takes `jit`, the decorator it captures
with. Out: `ENTRIES`. Called by the tables and by `test_errors.py`.

A message must point at the lines of the program that end in `# here`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import re
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from linecache import getline
from typing import Any

import tracejit as tj
from tracejit import config
from tracejit.jit.capture.hints import hint_for

VARYING = re.compile(  # addresses, digests
    r"0x[0-9a-f]+|(?<=_)[0-9a-f]{8}_[0-9a-f]{16}|(?<=/native-)[0-9a-f]{16}"
    r"|(?<=/)[0-9a-f]{32}(?=\.pack)")
ENTRIES: list[Entry] = []


@dataclass(frozen=True)
class Entry:
    """A program with the check that runs it, and the texts that it must give."""

    program: Callable[[Any], Any]
    check: Callable[[Entry], None]
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.program.__module__.rpartition('.')[2]}-{self.program.__name__}"

    @property
    def file(self) -> str:
        return self.program.__code__.co_filename

    def lines(self) -> set[int]:
        """Return the numbers of the program's marked lines."""
        return _marked(self.program)

    def normal(self, text: str) -> str:
        """Return a text without addresses, and without places in the program's file."""
        for path in (self.file, os.path.relpath(self.file), os.path.basename(self.file)):
            text = re.sub(rf"{re.escape(path)}:(\d+)", self._place, text)
        text = re.sub(rf"{re.escape(tempfile.gettempdir())}/tmp\w+", "<folder>", text)
        return VARYING.sub("...", text)

    def _place(self, found: re.Match) -> str:
        line = int(found[1])
        return "<here>" if line in self.lines() else f"<{getline(self.file, line).strip()}>"


@functools.cache
def _marked(program: Callable) -> set[int]:
    source, first = inspect.getsourcelines(program)
    return {first + k for k, line in enumerate(source) if line.rstrip().endswith("# here")}


class Capturing:
    """A decorator that captures, and remembers what it captured."""

    def __init__(self, jit: Callable = tj.script, **options: Any):
        self.jit, self.options, self.made = jit, options, []  # type: ignore[var-annotated]

    def __call__(self, function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda f: self(f, **options)
        captured = self.jit(function, **{**self.options, **options})
        self.made.append(captured)
        return captured

    def reported(self, what: str) -> list[Any]:
        """Return what the reports of all captured functions list, each thing once."""
        reports = [function.report() for function in self.made if hasattr(function, "report")]
        return list(dict.fromkeys(found for report in reports for found in getattr(report, what)))


def plain(function: Any = None, **options: Any) -> Any:
    """Capture nothing: a decorator with the options of `script`."""
    return (lambda f: f) if function is None else function


def _entry(check: Callable[[Entry], None], texts: Iterable[str]) -> Callable:
    def register(program: Callable) -> Callable:
        ENTRIES.append(Entry(program, check, tuple(texts)))
        return program

    return register


def _equal(entry: Entry, lines: Iterable[int], texts: Iterable[str]) -> None:
    """Compare texts and lines with what the entry expects."""
    assert [entry.normal(text) for text in texts] == list(entry.texts)
    assert set(lines) == entry.lines()


# -- breaks ----------------------------------------------------------------------------------------


def breaks(*texts: str, jit: Callable = tj.script, fullgraph: bool = True,
           at: Iterable[int] = ()) -> Callable:
    """The program breaks the graph for these reasons, as `report()` prints them.

    Hints are those of `capture/hints.py`; others are written behind the reason, in a line.

    fullgraph  where one graph is demanded, the first of them is the error
    at         lines of another file or text, of which the program is made
    """

    def check(entry: Entry) -> None:
        with config.override(mode="graph"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            capturing = Capturing(jit)
            entry.program(capturing)
            found = capturing.reported("breaks")
            reasons = [_with_hint(b.reason, b.hint) for b in found]
            places = {(os.path.abspath(b.file), b.line) for b in found if b.location}
            _equal(entry, {line for file, line in places if file == entry.file}, reasons)
            assert {line for file, line in places if file != entry.file} == set(at)
            if fullgraph:
                error = _raised(entry.program, Capturing(jit, fullgraph=True))
                assert type(error) is tj.CaptureError
                assert entry.normal(str(error)) == entry.normal(str(found[0]))

    return _entry(check, texts)


def _with_hint(reason: str, hint: str) -> str:
    """Return a reason, and its hint in a second line unless it is that of `capture/hints.py`."""
    return reason if hint == hint_for(reason) else f"{reason}\nhint: {hint}"


def recompiles(*texts: str, jit: Callable = tj.script) -> Callable:
    """The program is compiled again for these causes, as `report()` lists them.

    Where this is forbidden the first of them is the error. The marked line is the one that defines
    the function.
    """

    def check(entry: Entry) -> None:
        with config.override(mode="graph"):
            capturing = Capturing(jit)
            entry.program(capturing)
            found = capturing.reported("recompiles")
            _equal(entry, [int(r.where.rpartition(":")[2]) for r in found],
                   [f"{r.path}: {r.old} -> {r.new}; {r.hint}" for r in found])
            with tj.no_recompile():
                error = _raised(entry.program, Capturing(jit))
            assert type(error) is tj.jit.RecompileError
            text = f"{capturing.made[0].__name__} would be recompiled: {found[0]}"
            assert entry.normal(str(error)) == entry.normal(text)

    return _entry(check, texts)


def guarded(*texts: str, jit: Callable = tj.script) -> Callable:
    """The report of the program's function lists these guards, among others."""

    def check(entry: Entry) -> None:
        with config.override(mode="graph"):
            capturing = Capturing(jit)
            entry.program(capturing)
            listed = [entry.normal(text) for text in capturing.reported("guards")]
            assert [text for text in entry.texts if text not in listed] == [], listed

    return _entry(check, texts)


def undecided(reason: str, *more: str, **options: Any) -> Callable:
    """A tensor decides what is no part of the graph, for this reason."""
    return breaks(f"the branch runs as Python: {reason}", *more, **options)


def logged(*texts: str, logs: str = "breaks", jit: Callable = tj.script) -> Callable:
    """The program makes the log say this, in lines that begin with the user's."""

    def check(entry: Entry) -> None:
        written = io.StringIO()
        with config.override(mode="graph", logs=logs), contextlib.redirect_stderr(written):
            entry.program(Capturing(jit))
        found = []
        for line in written.getvalue().splitlines():
            where = re.match(rf"\[tracejit {logs}\] (/\S*):(\d+)[^:]*: (.*)", line)
            if where is not None:  # others begin with the function's name
                assert where[1] == entry.file
                reason, _, hint = re.sub(r" \(at \S+:\d+\)", "", where[3]).partition("; hint: ")
                found.append((int(where[2]), _with_hint(reason, hint)))
        _equal(entry, [line for line, _ in found], [text for _, text in found])

    return _entry(check, texts)


def long(*texts: str) -> Callable:
    """The program unrolls long loops, which the report lists with these reasons and hints."""

    def check(entry: Entry) -> None:
        with config.override(mode="graph"):
            capturing = Capturing()
            entry.program(capturing)
            found = capturing.reported("unrolled")
        _equal(entry, [loop.location.line for loop in found],
               [str(loop).partition("\n    ")[2].replace("\n    ", "\n") for loop in found])

    return _entry(check, texts)


def unrolled(reason: str) -> Callable:
    """A loop is no part of the graph, for this reason, and its iterations are."""
    return logged(f"the loop runs as Python: {reason}")


# -- exceptions and warnings -----------------------------------------------------------------------


def raises(kind: type[BaseException], text: str, *, plainly: bool = True,
           exactly: bool = True, modes: Iterable[str] = ("graph",), jit: Callable = tj.script,
           **flags: Any) -> Callable:
    """The program raises this; the innermost line of its file is the marked one.

    plainly  the plain functions raise the same
    exactly  of this class and no class below it
    flags    of the configuration
    """

    def check(entry: Entry) -> None:
        for mode in modes:
            with config.override(mode=mode, **flags):
                _check_error(entry, kind, exactly, _raised(entry.program, Capturing(jit)))
        if plainly:
            _check_error(entry, kind, exactly, _raised(entry.program, plain))

    return _entry(check, [text])


def _raised(program: Callable, jit: Callable) -> BaseException:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program(jit)
        except Exception as error:
            return error
    raise AssertionError("nothing was raised")


def _check_error(entry: Entry, kind: type, exactly: bool, error: BaseException) -> None:
    assert type(error) is kind or not exactly and isinstance(error, kind), repr(error)
    frames = traceback.extract_tb(error.__traceback__)
    _equal(entry, [f.lineno for f in frames if f.filename == entry.file][-1:], [str(error)])


def said(*texts: str, **flags: Any) -> Callable:
    """The program makes the cache of kernels say this.

    A warning does so, or the log where one of its kind was shown already. No line is marked, for
    the text is about a file.
    """

    def check(entry: Entry) -> None:
        written = io.StringIO()
        options = {"mode": "compiled", "logs": "kernels", **flags}
        with config.override(**options), _recorded() as shown, contextlib.redirect_stderr(written):
            entry.program(Capturing())
        lines = [str(w.message) for w in shown] + written.getvalue().splitlines()
        found = [line for line in lines if "kernel cache: " in line]
        _equal(entry, (), [line.partition("kernel cache: ")[2] for line in found])

    return _entry(check, texts)


@contextlib.contextmanager
def _recorded() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found
