"""Start of `python -m tracejit` where the package cannot be imported: words instead of a traceback.

In: the error that the import raised. Out: the doctor's findings, or one line. The package calls
`watch` first of all, so this file needs the standard library alone.
"""

from __future__ import annotations

import sys
from types import TracebackType

from tracejit.commands import findings

_usual = sys.excepthook


def watch() -> None:
    """Take over what is printed if the import of the package fails, in `python -m tracejit`."""
    # While a module is looked up by `-m` its name is in no `sys.argv`, only "-m".
    words = sys.orig_argv[-len(sys.argv):]
    if words and words[0].lstrip("-").endswith("tracejit") and not sys.flags.dev_mode:
        sys.excepthook = _failed


def unwatch() -> None:
    """Print uncaught errors as before."""
    if sys.excepthook is _failed:
        sys.excepthook = _usual


def _failed(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    """Print why the package cannot be imported. Python then exits with status 1."""
    if sys._getframe().f_back is not None:
        return  # a C extension shows an error in the middle of an import that goes on
    if issubclass(kind, KeyboardInterrupt):
        print("tracejit: interrupted", file=sys.stderr)
    elif sys.argv[1:2] == ["doctor"]:
        found = examine(error)
        print(findings.as_json(found) if "--json" in sys.argv else findings.table(found))
    else:
        print(f"tracejit cannot be imported: {findings.one_line(error)}; `python -m tracejit "
              "doctor` says more", file=sys.stderr)


def examine(error: BaseException) -> list[findings.Finding]:
    """Return what can be found out without the package."""
    asked = findings.packages()
    text = f"it cannot be imported: {findings.one_line(error)}"
    fix = ""
    if asked.state == "ok":
        fix = "`python -X dev -m tracejit doctor` shows the traceback"
        if isinstance(error, ValueError):  # a flag's value, which the text names
            fix = "correct or unset the variable that is named"
    return [findings.Finding("tracejit", "broken", text, fix), findings.interpreter(), asked,
            findings.environment()]
