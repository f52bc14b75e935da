"""`python -m tracejit run`: a PyTorch program on tracejit.

The program's own error is printed as Python prints it, from the program's first frame on.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tracejit.commands.failures import FAILURE, CommandError, UsageError, of_file
from tracejit.debug import torch_scripts


def main(options: argparse.Namespace) -> int:
    """Run the script or module; return 1 if it raised."""
    if options.module:
        _check_module(options.module)
        return _status(lambda: torch_scripts.run_module(options.module, options.rest))
    _check_script(options.script)
    return _status(lambda: torch_scripts.run_script(options.script, options.rest))


def _check_script(path: str) -> None:
    """Raise an error of one line for a file that is no program."""
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except IsADirectoryError:
        pass  # with a __main__.py in it, or so `runpy` says
    except OSError as error:
        raise UsageError(of_file(error)) from None
    except (SyntaxError, ValueError) as error:
        where = f"{path}:{error.lineno}" if getattr(error, "lineno", None) else path
        said = getattr(error, "msg", None) or str(error)
        raise CommandError(f"{where}: {said}") from None


def _check_module(name: str) -> None:
    if name.partition(".")[0] == "torch":  # tracejit's own, and PyTorch need not be there
        name = "tracejit"
    sys.path.insert(0, "")  # as `python -m` has it
    try:
        # only the first part: a look for others would import packages, and with them PyTorch
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            return
    except (ImportError, ValueError):
        pass
    finally:
        sys.path.pop(0)
    raise UsageError(f"no module named {name}")


def _status(program: Callable[[], Any]) -> int:
    try:
        program()
    except (BrokenPipeError, KeyboardInterrupt, SystemExit):
        raise
    except ImportError as error:
        if error.__traceback__ is not None and _program_frames(error.__traceback__) is None:
            raise CommandError(str(error)) from None
        return _printed(error)
    except BaseException as error:
        return _printed(error)
    return 0


def _printed(error: BaseException) -> int:
    frames = _program_frames(error.__traceback__)
    sys.stdout.flush()
    traceback.print_exception(type(error), error, frames or error.__traceback__)
    return FAILURE


def _program_frames(where: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the program's first frame on; None where there is none."""
    while where is not None and where.tb_frame.f_code.co_filename != "<frozen runpy>":
        where = where.tb_next
    while where is not None and where.tb_frame.f_code.co_filename == "<frozen runpy>":
        where = where.tb_next
    return where
