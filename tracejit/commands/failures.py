"""Failures of commands: one line on stderr and an exit status, never a traceback.

In: a command. Out: its exit status. 2: wrong use. 1: failure. 130: Ctrl-C. 141: the reader of its
output is gone. `python -X dev` shows tracebacks. Called by `__main__`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tracejit.commands.findings import one_line

USAGE, FAILURE, INTERRUPTED, PIPE_CLOSED = 2, 1, 130, 141


class UsageError(Exception):
    """Error: the command was called in a wrong way. Its text is one line."""


class CommandError(Exception):
    """Error: the command cannot do its work. Its text is one line."""


def status_of(name: str, command: Callable[[], int]) -> int:
    """Run a command; return its exit status. An error becomes one line."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return _say(f"{name}: interrupted", INTERRUPTED)
    except UsageError as error:
        return _say(f"{name}: {error}", USAGE)
    except CommandError as error:
        return _say(f"{name}: {error}", FAILURE)
    except OSError as error:
        return _say(f"{name}: {of_file(error)}", FAILURE)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        return _say(f"{name}: {one_line(error)} (`python -X dev -m tracejit` shows the traceback)",
                    FAILURE)


def of_file(error: OSError) -> str:
    """Return what is wrong with a file, as `name: no such file`."""
    reason = reason_of(error)
    return f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason


def reason_of(error: OSError) -> str:
    """Return the system's reason, without the file."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def _say(text: str, status: int) -> int:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        pass  # stderr is closed too: the status tells
    return status


def _drop_output() -> None:
    """Send what is still buffered nowhere: flushing it at exit would raise again."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
