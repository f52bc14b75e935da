"""Progress of a compile that takes long, on a terminal: stage, kernels done of all, seconds.

In: the stages that the compiling thread enters, and counts from any thread that compiles kernels.
Out: one line on stderr after `DELAY` seconds, drawn by rich, which is gone afterwards. Called by
`CompiledFunction`, `compiled_graph` and `cache`.

Without rich, without a terminal, or with `TRACEJIT_PROGRESS=0` nothing happens. Else a thread waits
beside the compile, and loads rich only if it takes long. No line is drawn where code of the user's
may print: while a segment runs, and in a recording after its first segment.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from tracejit.config import flags
from tracejit.core.memory import forks

DELAY = 2.0  # seconds before a line is drawn
_EVERY = 0.1  # seconds between two drawings
_drawing = forks.rlock()  # held by the one that draws


class _Now(threading.local):
    compile: Compile | None = None


_now = _Now()
_going: list[Compile] = []  # compiles of all threads, with a thread that waits


class Compile:
    """Compile that goes on. `stage` "" means: draw nothing. Counts are of kernels."""

    def __init__(self, name: str, stage: str):
        self.name, self.stage = name, stage
        self.wanted = self.written = self.compiled = 0
        self.started = perf_counter()
        self.over = threading.Event()
        self.may_draw = False  # set once the delay is over
        self.live: Any = None
        self.spinner: Any = None
        self.thread = threading.Thread(target=self._wait, name="tracejit-progress", daemon=True)

    def text(self, stage: str) -> str:
        """Return the line without its spinner."""
        parts = [stage] if stage != "kernels" or not self.wanted else []
        if self.wanted:
            parts.append(f"kernels {self.compiled} of {self.wanted} done, {self.written} written")
        parts.append(f"{perf_counter() - self.started:.1f} s")
        return f"tracejit compiles {self.name}: {', '.join(parts)}"

    def hide(self) -> None:
        """Take the line away, and draw none until the next stage."""
        self.stage = ""
        if self.may_draw:  # it may be drawing right now
            with _drawing:
                self._erase()

    def end(self) -> None:
        """Take the line away for good."""
        self.over.set()
        self.hide()
        if self.thread.is_alive() and threading.current_thread() is not self.thread:
            self.thread.join()

    def _wait(self) -> None:
        if self.over.wait(DELAY):
            return
        self.may_draw = True
        while not self.over.wait(_EVERY):
            if self.stage and _going[:1] == [self]:  # of several only one has the line
                with _drawing:
                    self._draw()
        with _drawing:
            self._erase()

    def _draw(self) -> None:
        stage = self.stage  # read once: the compiling thread may clear it at any time
        if not stage or self.over.is_set():
            return
        try:
            if self.live is None:
                self.live, self.spinner = _line()
            self.spinner.update(text=_one_line(self.text(stage)))
            self.live.refresh()
        except Exception:  # the terminal is gone, say: the compile goes on without a line
            self.live = None
            self.over.set()

    def _erase(self) -> None:
        live, self.live = self.live, None
        if live is not None:
            live.stop()


def _line() -> tuple[Any, Any]:
    """Start a line of rich's that is taken away when it stops; return it, and its spinner."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    spinner = Spinner("dots")
    live = Live(spinner, console=Console(file=sys.stderr), transient=True, auto_refresh=False,
                redirect_stdout=False, redirect_stderr=False)
    live.start()
    return live, spinner


def _one_line(text: str) -> Any:
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ellipsis")


@functools.cache
def _has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None


def _is_wanted() -> bool:
    try:
        terminal = flags.progress and sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False
    return terminal and os.environ.get("TERM") != "dumb" and _has_rich()


@contextmanager
def compiling(name: str, stage: str) -> Iterator[None]:
    """Show what goes on inside if it takes long. Within another compile of this thread it only
    changes the stage, and hides the line at its end."""
    outer = _now.compile
    if outer is not None:
        outer.stage = stage
        try:
            yield
        finally:
            outer.hide()
        return
    if not _is_wanted():
        yield
        return
    found = Compile(name, stage)
    try:
        found.thread.start()
    except RuntimeError:  # the interpreter is ending
        yield
        return
    _now.compile = found
    _going.append(found)
    try:
        yield
    finally:
        _now.compile = None
        _going.remove(found)
        found.end()


def enter(stage: str) -> None:
    """Name the stage that this thread's compile enters; nothing happens while it is hidden."""
    if _now.compile is not None and _now.compile.stage:
        _now.compile.stage = stage


def hide() -> None:
    """Take away the line of this thread's compile: code of the user's may print now."""
    if _now.compile is not None:
        _now.compile.hide()


def count(what: str, kernels: int) -> None:
    """Count kernels that are wanted, written or compiled, for each compile that goes on. Any
    thread may call this."""
    for found in tuple(_going):
        setattr(found, what, getattr(found, what) + kernels)


@forks.in_child
def _alone() -> None:
    _going[:] = [found for found in _going if found is _now.compile]
